"""The funnel: for each sub-action the share of episodes that reached it, and where most of them are lost. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rlgpt.console.view.episodes import TASK, lost_at, of_evaluations, ordered
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import many, percent, rate
from rlgpt.console.view.text import Entry, Line, Span, fit, line, pad, spread, width_of, wrap
from rlgpt.console.view.words import ACTING, nothing
from rlgpt.store.history import EvaluationState, History, IterationState

WITH_INTERVAL = 64
"""Cells from which on a bar has room for its interval."""
TAIL, TAIL_WITH_INTERVAL = 17, 29
"""Cells behind a bar, so that all bars of a pane are of one scale."""
EIGHTHS = "▏▎▍▌▋▊▉"


class Share(NamedTuple):
    reached: int
    episodes: int

    @property
    def value(self) -> float:
        return self.reached / self.episodes if self.episodes else 0.0


@dataclass(frozen=True)
class Measured:
    """Some evaluations of one iteration on one split, together."""

    iteration: int
    variant: str
    numbers: tuple[int, ...]
    """Of the evaluations."""
    part: str
    """The task of the episodes where it is a part of the session's own, else ""."""
    shares: Mapping[str, Share]
    """By sub-action, in the order of the plan; last `TASK`, unless the result of the task is a score."""


@dataclass(frozen=True)
class Step:
    """One sub-action of the funnel."""

    name: str
    mode: str
    """code | rl; "" for the task itself."""
    dev: Share | None
    test: Share | None
    before: Share | None
    """In development of the iteration before; None where it was not measured."""
    lost: int
    """Episodes lost here: in development, in the test where there was none."""
    causes: tuple[tuple[str, int], ...] = ()
    """How these ended, the most frequent first; empty where it was not recorded."""
    without: int = 0
    """Episodes, at least, whose task was done though this was not reached."""


@dataclass(frozen=True)
class Funnel:
    dev: Measured | None
    test: Measured | None
    before: Measured | None
    steps: tuple[Step, ...]
    recorded: bool
    """Whether it is known which episodes were lost where; else `lost` is the difference of two shares."""
    lost_worlds: Mapping[str, int] = field(default_factory=dict)
    """What the worlds of lost episodes hold none of (`no diamond anywhere`) -> in how many of them; of the evaluations
    that `Step.lost` counts. Empty where worlds do not tell or all hold what is asked for."""

    @property
    def scored(self) -> bool:
        """Whether the result is a score: its sub-actions need not follow one another, so none is a place of loss."""
        measured = self.dev or self.test
        return measured is not None and TASK not in measured.shares

    @property
    def worst(self) -> Step | None:
        """Where most episodes are lost."""
        worst = max(self.steps, key=lambda step: step.lost, default=None)
        return worst if worst and worst.lost else None


def funnel(m: Moment) -> Funnel:
    """Of the newest iteration that was evaluated at the cursor, the test of the best one, and the iteration before."""
    h = m.history
    evaluated = [i for i in h.iterations if parts_of(i, "dev")]
    dev = _measured(h, evaluated[-1], "dev") if evaluated else None
    earlier = [i for i in evaluated[:-1] if i.sub_task == evaluated[-1].sub_task] if evaluated else []
    before = _measured(h, earlier[-1], "dev") if earlier else None
    tested = [i for i in h.iterations if parts_of(i, "test")]
    test = _measured(h, tested[-1], "test") if tested else None
    base = dev or test
    if base is None:
        return Funnel(None, None, None, (), False)
    played = list(of_evaluations(m, base.numbers))
    recorded = any(e.reached is not None for e in played)
    lost = lost_at(played)
    iteration = (evaluated or tested)[-1]
    parts = parts_of(iteration, "dev" if dev else "test")
    plan = h.plans.get(parts[-1].revision)
    steps = []
    came = next(iter(base.shares.values())).episodes if base.shares else 0
    for name, share in base.shares.items():
        item = plan.item(name) if plan else None
        drop = max(0, came - share.reached)
        came = share.reached
        causes = lost.get(name)
        steps.append(
            Step(
                name,
                item.mode if item else "",
                dev.shares.get(name) if dev else None,
                test.shares.get(name) if test else None,
                before.shares.get(name) if before else None,
                (sum(causes.values()) if causes else 0) if recorded else 0 if h.scored else drop,
                tuple(causes.most_common()) if causes else (),
                went_on(base.shares, name) - share.reached,
            )
        )
    return Funnel(dev, test, before, tuple(steps), recorded, _lost_worlds(parts))


