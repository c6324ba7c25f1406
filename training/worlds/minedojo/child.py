"""The bridge child: one MineDojo environment behind length-prefixed msgpack frames. Run as a script.

It runs under the interpreter that has MineDojo, which may be another than rlgpt's: so it imports the standard library,
numpy, msgpack and the client only, nothing from rlgpt, and is valid on Python 3.9. `game.py` is the environment. Each
request has one reply:
`{"op": ..., ...}` gives `{"ok": {...}}` or `{"error": {"kind", "sentence", "trace"}}`. The reply pipe is a duplicate of
fd 1, which then points to fd 2, because the client and the game print. On EOF, on a signal, or when its
parent is gone, it ends every process that carries its mark, a game that is just being launched as well, and itself.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, BinaryIO

PROTOCOL = 3


def load_file(path: str) -> Any:
    """The module in a file of rlgpt, loaded by its path because rlgpt may not be importable here."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GAME: Any = load_file(str(Path(__file__).with_name("game.py")))


class Child:
    """The request loop."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, shim: str, memory_mb: int, marks: str, mark: str) -> None:
        self.requests, self.replies = requests, replies
        self.shim, self.memory_mb = shim, memory_mb
        self.marks, self.mark = load_file(marks), mark
        self.client: Any = None
        self.numpy: Any = None
        self.msgpack: Any = None
        self.game: Any = None

    def serve(self) -> None:
        self.msgpack = importlib.import_module("msgpack")
        self.numpy = importlib.import_module("numpy")
        while True:
            head = self._read(4)
            if head is None:
                return
            (size,) = struct.unpack("!I", head)
            body = self._read(size)
            if body is None:
                return
            request = self.msgpack.unpackb(body)
            answer = self._answer(request)
            packed = self.msgpack.packb(answer)
            self.replies.write(struct.pack("!I", len(packed)) + packed)
            self.replies.flush()
            if request["op"] == "close":
                return

    def _read(self, count: int) -> bytes | None:
        parts = b""
        while len(parts) < count:
            part = self.requests.read(count - len(parts))
            if not part:
                return None
            parts += part
        return parts

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"ok": self._perform(request)}
        except GAME.Refused as error:
            return {"error": {"kind": error.kind, "sentence": str(error), "trace": traceback.format_exc()[-4000:]}}
        except MemoryError:
            return {"error": {"kind": "memory", "sentence": "The MineDojo process ran out of memory.", "trace": ""}}
        except Exception as error:  # every failure of the client becomes a reply the parent can store
            sentence = f"MineDojo failed in {request.get('op')}: {type(error).__name__}: {str(error)[:300]}"
            return {"error": {"kind": "client", "sentence": sentence, "trace": traceback.format_exc()[-4000:]}}

    def _perform(self, request: dict[str, Any]) -> Any:
        operation = request["op"]
        if operation == "hello":
            return self._hello(bool(request.get("patch", True)), str(request.get("malmo") or ""))
        if operation == "catalogue":
            return GAME.catalogue(self.client)
        if operation == "make":
            if self.game is not None:
                self.game.close()
            self.game = None
            self.game = GAME.Game(self.client, self.numpy, request)
            gc.collect()
            gc.freeze()  # the client's tables are a million objects, which later collections then skip
            shape = self.game.env.observation_space["rgb"].shape
            return {"nvec": [int(n) for n in self.game.env.action_space.nvec], "rgb": [int(n) for n in shape]}
        if operation == "close":
            if self.game is not None:
                self.game.close()
            return {}
        if self.game is None:
            raise GAME.Refused("order", f"{operation} was asked before make")
        if operation == "reset":
            return self.game.reset(int(request["seed"]))
        if operation == "step":
            return self.game.step(request["command"])
        if operation == "jpeg":
            return {"jpeg": self.game.jpeg(int(request["width"]), int(request["quality"]))}
        raise GAME.Refused("order", f"unknown operation {operation!r}")

    def _hello(self, patch: bool, malmo: str) -> dict[str, Any]:
        if self.memory_mb:
            limit = resource.getrlimit(resource.RLIMIT_AS)[1]
            resource.setrlimit(resource.RLIMIT_AS, (self.memory_mb << 20, limit))
        try:
            self.client = GAME.load_client(self.shim)
        except ImportError as error:
            if any(words in str(error) for words in ("allocate memory", "failed to map segment")):
                sentence = "The MineDojo process ran out of memory while importing the client."
                raise GAME.Refused("memory", sentence) from error
            raise GAME.Refused("import", f"{sys.executable} cannot import MineDojo: {error}.") from error
        if patch:
            GAME.stop_copying_statistics(self.client)
            GAME.send_messages_whole()
        instance: Any = importlib.import_module("minedojo.sim.bridge.mc_instance.instance")
        if malmo:
            instance.MC_DIR = malmo
        self._launch_without_limit(instance.MinecraftInstance)
        metadata = importlib.import_module("importlib.metadata")
        return {
            "protocol": PROTOCOL,
            "python": ".".join(map(str, sys.version_info[:3])),
            "minedojo": metadata.version("minedojo"),
            "numpy": self.numpy.__version__,
            "malmo": instance.MC_DIR,
        }

    def _launch_without_limit(self, kind: Any) -> None:
        """Make the client start the game without this process's memory limit, which a child process would inherit."""
        launch = kind._launch_minecraft

        def unlimited(instance: Any, *args: Any, **kwargs: Any) -> Any:
            soft, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            try:
                return launch(instance, *args, **kwargs)
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

        kind._launch_minecraft = unlimited

    def end(self) -> None:
        """Kill every other process with this one's mark: games lead process groups of their own, and the client does
        not know a game before it is ready. After this, a launch in another thread can start no process."""
        subprocess.Popen.__init__ = start_nothing  # type: ignore[method-assign]
        with contextlib.suppress(ImportError):  # no psutil: no client either, so no game
            self.marks.end_marked(self.mark, os.environ[self.mark], spare=[os.getpid()])


def start_nothing(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError("the bridge child is ending")


def watch_parent(child: Child, parent: int) -> None:
    """End the child when its parent is gone. While a read from the game's socket blocks, EOF on the pipe goes unseen,
    so the parent's process id is watched too."""
    while os.getppid() == parent:
        time.sleep(0.5)
    child.end()
    os._exit(3)


def main() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    # sys.path[0] is this file's folder: its other modules must not shadow the client's
    own_folder = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != own_folder]
    child = Child(requests, replies, sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(3))
    threading.Thread(target=watch_parent, args=(child, os.getppid()), daemon=True).start()
    code = 0
    try:
        child.serve()
    except BaseException:  # `os._exit` below prints no traceback
        traceback.print_exc()
        code = 1
    finally:
        child.end()
        os._exit(code)


if __name__ == "__main__":
    main()
