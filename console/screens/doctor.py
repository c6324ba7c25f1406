"""What is and is not available on this machine, and how to mend it."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from rlgpt.console import keymap, launch
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view.doctor import conclusion
from rlgpt.console.view.text import Entry, line, wrap


class DoctorScreen(Leavable, Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("doctor")

    def __init__(self) -> None:
        super().__init__()
        self._findings: list[dict[str, Any]] = []
        self._note = ""

    def compose(self) -> ComposeResult:
        yield Bar(id="doctor-title")
        yield Lines(id="findings", classes="pane")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(Lines).border_title = "Doctor"
        self.query_one(Lines).focus()
        self.call_after_refresh(self.action_again)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def action_again(self) -> None:
        """Check again. The last findings stay on the screen meanwhile, which takes some seconds."""
        self._findings, self._note = [], "looking at this machine …"
        launch.run(shell_of(self), "doctor", kept=True, then=self._take, failed=self._failed)
        if self._findings:
            self._note = "as it was last time; looking again …"
        self._draw()

    def _take(self, answer: dict[str, Any]) -> None:
        self._findings = list(answer["findings"])
        self._note = conclusion(self._findings)
        self._draw()

    def _failed(self, sentence: str) -> None:
        self._note = f"the check itself failed: {sentence}"
        self._draw()

    def _draw(self) -> None:
        lines = self.query_one(Lines)
        width = lines.width
        self.query_one("#doctor-title", Bar).set_lines(
            [line(("rlgpt", "brand"), ("  Doctor", "bold"), (f"  {self._note}", "dim"))]
        )
        entries: list[Entry] = []
        area = ""
        for number, finding in enumerate(self._findings):
            if finding["area"] != area:
                area = str(finding["area"])
                entries.append(Entry(f"area:{area}", (line((area, "head")),), selectable=False))
            entries.append(_entry(number, finding, width))
        lines.set_entries(entries or [Entry("note", tuple(wrap(self._note, width, "dim")), selectable=False)])
        shell_of(self).hints()


def _entry(number: int, finding: dict[str, Any], width: int) -> Entry:
    glyph, style = ("✓", "ok") if finding["ok"] else ("○", "warn") if finding["optional"] else ("✗", "bad")
    lines = wrap(f"{finding['item']}: {finding['sentence']}", width - 4, "", "")
    shown = [(*line((f" {glyph} ", style)), *lines[0]), *((*line("   "), *rest) for rest in lines[1:])] if lines else []
    if not finding["ok"] and finding["cure"]:
        shown += wrap(f"fix: {finding['cure']}", width, "accent", "     ")
    return Entry(
        str(number),
        tuple(shown),
        search=f"{finding['item']} {finding['sentence']}",
        yank=str(finding["cure"] or finding["sentence"]),
    )
