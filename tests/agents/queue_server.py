"""A server of Chat Completions whose answers are written by whoever watches a folder.

    python -m tests.agents.queue_server FOLDER --port 8000

Each request becomes `FOLDER/0001.request.json`: its messages and the schema that the answer must satisfy, and nothing
else. Its answer is the text of `FOLDER/0001.answer.txt`, given back word for word as the reply's content once that file
is there and whole: write it under another name and rename it. A request waits for as long as its client does; while it
waits, the stream is kept alive by comments, so that a client's limit on silence does not end it. The same request asked
again, after a restart or a time-out, takes the same answer: it is named by its content in `FOLDER/index.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.agents.chat_server import DONE, Tree, chunks, event

ALIVE = 5.0
"""Seconds between two comments in a stream that waits."""
LOOK = 0.1
"""Seconds between two looks for an answer."""


class Queue:
    """The folder. Requests are numbered in the order of their coming."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._index = folder / "index.json"
        self._numbers: dict[str, int] = json.loads(self._index.read_text()) if self._index.exists() else {}

    def put(self, request: Tree) -> Path:
        """The file in which the answer to this request will be."""
        form = (request.get("response_format") or {}).get("json_schema") or {}
        asked = {"messages": request["messages"], "schema": form.get("schema")}
        text = json.dumps(asked, ensure_ascii=False, indent=1)
        name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        with self._lock:
            if name not in self._numbers:
                self._numbers[name] = len(self._numbers) + 1
                _write(self._folder / f"{self._numbers[name]:04d}.request.json", text)
                _write(self._index, json.dumps(self._numbers, indent=1))
        return self._folder / f"{self._numbers[name]:04d}.answer.txt"


def _write(file: Path, text: str) -> None:
    """Whole or not at all."""
    part = file.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def completion(text: str, request: Tree) -> Tree:
    """The answer as a chat completion; tokens are counted as four bytes each, as there is no tokenizer here."""
    message = {"role": "assistant", "content": text}
    asked, replied = len(json.dumps(request["messages"])) // 4, len(text) // 4
    return {
        "id": "queue", "object": "chat.completion", "created": 0, "model": request.get("model", ""),
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}],
        "usage": {"prompt_tokens": asked, "completion_tokens": replied, "total_tokens": asked + replied},
    }  # fmt: skip


class QueueServer:
    def __init__(self, folder: Path, port: int = 0) -> None:
        self._queue = Queue(folder)
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> QueueServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        self._server.serve_forever(0.05)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        queue, ended = self._queue, self._ended

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not self.path.partition("?")[0].endswith("/chat/completions"):
                    self.send_error(404)
                    return
                answer = queue.put(request)
                if not request.get("stream"):
                    while not answer.exists() and not ended.is_set():
                        time.sleep(LOOK)
                    self._whole(request, answer)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    self._stream(request, answer)
                except OSError:  # the client has gone; it will ask again, or never
                    self.close_connection = True

            def _whole(self, request: Tree, answer: Path) -> None:
                body = json.dumps(completion(answer.read_text("utf-8"), request)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _stream(self, request: Tree, answer: Path) -> None:
                last = time.monotonic()
                while not answer.exists():
                    if ended.is_set():
                        self.close_connection = True
                        return
                    time.sleep(LOOK)
                    if time.monotonic() - last >= ALIVE:
                        self._piece(b": waiting for an answer\n\n")
                        last = time.monotonic()
                for chunk in chunks(completion(answer.read_text("utf-8"), request)):
                    self._piece(event(chunk))
                self._piece(DONE)
                self.wfile.write(b"0\r\n\r\n")

            def _piece(self, piece: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description="Chat Completions, answered by whoever watches a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    server = QueueServer(options.folder, options.port)
    print(server.url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
