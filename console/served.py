"""The console as `rlgpt serve` starts it, once for each browser window: `python -m rlgpt.console.served [ID]`."""

from __future__ import annotations

import sys

from rlgpt.console.app import ConsoleApp
from rlgpt.store.home import home


def main(words: list[str]) -> int:
    names = [word for word in words if word != "--read-only"]
    app = ConsoleApp(home(), names[0] if names else None, read_only="--read-only" in words)
    return int(app.run() or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
