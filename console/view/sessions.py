"""The sessions list: one line a session, columns by what fits, most telling first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlgpt.console.keymap import NO_KEYS, short
from rlgpt.console.view.forks import branches
from rlgpt.console.view.numbers import count, day_time, duration, measured, money, size
from rlgpt.console.view.text import Entry, Line, Span, columns, fit, line, wrap
from rlgpt.console.view.words import PHASES, RULES, waiting_word

if TYPE_CHECKING:
    from rlgpt.store.catalog import Summary
    from rlgpt.store.history import Measured

SORTS: dict[str, Callable[[Any], Any]] = {
    "started": lambda s: s.started_at,
    "name": lambda s: s.name,
    "task": lambda s: (s.task, s.started_at),
    "state": lambda s: (state(s)[0], s.started_at),
    "success": lambda s: (_rate(s), s.started_at),
    "cost": lambda s: s.cost,
    "env steps": lambda s: s.env_steps,
    "size": lambda s: s.size,
}
FORKS = "forks"
"""The order in which forks stand below the session they go on from."""


def _rate(s: Summary) -> float:
    result, _ = newest_result(s)
    return result.value if result.episodes else -1.0


def newest_result(s: Summary) -> tuple[Measured, str]:
    """(result, split): of the test evaluation if there is one, else dev."""
    if s.test_episodes:
        return s.test, "test"
    return s.dev, dev_word(s) if s.dev_episodes else ""


def dev_word(s: Summary) -> str:
    """Development of a sub-task says so: it is no result of the task that is named beside it."""
    return f"dev of part {s.dev_part}" if s.dev_part else "dev"


def model_words(model: str) -> str:
    return RULES if model == "rules" else f"replay of {model[7:]}" if model.startswith("replay:") else model


def state(s: Summary, hung: Collection[str] = ()) -> tuple[str, str]:
    """(word, style). `hung`: ids of sessions whose progress is overdue."""
    if s.fault:
        return "damaged", "bad"
    if s.status == "ended":
        return s.result, {"succeeded": "ok", "finished": "ok", "stopped": "warn"}.get(s.result, "bad")
    if not s.alive:
        return ("not started", "dim") if s.status == "created" else ("dead", "bad")
    if s.id in hung:
        return "hung", "bad"
    if s.status in ("waiting", "paused"):
        return ("paused" if s.status == "paused" else waiting_word(s.waiting_for)), "warn"
    return PHASES.get(s.phase, s.phase or "starting"), "accent"


QUEUED = "training slot"
"""What a session that waits for its turn says it waits for."""
NODE = "node"
"""The column that only a list with a session on another machine has."""
_COLUMNS: tuple[tuple[str, int, int], ...] = (
    ("state", 20, 1),
    (NODE, 14, 1),
    ("name", 22, 1),
    ("task", 22, 6),
    ("model", 17, 4),
    ("iter", 5, 7),
    ("success", 28, 2),
    ("env steps", 9, 8),
    ("cost", 8, 5),
    ("age", 7, 3),
    ("size", 8, 9),
    ("started", 16, 10),
    ("tags", 16, 11),
)
"""(name, width, rank: a lower one is placed first)."""


def shown_columns(width: int, elsewhere: bool = False) -> list[tuple[str, int]]:
    """The columns that fit; what is left over widens the name. `elsewhere`: some session is on another machine."""
    spare = width - 3
    fitting = set()
    for name, wide, rank in sorted(_COLUMNS, key=lambda column: column[2]):
        if name == NODE and not elsewhere:
            continue
        if wide + 1 <= spare or rank == 1:
            fitting.add(name)
            spare -= wide + 1
    wider = min(max(spare, 0), 30)
    return [(name, wide + (wider if name == "name" else 0)) for name, wide, _ in _COLUMNS if name in fitting]


def sorts(width: int, elsewhere: bool = False) -> list[str]:
    """The orders whose column can be seen."""
    seen = {name for name, _ in shown_columns(width, elsewhere)} | {"started"}
    return [name for name in SORTS if name in seen]


def header(width: int, sort: str, reverse: bool, elsewhere: bool = False) -> Line:
    cells: list[tuple[Line, int]] = [(line(("  ", "")), 2)]
    for name, wide in shown_columns(width, elsewhere):
        chosen = name == sort or (name, sort) in (("age", "started"), ("name", FORKS))
        falls = reverse != (name == "age")  # the newest first is the least age first
        arrow = ("▼" if falls else "▲") if chosen and sort != FORKS else ""  # forks stand below their parents
        cells.append((line((f"{name}{arrow}", "head" if chosen else "dim")), wide))
    return columns(cells)


def entries(
    summaries: Sequence[Summary],
    width: int,
    now: float,
    *,
    sort: str = "started",
    reverse: bool = True,
    marked: frozenset[str] = frozenset(),
    hung: Collection[str] = (),
    keys: Mapping[str, str] = NO_KEYS,
) -> list[Entry]:
    """Sorted; an empty store gets a sentence on what to do."""
    if not summaries:
        pressed = short("sessions.new", keys)
        text = f"No sessions yet. Press {pressed} for a new one, or run `rlgpt run make_stone_pickaxe` in a shell."
        return [Entry("note", ((), *wrap(text, width, "dim", "  ")), selectable=False)]
    shown = shown_columns(width, any(s.node for s in summaries))
    if sort == FORKS:
        return [_entry(b.summary, shown, width, now, b.summary.id in marked, hung, b.stem) for b in branches(summaries)]
    ordered = sorted(summaries, key=SORTS.get(sort, SORTS["started"]), reverse=reverse)
    return [_entry(s, shown, width, now, s.id in marked, hung) for s in ordered]


def _entry(
    s: Summary,
    shown: Sequence[tuple[str, int]],
    width: int,
    now: float,
    marked: bool,
    hung: Collection[str],
    stem: str = "",
) -> Entry:
    word, style = state(s, hung)
    model, tags = model_words(s.model), " ".join(s.tags)
    iteration = "–" if s.iteration is None else str(s.iteration)
    result, split = newest_result(s)
    success = measured(result)
    if len(success) + 1 + len(split) > dict(shown).get("success", width):  # the preview has the interval
        success = measured(result, interval=False) + (f" n={result.episodes}" if result.score is not None else "")
    values: dict[str, Line] = {
        "state": line(("● ", style), (word, style)),
        "node": line((s.node, "dim")),
        "name": line((stem, "dim"), (s.name or s.id, "bold"), (" ⑂", "dim") if s.parent_id and not stem else ""),
        "task": line(s.task),
        "model": line((model, "dim")),
        "iter": line(iteration),
        "success": line((success, "bold" if split == "test" else ""), (f" {split}", "dim") if split else ""),
        "env steps": line((f"{count(s.env_steps):>7}", "")),
        "cost": line(("–" if s.fault else money(s.cost, s.unknown_price), "")),
        "age": line(("–" if s.fault else duration(now - s.started_at), "dim")),
        "size": line((f"{size(s.size):>7}", "dim")),
        "started": line(("–" if s.fault else day_time(s.started_at), "dim")),
        "tags": line((tags, "accent")),
    }
    cells: list[tuple[Line, int]] = [((Span("■ ", "accent") if marked else Span("  "),), 2)]
    cells += [(values[name], wide) for name, wide in shown]
    lines = [columns(cells)]
    if s.fault:
        lines.append(fit(line(("    " + s.fault, "bad")), width))
    search = f"{s.id} {s.name} {s.task} {s.world} {model} {word} {tags} {s.node}"
    return Entry(s.id, tuple(lines), search=search, yank=s.id, fields={"summary": s})
