"""A host process without admission: sources are plain Python. Only tests name this file.

It is the real host process in everything else, so what it shows is what the operating-system lock does alone.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import ModuleType

host = Path(__file__).resolve().parents[2] / "training" / "host"
for name, path in (
    ("rlgpt", []),
    ("rlgpt.training", [str(host.parent)]),
    ("rlgpt.training.host", [str(host)]),
    ("rlgpt.training.host.sandbox", [str(host / "sandbox")]),
):
    package = ModuleType(name)
    package.__path__ = path
    sys.modules[name] = package

import ast  # noqa: E402

from rlgpt.training.host.sandbox import program, serve  # noqa: E402
from rlgpt.training.host.sandbox.admission import Checked  # noqa: E402

TOOLS = {"ctypes": ctypes, "os": os, "signal": signal, "socket": socket, "threading": threading, "Path": Path}


def unchecked(kind, source, vocabulary):
    tree = ast.parse(source)
    return Checked(kind, tree.body[-1].name, tree)


program.check = unchecked
program.BUILTINS = {**vars(__builtins__), **TOOLS}
serve.serve(int(sys.argv[1]))