def _lost_worlds(parts: Sequence[EvaluationState]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part.failures.get("lost_worlds", {}))
    return dict(found.most_common())


def went_on(measured: Mapping[str, Share], name: str) -> int:
    """Episodes, at least, that reached a sub-action or did the task without it. A score has no such end: each of its
    sub-actions counts for itself."""
    done = measured[TASK].reached if TASK in measured else 0
    return max(measured[name].reached, done)


def shares(h: History, revision: int) -> Mapping[str, Share]:
    """How often each sub-action of a plan was reached in development; {} where the plan was not evaluated."""
    for iteration in reversed(h.iterations):
        parts = parts_of(iteration, "dev")
        if parts and parts[-1].revision == revision:
            return _measured(h, iteration, "dev").shares
    return {}


def played_by(h: History, revision: int) -> str:
    """The variant that played the episodes of `shares`; "" where there are none."""
    for iteration in reversed(h.iterations):
        parts = parts_of(iteration, "dev")
        if parts and parts[-1].revision == revision:
            return parts[-1].variant
    return ""


def parts_of(iteration: IterationState, split: str) -> list[EvaluationState]:
    """The evaluations of what acts of an iteration, of the revision evaluated last."""
    variant = _variant(iteration, split)
    parts = [e for e in iteration.evaluations if (e.split, e.variant) == (split, variant)]
    return [e for e in parts if (e.revision, e.run) == (parts[-1].revision, parts[-1].run)]


def _variant(iteration: IterationState, split: str) -> str:
    return iteration.result.variant if iteration.result and split == "dev" else "full"


def _measured(h: History, iteration: IterationState, split: str) -> Measured:
    parts = parts_of(iteration, split)
    episodes = sum(e.episodes for e in parts)
    shares = {
        name: Share(sum(e.funnel.get(name, 0) for e in parts), episodes)
        for name in dict.fromkeys(name for e in parts for name in ordered(h, e))
    }
    if not h.scored:
        shares[TASK] = Share(sum(e.successes for e in parts), episodes)
    part = h.part(iteration.sub_task) if split == "dev" else ""
    return Measured(iteration.number, _variant(iteration, split), tuple(e.number for e in parts), part, shares)


# ---- what the pane and the command show ------------------------------------------------------------
def entries(shown: Funnel, width: int, ended: bool = False) -> list[Entry]:
    if not shown.steps:
        text = nothing("No evaluation", ended, "the funnel comes with the first development episodes.")
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    out = [Entry("head", tuple(_head(shown, width)), selectable=False)]
    worst = shown.worst
    for position, step in enumerate(shown.steps, 1):
        part = shown.dev.part if shown.dev and step.name == TASK else ""
        out.append(_entry(step, position, step is worst, shown.scored, width, part))
    if not shown.recorded:
        text = "This session did not record which episode reached what: "
        text += "which was missing first is not known." if shown.scored else "the losses are differences of two bars."
        out.append(Entry("unrecorded", tuple(wrap(text, width, "dim")), selectable=False))
    return out


def _head(shown: Funnel, width: int) -> list[Line]:
    parts = []
    if shown.dev:
        of = f" of {shown.dev.part}" if shown.dev.part else ""
        acting = ACTING.get(shown.dev.variant, shown.dev.variant)
        parts.append(f"dev of iteration {shown.dev.iteration}{of} ({acting})")
    if shown.test:
        whole = ", of the whole task" if shown.dev and shown.dev.part else ""
        parts.append(f"test of iteration {shown.test.iteration}{whole}")
    if shown.before:
        parts.append(f"change since iteration {shown.before.iteration}")
    lines = wrap("Episodes that reached each sub-action: " + ", ".join(parts), width, "dim", most=4)
    worst = shown.worst
    if worst:
        causes = ", ".join(f"{cause} {number}" for cause, number in worst.causes[:3])
        where = "The first that is missing is most often" if shown.scored else "Most are lost at"
        sentence = f"{where} {worst.name}: {many(worst.lost, 'episode')}" + (f" ({causes})" if causes else "")
        lines += wrap(sentence, width, "bad", most=2)
    if shown.lost_worlds:
        worlds = ", ".join(f"{clause} in {number}" for clause, number in shown.lost_worlds.items())
        lines += wrap(f"Worlds of lost episodes: {worlds}", width, "warn", most=3)
    return lines


