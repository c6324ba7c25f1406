"""The skill library: search, read, test in the skill's world, retire, export, import."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input

from rlgpt.console import keymap, launch
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.files import new_file
from rlgpt.console.content import safe_content
from rlgpt.console.panes.bars import Bar, Footer
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.dialogs import Ask, FilterInput
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view import skills as view
from rlgpt.console.view.numbers import rate
from rlgpt.console.view.text import Entry, line
from rlgpt.store import skills as library
from rlgpt.store.errors import StoreError
from rlgpt.store.home import here, named_path
from rlgpt.store.skills import Skill


class SkillsScreen(Leavable, Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("skills")

    def __init__(self) -> None:
        super().__init__()
        self._tried: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        yield Bar(id="skills-title")
        with Horizontal(id="skills"):
            yield Lines(id="skill-list", classes="pane")
            yield Lines(id="skill", classes="pane")
        yield FilterInput()
        yield Footer()

    @property
    def _list(self) -> Lines:
        return self.query_one("#skill-list", Lines)

    @property
    def _skill(self) -> Skill | None:
        skill = self._list.current.fields.get("skill") if self._list.current else None
        return skill if isinstance(skill, Skill) else None

    def on_mount(self) -> None:
        self._list.border_title = "Skills"
        detail = self.query_one("#skill", Lines)
        detail.border_title = "Source"
        detail.cursor_shown = False
        self._list.focus()
        self.call_after_refresh(self._read)

    def on_resize(self) -> None:
        self.call_after_refresh(self._read)

    def _read(self) -> None:
        try:
            in_use, retired = library.skills(), library.skills(retired=True)
        except (StoreError, OSError) as error:
            shell_of(self).tell(str(error), "error")
            return
        self._list.set_entries(view.entries(in_use, retired, self._list.width))
        title = self.query_one("#skills-title", Bar)
        title.set_lines(
            [line(("rlgpt", "brand"), ("  Skills", "bold"), (f"  {len(in_use)} in use, {len(retired)} retired", "dim"))]
        )
        self._show()

    def _show(self) -> None:
        detail, skill = self.query_one("#skill", Lines), self._skill
        self._list.border_subtitle = safe_content(f"/{self._list.filter}" if self._list.filter else "")
        lines = view.detail(skill, self._tried.get(skill.hash, ""), detail.width) if skill else []
        detail.set_entries(
            [Entry("skill", tuple(lines), yank=skill.source if skill else "", selectable=False)] if lines else []
        )
        is_retired = bool(self._list.current and self._list.current.fields.get("retired"))
        self.query_one(Footer).labels = {"skills.retire": "take back"} if is_retired else {}
        shell_of(self).hints()

    def on_descendant_focus(self) -> None:
        self.call_after_refresh(shell_of(self).hints)

    def on_lines_moved(self, message: Lines.Moved) -> None:
        if message.pane is self._list:
            self._show()

    # ---- actions --------------------------------------------------------------------------------
    def action_test(self) -> None:
        skill = self._skill
        if skill is None:
            return
        self._tried[skill.hash] = f"trying it in {skill.world} …"
        self._show()
        launch.ask(
            shell_of(self),
            "try_skill",
            {"world": skill.world, "source": skill.source, "done_when": skill.done_when, "task": skill.task},
            then=lambda answer: self._tested(skill, answer),
            failed=lambda sentence: self._note(skill, sentence),
        )

    def _tested(self, skill: Skill, answer: dict[str, Any]) -> None:
        score = rate(int(answer["successes"]), int(answer["episodes"]))
        why = f": {answer['error']}" if answer.get("error") else ""
        self._note(skill, f"tried now from fresh episodes: {answer['outcome']} {score}{why}")

    def _note(self, skill: Skill, sentence: str) -> None:
        self._tried[skill.hash] = sentence
        if self.is_mounted:
            self._show()

    def action_retire(self) -> None:
        current, skill = self._list.current, self._skill
        if current is None or skill is None:
            return
        try:
            if current.fields.get("retired"):
                library.restore(skill.hash)
            else:
                library.retire(skill.hash)
        except (StoreError, OSError) as error:
            shell_of(self).tell(str(error), "error")
        self._read()

    def action_export(self) -> None:
        skill = self._skill
        if skill is None:
            return

        def write(path: str) -> None:
            with new_file(named_path(path)) as partial:
                partial.write_bytes(library.export([skill]))

        def answered(path: str | None) -> None:
            if path:
                self._attempt(lambda: write(path), f"written to {path}")

        self.app.push_screen(
            Ask(f"Export {skill.name}", "File to write:", str(here() / f"{skill.name}.skill.json")), answered
        )

    def action_import_file(self) -> None:
        def read(path: str) -> None:
            file = named_path(path)
            if not file.is_file():  # a pipe would be waited for
                raise Failure(f"there is no file {file}", Exit.USAGE)
            library.import_file(file)

        def answered(path: str | None) -> None:
            if path:
                self._attempt(lambda: read(path), f"read {path}")
                self._read()

        self.app.push_screen(
            Ask("Import skills", "File to read; its code runs only in the action host, and only when admitted:"),
            answered,
        )

    def _attempt(self, work: Any, done: str) -> None:
        try:
            work()
        except (Failure, StoreError, OSError) as error:
            shell_of(self).tell(str(error), "error")
        else:
            shell_of(self).tell(done)

    def action_filter(self) -> None:
        box = self.query_one(FilterInput)
        box.value = self._list.filter
        box.add_class("-open")
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter" and event.input.has_class("-open"):
            self._list.set_filter(event.value)
            self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self._list.set_filter(event.value)
            event.input.remove_class("-open")
            self._list.focus()

    def step_back(self) -> bool:
        """Show all again; False when all is shown."""
        if not self._list.filter:
            return False
        self._list.set_filter("")
        self._show()
        return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if isinstance(self.focused, Input) and action not in ("help", "command_palette"):
            return False
        if action in ("retire", "import_file") and shell_of(self).read_only:
            return False
        if action in ("test", "retire", "export"):
            return self._skill is not None
        return super().check_action(action, parameters)
