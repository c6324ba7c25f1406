"""A new session: the task by searching, the model, the budgets, and what it will cost before it starts."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import Button, Input, Label, Select, Static

from rlgpt.console import keymap, launch
from rlgpt.console.commands.limits import MOST_SESSIONS
from rlgpt.console.content import safe_content
from rlgpt.console.panes.check import Check
from rlgpt.console.panes.lines import Lines
from rlgpt.console.screens.leaving import Leavable
from rlgpt.console.shell import shell_of
from rlgpt.console.view.estimate import estimate, sentence
from rlgpt.console.view.numbers import many, typed
from rlgpt.console.view.text import Entry, columns, line, wrap
from rlgpt.store import catalog
from rlgpt.store.commands import MOST_BUDGET
from rlgpt.store.errors import StoreError

COST = "5"
NUMBERS = (
    ("iterations", "Refinements", "3", int),
    ("seed", "Seed", "0", int),
    ("seeds", "Sessions", "1", int),
    ("env_steps", "Env steps", "1000000", int),
    ("cost", "Cost, USD", COST, float),
    ("tokens", "Tokens", "2000000", int),
    ("hours", "Hours", "", float),
)
"""(id, label, default, type); an empty budget is no limit. As many sessions as wanted, each with the next seed."""


EMPTY = {"iterations": "0", "seed": "0", "seeds": "1"}
"""What an empty field means."""


class NewScreen(Leavable, Screen[None]):
    AUTO_FOCUS = "#search"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("new", "fields")

    def __init__(self) -> None:
        super().__init__()
        self._tasks: list[dict[str, Any]] = []
        self._past: list[catalog.Summary] = []
        self._prices: dict[str, Any] = {}
        self._starting = False
        self._started_count = 0
        self._untouched: list[object] = []
        """What is filled in at first; empty until the form is there."""

    def compose(self) -> ComposeResult:
        with Horizontal(id="new"):
            with Vertical(id="new-tasks", classes="pane") as left:
                left.border_title = "Task"
                yield Input(placeholder="search tasks", id="search")
                yield Lines(id="tasks")
            with VerticalScroll(id="new-form", classes="pane", can_focus=False) as right:
                right.border_title = "Session"
                keys = shell_of(self).user_keys
                start, other, leave = (keymap.short(f"new.{name}", keys) for name in ("start", "other_side", "leave"))
                right.border_subtitle = f"{start} starts, {other} other side, {leave} leaves"
                yield Static("", id="chosen")
                with Horizontal(classes="field"):
                    yield Label("World")
                    yield Select([("crafter", "crafter")], value="crafter", allow_blank=False, id="world", compact=True)
                with Horizontal(classes="field"):
                    yield Label("Model")
                    models = [
                        ("rule-based model", "rules"),
                        ("language model", "openai"),
                    ]
                    yield Select(models, value="rules", allow_blank=False, id="llm", compact=True)
                with Horizontal(classes="field llm"):
                    yield Label("Model name")
                    yield Input("gpt-5-mini", id="model", compact=True)
                with Horizontal(classes="field llm"):
                    yield Label("Base URL")
                    yield Input(placeholder="empty: api.openai.com", id="base_url", compact=True)
                for name, label, default, _ in NUMBERS:
                    with Horizontal(classes="field"):
                        yield Label(label)
                        yield Input(default, placeholder=EMPTY.get(name, "no limit"), id=_field_id(name), compact=True)
                with Horizontal(classes="field"):
                    yield Label("Critic")
                    yield Select(
                        [("model", "model"), ("you", "human"), ("none", "none")],
                        value="model",
                        allow_blank=False,
                        id="critic",
                        compact=True,
                    )
                with Horizontal(classes="field"):
                    yield Label("Skills")
                    yield Select(
                        [("all of the library", "all"), ("none", "none")],
                        value="all",
                        allow_blank=False,
                        id="skills",
                        compact=True,
                    )
                with Horizontal(classes="field"):
                    yield Label("Name")
                    yield Input(placeholder="the task and a number", id="name", compact=True)
                yield Check("review: plans wait for me", id="review", compact=True)
                yield Static("", id="cost")
                yield Static("", id="fault", classes="fault")
                yield Button(f"Start ({keymap.spelt('new.start', keys)})", variant="primary", id="start")

    def on_mount(self) -> None:
        self._untouched = self._filled()
        self._llm_changed()
        app = shell_of(self)
        launch.ask(app, "worlds", cached=True, kept=True, then=self._take_worlds)
        launch.ask(app, "prices", cached=True, kept=True, then=self._take_prices, failed=lambda _: None)
        self.run_worker(self._read_past, thread=True, exit_on_error=False)
        self._ask_tasks(launch.FIRST_WORLD)

    def _read_past(self) -> None:
        try:
            self._past = catalog.summaries()
        except (StoreError, OSError):
            return  # the estimate then says that there is no past session
        self.app.call_from_thread(self._show_cost)

    def _take_prices(self, answer: dict[str, Any]) -> None:
        self._prices = answer
        self._show_cost()

    def _take_worlds(self, answer: dict[str, Any]) -> None:
        names = [str(name) for name in answer["worlds"]]
        select = self.query_one("#world", Select)
        chosen = select.value
        select.set_options([(safe_content(name), name) for name in names])
        select.value = chosen if chosen in names else names[0]

    def _ask_tasks(self, world: str) -> None:
        self._show_tasks("reading the tasks …")
        launch.tasks(shell_of(self), world, self._take_tasks, self._show_tasks)

    def _take_tasks(self, answer: dict[str, Any]) -> None:
        self._tasks = list(answer["tasks"])
        tasks = self.query_one("#tasks", Lines)
        width = tasks.width
        entries = []
        for task in self._tasks:
            long = (" long", "accent") if task.get("long_horizon") else ""
            row = columns(
                [
                    (line((str(task["id"]), "bold"), long), min(26, width // 2)),
                    (line((str(task["prompt"]), "dim")), max(width - min(26, width // 2) - 1, 8)),
                ]
            )
            entries.append(
                Entry(
                    str(task["id"]),
                    (row,),
                    search=f"{task['id']} {task['prompt']}",
                    yank=str(task["id"]),
                    fields={"task": task},
                )
            )
        tasks.set_entries(entries)
        self._show_chosen()

    def _show_tasks(self, sentence_: str) -> None:
        tasks = self.query_one("#tasks", Lines)
        tasks.set_entries([Entry("note", tuple(wrap(sentence_, tasks.width, "dim")), selectable=False)])

    def on_resize(self) -> None:
        if self._tasks:
            self.call_after_refresh(self._take_tasks, {"tasks": self._tasks})

    # ---- the form -------------------------------------------------------------------------------
    @property
    def _chosen_task(self) -> dict[str, Any] | None:
        current = self.query_one("#tasks", Lines).current
        task = current.fields.get("task") if current else None
        return task if isinstance(task, dict) else None

    def on_lines_moved(self, message: Lines.Moved) -> None:
        self._show_chosen()

    def on_lines_chosen(self, message: Lines.Chosen) -> None:
        self.query_one("#llm").focus()

    def _show_chosen(self) -> None:
        task = self._chosen_task
        text = (
            f"{task['id']}: {task['prompt']} At most {task['horizon']} env steps an episode."
            if task
            else "No task chosen."
        )
        self.query_one("#chosen", Static).update(safe_content(text))

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "search":
            self.query_one("#tasks", Lines).set_filter(event.value)
            self._show_chosen()
        else:
            self._show_cost()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "search":
            self.query_one("#tasks").focus()
        else:
            self.screen.focus_next()

    def on_select_changed(self, event: Select.Changed) -> None:
        if event.select.id == "llm":
            self._llm_changed()
        if event.select.id == "world" and isinstance(event.value, str):
            self._ask_tasks(event.value)
        self._show_cost()

    def _llm_changed(self) -> None:
        shown = self.query_one("#llm", Select).value == "openai"
        for field in self.query(".llm"):
            field.display = shown

    def _show_cost(self) -> None:
        box = self.query_one("#cost", Static)
        if self.query_one("#llm", Select).value == "rules":
            box.update("Cost: none. Its results are titled “RL-GPT loop, scripted planner”.")
            return
        model = self.query_one("#model", Input).value.strip()
        price = self._prices.get(model)
        iterations = _or_none(self.query_one("#iterations", Input).value) or 0
        cost, tokens = (_or_none(self.query_one(f"#{name}", Input).value) for name in ("cost_", "tokens"))
        critic = str(self.query_one("#critic", Select).value)
        expected = estimate(model, int(iterations), (price[0], price[1]) if price else None, self._past, critic)
        each = _or_none(self.query_one("#seeds", Input).value) or 1
        of = "" if each == 1 else f" of each of {each:g} sessions"
        box.update(safe_content(f"Cost{of}: {sentence(expected, cost, tokens)}."))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_start()

    def _flags(self) -> dict[str, Any]:
        """A tree of settings, and how many `sessions` are wanted. Raises ValueError with the sentence."""
        task = self._chosen_task
        if task is None:
            raise ValueError("Choose a task on the left first.")
        values = {name: self._number(name) for name, *_ in NUMBERS}
        sessions = 1 if values["seeds"] is None else values["seeds"]
        if not 1 <= sessions <= MOST_SESSIONS:
            raise ValueError(f"At most {MOST_SESSIONS} sessions are started at once, at least one.")
        llm: dict[str, Any] = {"kind": str(self.query_one("#llm", Select).value)}
        if llm["kind"] == "openai":
            llm["model"] = self.query_one("#model", Input).value.strip()
            if url := self.query_one("#base_url", Input).value.strip():
                llm["base_url"] = url
            if self.query_one("#cost_", Input).value.strip() == COST:
                del values["cost"]  # nobody asked for it: a price that is unknown is no reason to refuse
        return {
            "task": task["id"],
            "world": str(self.query_one("#world", Select).value),
            "name": self.query_one("#name", Input).value.strip(),
            "seed": values["seed"] or 0,
            "sessions": sessions,
            "critic": str(self.query_one("#critic", Select).value),
            "skills": str(self.query_one("#skills", Select).value),
            "review": self.query_one("#review", Check).value,
            "llm": llm,
            "loop": {"iterations": values["iterations"] or 0},
            "budget": {name: values[name] for name in ("env_steps", "cost", "tokens", "hours") if name in values},
        }

    def _number(self, name: str) -> Any:
        """What a field holds, None for nothing. Raises ValueError with the sentence."""
        label, kind = next((label, kind) for field, label, _, kind in NUMBERS if field == name)
        try:
            return _number(self.query_one(f"#{_field_id(name)}", Input).value, kind)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{label} must be a {'whole ' if kind is int else ''}number.") from error

    def action_start(self) -> None:
        from rlgpt.console.commands.children import check_start
        from rlgpt.console.commands.failure import Failure

        if self._starting:
            return
        try:
            flags = self._flags()
            check_start()
        except (ValueError, Failure, StoreError) as error:
            self._failed(str(error))
            return
        self._starting, self._started_count = True, 0
        self.query_one("#fault", Static).update("starting …")
        number = flags.pop("sessions")
        self._create([flags | {"seed": flags["seed"] + n, "name": _numbered(flags["name"], n)} for n in range(number)])

    def _create(self, sessions: list[dict[str, Any]]) -> None:
        """Make and start the first of these sessions, then the others; the last one is opened, or they are listed."""
        flags, rest = sessions[0], sessions[1:]
        launch.ask(
            shell_of(self),
            "create",
            {"settings": flags},
            then=lambda answer: self._take_created(answer, rest),
            failed=self._failed,
        )

    def _failed(self, sentence_: str) -> None:
        self._starting = False
        if not self.is_left:
            self.query_one("#fault", Static).update(safe_content(sentence_))
        else:
            shell_of(self).tell(f"no session was started: {sentence_}", "error")

    def _take_created(self, answer: dict[str, Any], rest: list[dict[str, Any]]) -> None:
        from pathlib import Path

        from rlgpt.console.commands.children import start_worker
        from rlgpt.console.commands.failure import Failure

        try:
            start_worker(Path(answer["folder"]))
        except (OSError, Failure, StoreError) as error:
            self._failed(f"the worker could not be started: {error}")
            return
        self._started_count += 1
        if rest:
            if not self.is_left:
                self.query_one("#fault", Static).update(f"started {self._started_count}, {len(rest)} to go …")
            self._create(rest)
            return
        shell, was_left = shell_of(self), self.is_left
        self.dismiss(None)
        if was_left and self._started_count == 1:
            shell.tell(f"session {answer['id']} was started")
        elif self._started_count == 1:
            shell.open_session(str(answer["id"]), begun=True)
        else:
            shell.tell(f"{many(self._started_count, 'session')} started; those without a training slot wait for one")

    def action_other_side(self) -> None:
        inside = self.focused is not None and any(w.id == "new-form" for w in self.focused.ancestors)
        self.query_one("#tasks" if inside else "#world").focus()

    def _filled(self) -> list[object]:
        """What the operator may have filled in or chosen; the task can be chosen again at once."""
        inputs = [field.value for field in self.query(Input) if field.id != "search"]
        choices = [choice.value for choice in self.query(Select) if choice.id != "world"]
        return [*inputs, *choices, self.query_one("#review", Check).value]

    @property
    def unsent(self) -> str:
        """A sentence on what leaving would lose; empty if nothing, also once it is on its way."""
        kept = self._starting or not self._untouched or self._filled() == self._untouched
        return "" if kept else "What you filled in was not started."


def _numbered(name: str, place: int) -> str:
    """Names of a store are taken once; one that was left empty is made by the store."""
    return f"{name}-{place + 1}" if name and place else name


def _field_id(name: str) -> str:
    """Input ids; `cost` is the estimate's."""
    return "cost_" if name == "cost" else name


def _number(text: str, kind: type) -> Any:
    """Raises ValueError, OverflowError; 1.5 is no number of sessions."""
    if not text.strip():
        return None
    number = typed(text)
    if kind(number) != number:
        raise ValueError(text)
    return kind(number)


def _or_none(text: str) -> float | None:
    """A number while it is being typed; none that an estimate cannot count with."""
    try:
        number = typed(text)
    except ValueError:
        return None
    return number if 0 <= number < MOST_BUDGET else None
