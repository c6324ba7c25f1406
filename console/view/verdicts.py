"""The verdicts pane: what was concluded, by whom, whether measurement agrees, and what was advised."""

from __future__ import annotations

from collections.abc import Mapping

from rlgpt.console.keymap import NO_KEYS, short
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import measured
from rlgpt.console.view.text import Entry, Line, Span, fit, line, spread, wrap
from rlgpt.console.view.words import ACTING, ENDED, ENDS, RULES, VARIANTS, needed_from_person, nothing
from rlgpt.store import failures
from rlgpt.store.history import Attempt, EvaluationState, History, IterationState, VerdictState


def agreement(h: History) -> tuple[int, int]:
    """(verdicts that measurement agrees with, verdicts it can judge), critics only."""
    verdicts = [a.verdict for a in h.attempts if a.verdict] + [i.verdict for i in h.iterations if i.verdict]
    judged = [v for v in verdicts if v.measured is not None and v.author == "critic"]
    return sum(v.success == v.measured for v in judged), len(judged)


def entries(
    m: Moment, width: int, expanded: frozenset[str] = frozenset(), keys: Mapping[str, str] = NO_KEYS
) -> list[Entry]:
    """Oldest first: the newest stands at the bottom."""
    h = m.history
    entries_at: list[tuple[int, Entry]] = []
    for attempt in h.attempts:
        if attempt.verdict:
            entries_at.append((attempt.verdict.seq, _attempt(m, attempt, attempt.verdict, width, expanded)))
    for iteration in h.iterations:
        for evaluation in iteration.evaluations:
            entries_at.append((evaluation.seq, _evaluation(m, iteration, evaluation.number, width)))
        if iteration.verdict:
            entries_at.append((iteration.verdict.seq, _iteration(m, iteration, iteration.verdict, width, expanded)))
    out = [entry for _, entry in sorted(entries_at, key=lambda pair: pair[0])]
    agreed, judged = agreement(h)
    if judged:
        who = RULES if m.rules else "critic"
        head = wrap(f"{who} agrees with measurement in {agreed}/{judged} verdicts", width, "dim")
        out.insert(0, Entry("agreement", tuple(head), selectable=False))
    if needed_from_person(h.waiting_for) == "verdict":
        pressed = short("session.verdict", keys)
        text = f"You are the critic: press {pressed} to give your verdict on what is shown in the code and world panes."
        out.append(Entry("manual", tuple(wrap(text, width, "warn")), selectable=False))
    if not out:
        out.append(Entry("note", (line((nothing("No verdicts", h.status == "ended"), "dim")),), selectable=False))
    return out


def _author(m: Moment, verdict: VerdictState) -> str:
    return "rule-based critic" if m.rules and verdict.author == "critic" else verdict.author


def _sure(verdict: VerdictState) -> str:
    return f"{verdict.confidence:.0%} sure"


def _mark(verdict: VerdictState) -> Span:
    return Span("✓" if verdict.success else "✗", "ok" if verdict.success else "bad")


def _agrees(attempt: Attempt, verdict: VerdictState) -> Span:
    """Whether the trials say the same."""
    if verdict.measured is None:
        return Span("not measured", "dim")
    trial = attempt.trial
    share = f" ({trial.successes}/{trial.episodes})" if trial and trial.episodes else ""
    if verdict.measured == verdict.success:
        return Span(f"trials agree{share}", "ok")
    claimed, measured_ = ("yes", "no") if verdict.success else ("no", "yes")
    return Span(f"critic said {claimed}, trials say {measured_}{share}", "bad")


def _attempt(m: Moment, attempt: Attempt, verdict: VerdictState, width: int, expanded: frozenset[str]) -> Entry:
    key = f"attempt:{attempt.sub_action}:{attempt.version}"
    left = line(
        " ",
        _mark(verdict),
        (f" {attempt.sub_action} v{attempt.version}", "bold"),
        (f" {_author(m, verdict)}, {_sure(verdict)}", "dim"),
    )
    lines: list[Line] = [spread(left, [_agrees(attempt, verdict)], width)]
    open_ = key in expanded
    lines += wrap(verdict.cause, width, "", "   ", most=0 if open_ else 2)
    if open_:
        lines += _advice(verdict, width)
        lines += _evidence(attempt, width)
    return Entry(
        key,
        tuple(lines),
        search=f"{attempt.sub_action} {verdict.cause} {verdict.advice_fast}",
        yank=_words(verdict),
        seq=verdict.seq,
        fields={"item": attempt.sub_action, "version": attempt.version},
    )


