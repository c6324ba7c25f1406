"""Why PPO does not improve: tests of the newest run, each with its number and a key that may help. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import decimal, many, measured, percent
from rlgpt.console.view.options import PRIMITIVE, rows_of
from rlgpt.console.view.text import Entry, line, spread, wrap
from rlgpt.console.view.words import nothing
from rlgpt.store.history import History, IterationState, Run

Floats = NDArray[np.float64]
RECENT = 10
"""Updates that a test of the present looks at."""
LEAST = 10
"""Updates below which nothing is said of a trend."""
COLLAPSED = 0.05
"""Normalised entropy below which a policy hardly explores: one action has about 99% at two, 98% at seventeen."""
STILL = 1e-4
"""Approximate KL of an update below which the policy hardly moves; usual are 0.003 to 0.03 (Schulman et al. 2017,
whose adaptive penalty aims at 0.01)."""
FOLLOW_PLAN = "follow_plan"
CUT = 0.5
"""Share of option calls ended from outside above which the policy learns mostly from broken calls."""
UNUSED = 0.01
"""Share of decisions below which primitives, or options, count as unused."""
SIGNIFICANT = 2.0
"""Standard errors by which a slope or a difference must lie above zero."""


@dataclass(frozen=True)
class Finding:
    test: str
    """flat_return | entropy | kl | option_ends | code_alone | primitives; stable, named in JSON."""
    title: str
    bad: bool | None
    """None: there is nothing to say yet, or it is not decided."""
    value: float | None
    shown: str
    """The number, as a person reads it."""
    sentence: str
    action: str = ""
    """Id of the key that may help (`keymap.KEYS`), "" where nothing is wrong."""
    advice: str = ""


COMMANDS = {
    "session.override": "rlgpt override",
    "session.edit_code": "rlgpt edit",
    "session.advise": "rlgpt advise",
    "session.stop_training": "rlgpt stop-training",
    "session.budget": "rlgpt budget",
}
"""The command that does what a key does."""


def findings(m: Moment) -> list[Finding]:
    """Of the newest PPO run at the cursor; [] before the first."""
    h = m.history
    if not h.runs:
        return []
    rows = rows_of(m, h.runs[max(h.runs)])
    return [
        _flat_return(m, rows),
        _entropy(m, rows),
        _kl(m, rows),
        _option_ends(m, rows),
        _code_alone(h),
        _primitives(m, rows),
    ]


def _flat_return(m: Moment, rows: Any) -> Finding:
    title = "return rises"
    values = m.metrics.column("return_mean")[rows]
    values = values[np.isfinite(values)]
    if len(values) < LEAST:
        return _unknown("flat_return", title, f"fewer than {LEAST} updates with an ended episode")
    flat = flat_for(values)
    last = float(values[-RECENT:].mean())
    if not flat:
        return Finding("flat_return", title, False, 0.0, decimal(last), "The return rises over the last updates.")
    key, advice = "session.advise", "Ask the fast agent for another reward, or for a higher learning rate."
    if m.history.runs[max(m.history.runs)].state == "running":
        key = "session.stop_training"
        advice = "End this run and go on with the next iteration, or change what it is paid for."
    return Finding(
        "flat_return", title, True, float(flat), f"flat for {flat:,}",
        f"The return has been flat for {many(flat, 'update')}, at about {decimal(last)} an episode.", key, advice,
    )  # fmt: skip


def flat_for(values: Floats) -> int:
    """The longest of the last 10, 20, 40 ... values, at most all, over which no rise can be told from noise; 0 for
    none of them: the values rise."""
    sizes = [LEAST]
    while sizes[-1] * 2 <= len(values):
        sizes.append(sizes[-1] * 2)
    flat = [size for size in (*sizes, len(values)) if not rises(values[-size:])]
    return max(flat) if LEAST in flat else 0


def rises(values: Floats) -> bool:
    """Whether a straight line through the values has a slope above zero by two standard errors."""
    n = len(values)
    x = np.arange(n) - (n - 1) / 2
    spread_ = float((x**2).sum())
    slope = float((x * values).sum()) / spread_
    rest = values - values.mean() - slope * x
    error = float(np.sqrt((rest**2).sum() / (n - 2) / spread_))
    return slope > SIGNIFICANT * error and slope > 0


def _entropy(m: Moment, rows: Any) -> Finding:
    value = _recent(m, "entropy", rows)
    if value is None:
        return _unknown("entropy", "the policy explores", "no update was made")
    began = _mean(m, "entropy", rows[:RECENT])
    settled = value < COLLAPSED
    bad = settled and not (began is not None and began < COLLAPSED)
    sentence = "The policy still tries others"
    if settled:
        sentence = "The policy has settled on one action in nearly every state" + ("" if bad else ", as it began")
    return Finding(
        "entropy", "the policy explores", bad, value, decimal(value), f"{sentence}: entropy {decimal(value)} of 1.",
        *_help(bad, "session.advise", "Ask the fast agent for a higher entropy coefficient."),
    )  # fmt: skip


def _kl(m: Moment, rows: Any) -> Finding:
    value = _recent(m, "kl", rows)
    if value is None:
        return _unknown("kl", "updates move the policy", "no update was made")
    bad = abs(value) < STILL
    sentence = "Updates hardly change the policy any more" if bad else "Updates change the policy"
    return Finding(
        "kl", "updates move the policy", bad, value, decimal(value), f"{sentence}: approximate KL {decimal(value)}.",
        *_help(bad, "session.advise", "Ask the fast agent for a higher learning rate or another reward."),
    )  # fmt: skip


def _recent_sums(m: Moment, prefix: str, rows: Any) -> dict[str, float]:
    """The columns of this prefix, summed over the last updates."""
    recent = rows[-RECENT:]
    return {
        name.removeprefix(prefix): float(np.nansum(m.metrics.column(name)[recent]))
        for name in m.metrics.names
        if name.startswith(prefix)
    }


def _option_ends(m: Moment, rows: Any) -> Finding:
    """Without follow_plan, which goes on where it was after every cut."""
    title = "coded actions end by themselves"
    ends: dict[str, float] = {}
    for name, calls in _recent_sums(m, "ended:", rows).items():
        slot, _, reason = name.rpartition(":")
        if slot != FOLLOW_PLAN:
            ends[reason] = ends.get(reason, 0.0) + calls
    total = sum(ends.values())
    if not total:
        return _unknown("option_ends", title, "no coded action was called")
    limit, interrupt = ends.get("cap", 0.0), ends.get("alarm", 0.0)
    share = (limit + interrupt) / total
    bad = share > CUT
    sentence = (
        f"{percent(share)} of the calls {_lately(rows)} were cut off: {percent(limit / total)} by their limit of env "
        f"steps, {percent(interrupt / total)} by an interrupt of the world. follow_plan is not counted."
    )
    advice = "Let the code return earlier, or ask for a longer limit."
    if interrupt > limit:
        advice = "Let the code go on through interrupts (`ignore_alarm = True`)."
    return Finding(
        "option_ends", title, bad, share, percent(1 - share), sentence, *_help(bad, "session.edit_code", advice)
    )  # fmt: skip


def _code_alone(h: History) -> Finding:
    title = "PPO is better than the code alone"
    compared = [i for i in h.iterations if _played(i, "plan") and _played(i, "full")]
    if not compared:
        return _unknown("code_alone", title, "policy and code alone were not compared")
    iteration = compared[-1]
    policy, code = h.pooled(iteration, "dev", "full"), h.pooled(iteration, "dev", "plan")
    greedy = h.pooled(iteration, "dev", "greedy")
    best = greedy if greedy.episodes and greedy.value > policy.value else policy
    by = best.value - code.value
    better = iteration.verdict.better if iteration.verdict else ""
    bad = None if better == "undecided" else better == "code" if better else best.low <= code.high
    sentence = f"Policy {measured(best)}, code alone {measured(code)} in development of iteration {iteration.number}."
    return Finding(
        "code_alone", title, bad, by, f"{by:+.2f}", sentence,
        *_help(bool(bad), "session.override", "Leave to RL what the code cannot do, or let the code run the plan."),
    )  # fmt: skip


def _played(iteration: IterationState, variant: str) -> bool:
    parts = [e for e in iteration.evaluations if (e.split, e.variant) == ("dev", variant)]
    return bool(parts) and (variant != "full" or parts[-1].policy == "ppo")


def _primitives(m: Moment, rows: Any) -> Finding:
    title = "primitives and coded actions are both used"
    usage = _recent_sums(m, "usage:", rows)
    total = sum(usage.values())
    if not total or len(rows) == 0:
        return _unknown("primitives", title, "no update was made")
    run = m.history.runs[max(m.history.runs)]
    share = usage.get(PRIMITIVE, 0.0) / total
    if not run.slots:
        return Finding("primitives", title, None, None, "–", "This run has no coded actions.")
    if not _offers_primitives(m.history, run):
        return Finding("primitives", title, None, None, "–", "This run was given no primitives.")
    sentence = f"{percent(share)} of the decisions {_lately(rows)} are primitives."
    if share < UNUSED:
        sentence += " The policy only calls code, so it can do no more than the code."
    elif share > 1 - UNUSED:
        sentence += " The policy never calls the code that was written for it."
    bad = share < UNUSED or share > 1 - UNUSED
    advice = "Ask the fast agent for a smaller prior of coded actions."
    if share > UNUSED:
        advice = "Ask the fast agent for a larger prior of coded actions."
    return Finding("primitives", title, bad, share, percent(share), sentence, *_help(bad, "session.advise", advice))


def _offers_primitives(h: History, run: Run) -> bool:
    """Whether the run's configuration names some; true where it cannot be told."""
    configs = [i.config.config for i in h.iterations if run.run in i.runs and i.config]
    return not configs or bool(configs[-1].get("primitives", True))


