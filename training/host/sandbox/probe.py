"""Entry point of a process that locks itself like a host and then attacks. `doctor` and its tests start it."""

import sys
from pathlib import Path
from types import ModuleType

sandbox = Path(__file__).resolve().parent
for name, path in (
    ("rlgpt", []),
    ("rlgpt.training", [str(sandbox.parents[1])]),
    ("rlgpt.training.host", [str(sandbox.parent)]),
    ("rlgpt.training.host.sandbox", [str(sandbox)]),
):
    package = ModuleType(name)
    package.__path__ = path
    sys.modules[name] = package

from rlgpt.training.host.sandbox.attacks import ATTACKS, Target  # noqa: E402
from rlgpt.training.host.sandbox.serve import REQUESTS, begin, encode_protections, lock_down, receive, send  # noqa: E402
from rlgpt.training.host.wire import HELLO, TICK, Reader, Writer  # noqa: E402


def attack(parent: int) -> None:
    """Lock this process as the first message says, attack on the second, and answer with what the attack achieved."""
    page, buffer = begin()
    hello = receive(buffer)
    assert hello is not None, f"no message on descriptor {REQUESTS}"
    read = Reader(hello[2])
    mode, name = read.text(), read.text()
    target = Target(parent, read.text(), read.number(), read.number(), read.text())
    entry = ATTACKS[name]
    achieved = "" if entry.locked else entry.run(target)
    enforced = lock_down(mode, parent)
    send(hello[0], HELLO, encode_protections(enforced))
    request = receive(buffer)
    assert request is not None
    if entry.locked:
        page[0:8] = b"attacks!"
        try:
            achieved = entry.run(target)
        except (OSError, MemoryError, RuntimeError) as error:
            achieved = f"refused: {type(error).__name__}"
    send(request[0], TICK, Writer().text(achieved).done())


attack(int(sys.argv[1]))
