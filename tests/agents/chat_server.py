"""A local HTTP server that speaks Chat Completions, and fails on request.

    with ChatServer(rules, script=[rate_limited(), "malformed"]) as server: ... server.url ...
    python -m tests.agents.chat_server --port 8000 --script 429,timeout,refusal

Each entry of the script answers one request; `ok`, and everything after the script, is left to `answer` (the
rule-based model). What came in is in `requests`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rlgpt.agents.rules.model import respond

Answer = Callable[[dict[str, Any]], "dict[str, Any] | Reply"]
"""A chat completion, or all of the reply (tests/agents/dialects/)."""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds of silence first."""
    pieces: Sequence[bytes] = ()
    """Instead of a body: what is streamed."""
    pace: float = 0.0
    """Seconds before each piece."""
    cut: bool = False
    """The connection breaks off after the last piece, or before the last byte of the body."""


def json_reply(status: int, tree: object, **headers: str) -> Reply:
    return Reply(status, json.dumps(tree).encode(), {"Content-Type": "application/json", **headers})


def _error(status: int, message: str, param: str | None = None, **headers: str) -> Reply:
    return json_reply(status, {"error": {"message": message, "type": "error", "param": param, "code": None}}, **headers)


# ---- streaming ------------------------------------------------------------------------------------
Tree = dict[str, Any]


def event(tree: object) -> bytes:
    return f"data: {json.dumps(tree)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def chunks(answer: Tree, usage: bool = True, pieces: int = 4, thought: str = "reasoning_content") -> list[Tree]:
    """The chunks of a chat completion, as https://platform.openai.com/docs/api-reference/chat-streaming has them.
    `thought` is the field of the message that holds what was thought."""
    choice = answer["choices"][0]
    message = choice["message"]
    head = {k: v for k, v in answer.items() if k not in ("choices", "usage")} | {"object": "chat.completion.chunk"}

    def chunk(delta: Tree, reason: str | None = None) -> Tree:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]}

    out = [chunk({"role": "assistant", "content": ""})]
    if message.get(thought):
        out += [chunk({thought: part}) for part in _parts(message[thought], pieces)]
    content = message.get("content")
    if isinstance(content, str):
        out += [chunk({"content": part}) for part in _parts(content, pieces)]
    elif content is not None:
        out += [chunk({"content": [part]}) for part in content]
    out += [chunk({name: message[name]}) for name in ("refusal", "tool_calls") if message.get(name)]
    out.append(chunk({}, choice["finish_reason"]))
    return [*out, head | {"choices": [], "usage": answer["usage"]}] if usage and "usage" in answer else out


def _parts(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return [text[i : i + size] for i in range(0, len(text), size)]


def streamed(answer: Tree, **how: Any) -> Reply:
    return Reply(pieces=[*(event(chunk) for chunk in chunks(answer, **how)), DONE])


# ---- what can go wrong ----------------------------------------------------------------------------
def rate_limited(seconds: float = 0.0) -> Reply:
    return _error(429, "Rate limit reached.", **{"Retry-After": str(seconds)})


def server_error(status: int = 500) -> Reply:
    return _error(status, "The server had an error.")


def silence(seconds: float = 60.0) -> Reply:
    return Reply(delay=seconds)


def no_json() -> Reply:
    return Reply(200, b"proxy: try again", {"Content-Type": "application/json"})


def rejects(parameter: str) -> Reply:
    return _error(400, f"Unsupported parameter: '{parameter}' is not supported with this model.", parameter)


def completion(content: str | None, finish_reason: str = "stop", refusal: str | None = None) -> Reply:
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "finish_reason": finish_reason, "message": message, "logprobs": None}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    head = {"id": "c", "object": "chat.completion", "created": 0, "model": "scripted"}
    return json_reply(200, head | {"choices": [choice], "usage": usage})


NAMED: dict[str, Callable[[], Reply]] = {
    "429": rate_limited,
    "500": server_error,
    "timeout": silence,
    "no_json": no_json,
    "malformed": lambda: completion('{"executor": "sequence", '),
    "wrong_schema": lambda: completion('{"executor": "alone"}'),
    "truncated": lambda: completion('{"executor": "seq', "length"),
    "refusal": lambda: completion(None, refusal="I cannot help with that."),
    "rejected": lambda: rejects("temperature"),
}


class ChatServer:
    def __init__(self, answer: Answer = respond, script: Sequence[Reply | str] = (), port: int = 0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._answer = answer
        self._script = [NAMED[entry]() if isinstance(entry, str) and entry != "ok" else entry for entry in script]
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def _reply(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        self.requests.append(request)
        self.headers.append(headers)
        entry = self._script.pop(0) if self._script else "ok"
        if isinstance(entry, Reply):
            return entry
        answer = self._answer(request)
        if isinstance(answer, Reply):
            return answer
        return streamed(answer) if request.get("stream") else json_reply(200, answer)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.partition("?")[0].endswith(("/chat/completions", "/responses")):
                    reply = server._reply(json.loads(body), {k.lower(): v for k, v in self.headers.items()})
                else:
                    reply = _error(404, f"there is no {self.path}")
                time.sleep(reply.delay)
                if reply.pieces:
                    with contextlib.suppress(OSError):  # the client has gone
                        self._stream(reply)
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body) + reply.cut))
                self.close_connection = self.close_connection or reply.cut
                self.end_headers()
                self.wfile.write(reply.body)

            def _stream(self, reply: Reply) -> None:
                """Server-sent events, one chunk each; without the last chunk's mark where the reply breaks off."""
                self.send_response(reply.status)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in reply.pieces:
                    time.sleep(reply.pace)
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                if reply.cut:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description="Chat Completions, answered by the rule-based model.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default="", help=f"comma-separated first replies: ok, {', '.join(NAMED)}")
    options = parser.parse_args()
    server = ChatServer(script=[name for name in options.script.split(",") if name], port=options.port)
    print(server.url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
