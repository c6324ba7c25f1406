"""Every key and action, those of the focused pane first, then the words of the console; Enter runs an action."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from rlgpt.console import keymap
from rlgpt.console.keymap import Key
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view.glossary import Term, terms, terms_in
from rlgpt.console.view.text import Entry, Span, columns, line, wrap

SCOPES = {
    "sessions": "sessions",
    "session": "session",
    "time": "timeline",
    "revisions": "plan",
    "plan": "plan, verdicts, log and calls",
    "code": "code",
    "curves": "curves",
    "world": "world",
    "log": "log",
    "override": "override editor",
    "compare": "compare",
    "leaderboard": "leaderboard",
    "inbox": "inbox",
    "series": "choice of series",
    "overlay": "choice of an overlay",
    "tour": "first tour",
    "skills": "skills",
    "doctor": "doctor",
    "new": "new session",
    "confirm": "questions",
    "form": "dialogs",
    "fields": "fields to fill in",
    "editor": "code editor",
    "filter": "filter",
    "help": "this help",
    "list": "lists",
    "app": "everywhere",
}


WRITTEN = 16
"""Cells of an action's keys, before the words on what it does."""
NEAR = "In the focused pane"
WORD = "word:"
"""Key of an entry that explains a word."""


class HelpScreen(Leavable, ModalScreen[None]):
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("help")

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._active = {b.binding.id: b for b in below.active_bindings.values() if b.binding.id}
        here = below.focused
        self._here = terms_in(here.seen()) if here is not None and hasattr(here, "seen") else []
        chain = [] if here is None else [w for w in here.ancestors_with_self if w is not below]
        self._near = {
            binding.id
            for widget in chain
            for _, binding in getattr(widget, "_bindings", ())
            if binding.id and widget is not below.app
        }

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="help") as box:
            box.border_title = "Keys, actions and words"
            box.border_subtitle = "type to search, ↑↓ choose, ⏎ runs, esc closes"
            yield Input(placeholder="search", id="search", compact=True)
            yield Lines(id="keys")

    def on_mount(self) -> None:
        self.call_after_refresh(self._fill)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        keys = self.query_one(Lines)
        width = keys.width
        entries: list[Entry] = []
        for title, described in self._sections():
            entries.append(Entry(f"title:{title}", (line((title, "head")),), selectable=False))
            entries += [self._entry(key, width) for key in described]
            if title == NEAR and self._here:
                entries.append(Entry("title:here", (line(("Words in the focused pane", "head")),), selectable=False))
                entries += [_meaning(term, width, "here:") for term in self._here]
        section = ""
        for term in terms():
            if term.section != section:
                section = term.section
                entries.append(
                    Entry(f"title:words:{section}", (line((f"Words: {section}", "head")),), selectable=False)
                )
            entries.append(_meaning(term, width))
        keys.set_entries(entries)

    def _sections(self) -> list[tuple[str, list[Key]]]:
        """The focused pane's keys, then what this screen can do, then what other screens can."""
        near = sorted((k for k in keymap.KEYS if k.id in self._near), key=lambda k: k.scope == "list")
        near = near if any(k.scope != "list" for k in near) else []  # a plain list: its screen's own keys come first
        out = [(NEAR, near)] if near else []
        scopes = sorted(SCOPES, key=lambda scope: not any(k.id in self._active for k in keymap.of(scope)))
        for scope in scopes:
            general = [k for k in keymap.of(scope) if k not in near]
            if general:
                title = SCOPES[scope]
                out.append((title[0].upper() + title[1:], general))
        return out

    def _entry(self, key: Key, width: int) -> Entry:
        possible = self._is_possible(key.id)
        shown = shell_of(self).user_keys.get(key.id, "") or (key.shown if key.shown else "")
        written = shown or ", ".join(
            keymap.written(Key(key.id, one, key.action, key.label, key.help)) for one in key.keys.split(",")
        )
        names = wrap(written, WRITTEN - 1, "key" if possible else "dim")
        told = wrap(key.help, max(width - WRITTEN - 1, 8), "" if possible else "dim")
        rows = [
            columns([((Span(" "), *name), WRITTEN), (words, max(width - WRITTEN - 1, 8))])
            for name, words in zip_longest(names, told, fillvalue=())
        ]
        return Entry(
            key.id,
            tuple(rows),
            search=f"{key.label} {key.help} {written} {key.id} {SCOPES.get(key.scope, '')}",
            yank=key.id,
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        keys = self.query_one(Lines)
        keys.set_filter(event.value)
        first = next((entry.key for entry in keys.entries if self._is_possible(entry.key)), "")
        if event.value and first:
            keys.select(first)

    def _is_possible(self, ident: str) -> bool:
        """Whether this is an action that can be done here and now."""
        return ident in self._active and self._active[ident].enabled

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one(Lines).action_choose()

    def action_move(self, by: int) -> None:
        keys = self.query_one(Lines)
        if by > 0:
            keys.action_cursor_down()
        else:
            keys.action_cursor_up()

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        if message.entry.key.startswith(WORD):
            return
        active = self._active.get(message.entry.key)
        app = self.app
        if active is None or not active.enabled:
            shell_of(self).tell("that is not possible here and now", "warning")
            return
        self.dismiss(None)
        app.call_later(app.run_action, active.binding.action, active.node)

    def action_close(self) -> None:
        self.dismiss(None)


def _meaning(term: Term, width: int, place: str = "") -> Entry:
    lines = (line((f" {term.word}", "bold")), *wrap(term.meaning, width, "dim", "   "))
    return Entry(
        f"{WORD}{place}{term.word}", lines, search=f"{term.word} {term.meaning}", yank=f"{term.word}: {term.meaning}"
    )
