"""What the console remembers between runs: theme, pane layout, the sessions list's order. One JSON file in the home."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlgpt.console.view.layout import Choices

FILE = "console.json"


@dataclass
class Preferences:
    theme: str = ""
    choices: Choices = field(default_factory=Choices)
    sort: str = "started"
    reverse: bool = True
    toured: bool = False
    """Whether the tour was seen."""

    @classmethod
    def load(cls, home: Path) -> Preferences:
        """The stored preferences; the defaults where the file is missing, damaged or of another version."""
        try:
            fields = json.loads((home / FILE).read_text())
            choices, toured = _choices(fields["choices"]), bool(fields.get("toured", False))
            return cls(str(fields["theme"]), choices, str(fields["sort"]), bool(fields["reverse"]), toured)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def save(self, home: Path) -> None:
        """Store the preferences, atomically. A home that cannot be written is ignored."""
        with contextlib.suppress(OSError):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = home / f".{FILE}.new"
            draft.write_text(json.dumps(asdict(self)))
            draft.replace(home / FILE)


def _choices(fields: dict[str, Any]) -> Choices:
    widths = {str(k): tuple(map(float, v)) for k, v in fields["widths"].items()}
    heights = {str(k): tuple(tuple(map(float, x)) for x in v) for k, v in fields["heights"].items()}
    shown = {str(k): str(v) for k, v in fields["shown"].items()}
    return Choices(widths, heights, shown)
