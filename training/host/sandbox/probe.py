"""First file of a process that is locked like a host and then attacks: what `doctor` and its tests start."""

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
from rlgpt.training.host.sandbox.serve import REQUESTS, begin, lock_down, receive, send, told  # noqa: E402
from rlgpt.training.host.wire import HELLO, TICK, Reader, Writer  # noqa: E402


def attack(parent: int) -> None:
    """Locks itself as the first message says, attacks on the second, answers with what it achieved."""
    page, buffer = begin()
    hello = receive(buffer)
    assert hello is not None, f"no message on descriptor {REQUESTS}"
    read = Reader(hello[2])
    mode, name = read.text(), read.text()
    target = Target(parent, read.text(), read.number(), read.number(), read.text())
    chosen = ATTACKS[name]
    achieved = "" if chosen.locked else chosen.run(target)
    enforced = lock_down(mode, parent)
    send(hello[0], HELLO, told(enforced))
    request = receive(buffer)
    assert request is not None
    if chosen.locked:
        page[0:8] = b"attacks!"
        try:
            achieved = chosen.run(target)
        except (OSError, MemoryError, RuntimeError) as error:
            achieved = f"refused: {type(error).__name__}"
    send(request[0], TICK, Writer().text(achieved).done())


attack(int(sys.argv[1]))