def _entry(step: Step, position: int, worst: bool, scored: bool, width: int, part: str) -> Entry:
    """`part`: what development counts as the task, where it is a part of it."""
    causes = ", ".join(f"{cause} {number}" for cause, number in step.causes[:3])
    count = f"first missing in {step.lost}" if scored else f"{step.lost} lost"
    loss = f"{'▼ ' if worst else ''}{count}" + (f": {causes}" if causes else "") if step.lost else ""
    left = line(
        (f"{position:>2} ", "dim"), (step.name, "bold"), (f" {step.mode}" if step.mode else "", "dim"),
        (f", in dev {part}" if part else "", "dim"),
    )  # fmt: skip
    right = line((loss, "bad bold" if worst else "warn"))
    if not loss and step.without:
        right = line((f"the task was done without it in {step.without}", "dim"))
    lines = [spread(left, right, width)]
    change = _change(step)
    for split, share in (("dev", step.dev), ("test", step.test)):
        if share is not None:
            lines.append(_bar(split, share, change if split == "dev" else (), width))
    words = f"{step.name}: " + ", ".join(
        f"{split} {share.reached}/{share.episodes}"
        for split, share in (("dev", step.dev), ("test", step.test))
        if share is not None
    )
    return Entry(
        f"step:{step.name}", tuple(lines), search=f"{step.name} {loss}", yank=f"{words} {loss}".strip(),
        fields={"item": step.name, "lost": step.lost},
    )  # fmt: skip


def _change(step: Step) -> Line:
    if step.dev is None or step.before is None:
        return ()
    by = round(100 * step.dev.value) - round(100 * step.before.value)
    if not by:
        return line((" ±0", "dim"))
    return line((f" {by:+d}", "ok" if by > 0 else "bad"))


def _bar(split: str, share: Share, change: Sequence[Span], width: int) -> Line:
    words = rate(share.reached, share.episodes, interval=width >= WITH_INTERVAL)
    if width < WITH_INTERVAL:
        words += f" {percent(share.value):>4}"
    tail = pad((Span(f" {words}"), *change), TAIL_WITH_INTERVAL if width >= WITH_INTERVAL else TAIL)
    lead = line((f"   {split:<4} ", "dim"))
    room = max(width - width_of(lead) - width_of(tail), 4)
    eighths = round(share.value * room * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full + (EIGHTHS[rest - 1] if rest else "")
    style = "curve2" if split == "dev" else "curve5"
    empty = "·" * (room - len(bar))
    return fit((*lead, Span(bar, style), Span(empty, "axis"), *tail), width)


def tree(shown: Funnel) -> dict[str, Any]:
    """`rlgpt funnel --json`."""
    worst = shown.worst
    return {
        "iteration": shown.dev.iteration if shown.dev else None,
        "variant": shown.dev.variant if shown.dev else None,
        "test_iteration": shown.test.iteration if shown.test else None,
        "before_iteration": shown.before.iteration if shown.before else None,
        "recorded": shown.recorded,
        "worst": worst.name if worst else None,
        "lost_worlds": dict(shown.lost_worlds),
        "steps": [
            {
                "name": step.name,
                "mode": step.mode or None,
                "dev": _share(step.dev),
                "test": _share(step.test),
                "before": _share(step.before),
                "lost": step.lost,
                "done_without": step.without,
                "causes": dict(step.causes),
            }
            for step in shown.steps
        ],
    }


def _share(share: Share | None) -> dict[str, int] | None:
    return share._asdict() if share else None