def _iteration(
    m: Moment, iteration: IterationState, verdict: VerdictState, width: int, expanded: frozenset[str]
) -> Entry:
    key = f"iteration:{iteration.sub_task}:{iteration.number}"
    best = m.history.incumbent is iteration
    left = [
        _mark(verdict),
        Span(f" iteration {iteration.number}", "head"),
        Span(" ★ best so far" if best else "", "accent"),
        Span(f" {_author(m, verdict)}, {_sure(verdict)}", "dim"),
    ]
    right = [Span(measured(m.history.developed(iteration), interval=width >= 60), "bold")]
    lines: list[Line] = [spread(left, right, width)]
    if verdict.better:
        code = m.history.pooled(iteration, "dev", "plan")
        words = {
            "code": "code alone is better",
            "policy": "the policy is better than code alone",
            "undecided": "policy or code alone: not decided at 95%",
            "only one": "nothing to compare: only one of code and policy was measured",
        }
        text = words.get(verdict.better, verdict.better)
        if code.episodes and not (iteration.result and iteration.result.variant == "plan"):
            text += f" (code alone {measured(code)})"
        lines += wrap(text, width, "accent", "   ")
    lines += _decided(m, iteration, width)
    lines += wrap(verdict.cause, width, "", "   ", most=0 if key in expanded else 3)
    if key in expanded:
        lines += _advice(verdict, width)
        played = [e for e in iteration.evaluations if (e.split, e.variant) == ("dev", "full")]
        for evaluation in played[-1:]:
            lines += lost(evaluation.failures.get("lost"), "a lost episode", width)
    return Entry(
        key,
        tuple(lines),
        search=verdict.cause,
        yank=_words(verdict),
        seq=verdict.seq,
        fields={"iteration": iteration.number},
    )


def _decided(m: Moment, iteration: IterationState, width: int) -> list[Line]:
    """What acts of the iteration and why, and why it is the best so far."""
    lines: list[Line] = []
    if iteration.result:
        lines += wrap(f"acts: {ACTING[iteration.result.variant]} ({iteration.result.why})", width, "dim", "   ")
    if m.history.incumbent is iteration:
        lines += wrap(f"best so far: {m.history.incumbents[iteration.sub_task].why}", width, "dim", "   ")
    return lines


def _evaluation(m: Moment, iteration: IterationState, number: int, width: int) -> Entry:
    e = next(e for e in iteration.evaluations if e.number == number)
    name = f"{e.split} · {_player(m, iteration, e)}"
    style = "bold" if e.split == "test" else ""
    left = line((" ▪ ", "curve2"), (name, style))
    lines: list[Line] = [spread(left, [Span(measured(e.measured, interval=width >= 56), style)], width)]
    if e.funnel and e.episodes and e.variant == "full":
        lines += wrap(
            "reached " + "  ".join(f"{k} {v}/{e.episodes}" for k, v in e.funnel.items()), width, "dim", "   ", most=3
        )
    ends = e.failures.get("ends")
    if ends and isinstance(ends, dict):
        shares = (f"{ENDED.get(why, why)} {n}/{e.episodes}" for why, n in ends.items())
        lines += wrap("ended " + "  ".join(shares), width, "dim", "   ")
    if e.dead_loops and e.variant == "full":
        lines.append(line((f"   dead loops {e.dead_loops}/{e.episodes}", "warn")))
    return Entry(f"evaluation:{number}", tuple(lines), search=name, yank=f"{name} {measured(e.measured)}", seq=e.seq)


def _player(m: Moment, iteration: IterationState, e: EvaluationState) -> str:
    """Who plays: a test is played by what acts of its iteration, and a sequence of code has no policy."""
    acting = iteration.result.variant if iteration.result and e.split == "test" and e.variant == "full" else e.variant
    plan = m.history.plans.get(e.revision)
    if acting == "full" and plan is not None and plan.executor == "sequence":
        acting = "plan"
    return VARIANTS.get(acting, acting)


def _advice(verdict: VerdictState, width: int) -> list[Line]:
    lines: list[Line] = []
    for agent, text in (("slow", verdict.advice_slow), ("fast", verdict.advice_fast)):
        if text:
            lines += wrap(f"to the {agent} agent: {text}", width, "accent", "   ")
    return lines


def _evidence(attempt: Attempt, width: int) -> list[Line]:
    """Before and after of the trials the critic was shown."""
    lines: list[Line] = []
    evidence = attempt.trial.evidence if attempt.trial else {}
    for name, style in (("good", "ok"), ("bad", "bad")):
        shown = evidence.get(name)
        if not isinstance(shown, dict):
            continue
        end = str(shown.get("end", ""))
        lines.append(
            line((f"   a trial that ended {'well' if name == 'good' else 'badly'}: {ENDS.get(end, end)}", style))
        )
        for part in ("before", "after", "difference", "yields", "message"):
            if shown.get(part):
                lines += wrap(f"{part}: {_flat(shown[part])}", width, "dim", "     ", most=3)
    return lines + lost(evidence.get("lost"), "a failed trial", width)


def lost(failed: object, what: str, width: int) -> list[Line]:
    """How one lost episode went, as the agents are told."""
    lines: list[Line] = []
    for failure in failures.choose(failed if isinstance(failed, list) else [], 1):
        lines.append(line((f"   {what}", "bad")))
        lines += [fit(line((f"     {text}", "dim")), width) for text in failures.told(failure).split("\n")]
    return lines


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_flat(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(v) for v in value)
    return str(value)


def _words(verdict: VerdictState) -> str:
    parts = (verdict.cause, verdict.advice_slow, verdict.advice_fast)
    return "\n".join(part for part in parts if part)