def _lately(rows: Any) -> str:
    """Over what `_recent_sums` adds up."""
    return f"of the last {many(min(RECENT, len(rows)), 'update')}"


def _recent(m: Moment, name: str, rows: Any) -> float | None:
    return _mean(m, name, rows[-RECENT:])


def _mean(m: Moment, name: str, rows: Any) -> float | None:
    values = m.metrics.column(name)[rows]
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None


def _help(bad: bool, action: str, advice: str) -> tuple[str, str]:
    return (action, advice) if bad else ("", "")


def _unknown(test: str, title: str, why: str) -> Finding:
    return Finding(test, title, None, None, "–", f"Nothing can be said: {why}.")


# ---- what the pane and the command show ------------------------------------------------------------
def entries(tests: Sequence[Finding], keys: dict[str, str], width: int, ended: bool = False) -> list[Entry]:
    """`keys`: action id -> how its key is written. A session that has ended takes no key."""
    keys = {} if ended else keys
    if not tests:
        text = nothing("No PPO run", ended, "the tests come with the first one.")
        return [Entry("note", tuple(wrap(text, width, "dim")), selectable=False)]
    wrong = sum(bool(f.bad) for f in tests)
    ahead = any(f.test == "code_alone" and f.bad is False for f in tests)
    undecided = any(f.test == "code_alone" and f.bad is None and f.value is not None for f in tests)
    found = "what may hold PPO back" if undecided else "why PPO does not improve"
    sentence = f"{wrong} of {len(tests)} tests find {found}" if wrong else "no test finds a cause"
    if ahead:
        sentence = "PPO is better than the code alone"
        sentence += f"; {wrong} of {len(tests)} tests find what may hold it back" if wrong else ""
    head = wrap(sentence, width, "ok" if ahead or not wrong else "bad")
    return [Entry("head", tuple(head), selectable=False), *(_entry(f, keys, width) for f in tests)]


def _entry(f: Finding, keys: dict[str, str], width: int) -> Entry:
    glyph, style = {True: ("✗", "bad"), False: ("✓", "ok"), None: ("○", "dim")}[f.bad]
    lines = [spread(line((f"{glyph} ", style), (f.title, "bold" if f.bad else "")), line((f.shown, style)), width)]
    lines += wrap(f.sentence, width, "" if f.bad else "dim", "  ")
    if f.action:
        advice = wrap(f"{keys.get(f.action, '')} {f.advice}".strip(), width, "accent", "    ")
        lines += [line(("  → ", "accent"), *advice[0][1:]), *advice[1:]]
    return Entry(f"why:{f.test}", tuple(lines), search=f"{f.title} {f.sentence}", yank=f.sentence)


def tree(f: Finding) -> dict[str, Any]:
    """One element of `rlgpt why --json`."""
    return {
        "test": f.test, "bad": f.bad, "value": f.value, "sentence": f.sentence,
        "advice": f.advice or None, "key": f.action or None, "command": COMMANDS.get(f.action),
    }  # fmt: skip
