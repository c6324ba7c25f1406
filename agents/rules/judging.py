"""The rule-based model as critic: counts what is in the views before and after, and compares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlgpt.agents.contracts import CritiqueReply
from rlgpt.agents.rules.book import NEVER, sub_action_name
from rlgpt.agents.rules.planning import SIGNED
from rlgpt.agents.rules.question import Question, rate_of
from rlgpt.store.intervals import wilson

_REMOVING = frozenset(["defeat", "kill", "remove", "destroy", "clear", "slay", "chase", "flee", "avoid"])
"""Verbs whose success is that there is less of their object."""
_ENDS = {"episode": "the agent died", "death": "the agent died", "time": "step limit"}
"""How a call ended, in words; the other ends speak for themselves."""
_IDLE = frozenset(
    [
        "a",
        "an",
        "and",
        "at",
        "by",
        "for",
        "from",
        "in",
        "it",
        "its",
        "of",
        "on",
        "or",
        "the",
        "then",
        "to",
        "until",
        "view",
        "with",
    ]
)


# ---- one sub-action -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Finding:
    success: bool
    confidence: float
    cause: str


def judge_item(question: Question) -> CritiqueReply:
    item = question["item"]
    trials = question.many.get("trial", ())
    if not trials:
        return _critique(
            False,
            0.6,
            "no trial got as far as this sub-action",
            slow=f"Something before {item['name']} fails.",
        )
    findings = [compare(f"{item['name']} {item['goal']}", trial) for trial in trials]
    bad = [finding for finding in findings if not finding.success]
    if not bad:
        return _critique(True, min(f.confidence for f in findings), findings[0].cause)
    worst = max(bad, key=lambda finding: finding.confidence)
    end = next((str(t.get("end", "")) for t, f in zip(trials, findings, strict=True) if f is worst), "")
    message = next((str(t.get("message", "")) for t, f in zip(trials, findings, strict=True) if f is worst), "")
    how = _ENDS.get(end, f"the call ended by {end}")
    cause = worst.cause + (f"; {how}" if end else "") + (f": {message}" if message else "")
    fast = f"Mend the error: {message}" if message else "Take a different approach; this one stops short of the goal."
    slow = "" if len(bad) < len(findings) else f"{item['name']} may be more than code can do."
    return _critique(False, worst.confidence, cause, slow=slow, fast=fast)


def compare(goal: str, trial: Mapping[str, Any]) -> Finding:
    """Whether what the goal speaks of has come about between `before` and `after`."""
    before, after = counts(trial.get("before")), counts(trial.get("after"))
    if before == after:
        return Finding(False, 0.95, "nothing that can be seen has changed")
    words = [w for w in re.findall(r"[a-z]+|\d+", goal.replace("_", " ").lower()) if w not in _IDLE]
    relevant = _relevant(words, before.keys() | after.keys())
    if not relevant:
        return Finding(False, 0.5, "cannot judge: the goal is not visible")
    removing = any(word in _REMOVING for word in words) and not any(len(_words(k)) > 1 for k in relevant)
    gains = {key: after[key] - before[key] for key in relevant}
    # What stands in a view both as a number and as a text (how far a door is open, and that it was reached) is told by
    # the number alone: their sum is no number of the view.
    then, now = counts(trial.get("before"), texts=False), counts(trial.get("after"), texts=False)
    changes = ", ".join(
        f"{key} {_plain(then.get(key, before[key]))} -> {_plain(now.get(key, after[key]))}" for key in relevant
    )
    if removing:
        return Finding(min(gains.values()) < 0, 0.7, changes)
    if max(gains.values()) <= 0:
        change = "went down" if min(gains.values()) < 0 else "did not rise"
        return Finding(False, 0.9, f"what the goal speaks of {change}: {changes}")
    wanted_gains = _number_asked_for(words, relevant)
    if wanted_gains and all(after[key] < wanted_gains for key in relevant):
        return Finding(False, 0.85, f"fewer than the {wanted_gains} asked for: {changes}")
    return Finding(True, 0.85, changes)


def counts(view: Any, *, texts: bool = True) -> Counter[str]:
    """What a view holds: numbers by their name and, with `texts`, texts by how often they occur; places in lists do not
    matter."""
    out: Counter[str] = Counter()

    def walk(node: Any, name: str) -> None:
        if isinstance(node, Mapping):
            for key, part in node.items():
                walk(part, str(key))
        elif isinstance(node, (list, tuple)):
            for part in node:
                walk(part, name)
        elif isinstance(node, str):
            if texts:
                out[node.lower()] += 1
        elif isinstance(node, (bool, int, float)):
            out[name.lower()] += node  # type: ignore[assignment]

    walk(view, "")
    return out


def _relevant(words: list[str], keys: Any) -> list[str]:
    """The keys all of whose words the goal has; of these the most specific."""
    fits = [(len(_words(key)), key) for key in keys if _words(key) and all(_in(part, words) for part in _words(key))]
    most = max((size for size, _ in fits), default=0)
    return sorted(key for size, key in fits if size == most)


def _words(key: str) -> list[str]:
    return re.findall(r"[a-z]+", key.lower())


def _in(part: str, words: list[str]) -> bool:
    """Whether a word of the goal is this one, or an inflection of it (wood, wooden; cow, cows)."""
    return any(w == part or (min(len(w), len(part)) >= 3 and _close(w, part)) for w in words)


def _close(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and long[len(short) :] in ("s", "es", "en", "ed", "d", "ing")


def _number_asked_for(words: list[str], relevant: list[str]) -> int:
    """The number that the goal puts before the thing (`collect 5 wood`), 0 if none."""
    for place, word in enumerate(words[:-1]):
        if word.isdigit() and any(_in(part, words[place + 1 : place + 3]) for k in relevant for part in _words(k)):
            return int(word)
    return 0


def _plain(value: float) -> str:
    return f"{value:g}"


# ---- an iteration -------------------------------------------------------------------------------
def judge_iteration(question: Question) -> CritiqueReply:
    measured, target = question["measured"], float(question["request"]["target"])
    episodes = measured.get("episodes", 0)
    if not episodes:
        return _critique(False, 0.9, "nothing was evaluated", fast="Evaluate before judging.")
    rate = rate_of(measured)
    if "score" in measured:
        ci = measured["ci95"]
        result = f"a score of {rate:.2f} in {episodes} dev episodes (95% interval {ci[0]:.2f} to {ci[1]:.2f})"
    else:
        ci = wilson(measured["successes"], episodes)  # that of the request is rounded: once more 0.8654 would be 0.86
        result = f"{measured['successes']}/{episodes} dev episodes succeeded (95% interval {ci[0]:.2f} to {ci[1]:.2f})"
    if rate >= target:
        return _critique(True, 0.9, f"{result}: the target {target:g} is reached")
    funnel = _shown_or_reached(measured, question.get("plan"), question.world.get("task_milestones") or ())
    lost = _largest_drop(funnel, question.get("plan"), episodes, measured.get("successes", 0))
    cause = result
    if lost:
        cause += f"; most are lost at {lost[0]}: {lost[1] - lost[2]} of the {lost[1]} that came to it"
    slow, fast = _advice(measured, question.get("config"), rate)
    return _critique(False, 0.9, cause + _comparison(measured, rate), slow=slow, fast=fast)


def _shown_or_reached(
    measured: Mapping[str, Any], plan: Mapping[str, Any] | None, milestones: Sequence[str]
) -> dict[str, int]:
    """The funnel; a step that no view shows counts as often as its milestone was reached, and not at all if it is
    none."""
    funnel = dict(measured.get("funnel") or {})
    reached = {sub_action_name(name): int((measured.get("milestones") or {}).get(name, 0)) for name in milestones}
    for item in plan["sub_actions"] if plan else ():
        name = item["name"]
        if item["done_when"] == NEVER and funnel.pop(name, None) is not None and name in reached:
            funnel[name] = reached[name]
    return funnel


def _largest_drop(
    funnel: Mapping[str, int], plan: Mapping[str, Any] | None, episodes: int, successes: int
) -> tuple[str, int, int] | None:
    """(sub-action, episodes that reached the one before, episodes that reached it) where most episodes end. What fewer
    episodes reached than did the task says nothing, such as one that is left to RL, whose predicate never holds."""
    names = [item["name"] for item in plan["sub_actions"]] if plan else list(funnel)
    worst, previous = None, episodes
    for name in names:
        if name not in funnel or int(funnel[name]) < successes:
            continue
        reached = int(funnel[name])
        if worst is None or previous - reached > worst[1] - worst[2]:
            worst = (name, previous, reached)
        previous = reached
    return worst if worst and worst[1] > worst[2] else None


def _comparison(measured: Mapping[str, Any], rate: float) -> str:
    alone = measured.get("plan_alone")
    if not alone or not alone.get("episodes"):
        return ""
    code = rate_of(alone)
    greedy, comparison = measured.get("greedy"), ""
    if greedy and greedy["episodes"]:
        played = rate_of(greedy)
        rate, comparison = max(rate, played), f", the policy's most probable actions {played:.2f}"
    ahead = "the policy is ahead" if rate > code else "the code alone is ahead" if code > rate else "they are level"
    if apart := measured.get("policy_minus_plan_alone"):
        mean, (low, high) = apart["score"], apart["ci95"]
        better = "the policy" if low > 0 else "the code alone" if high < 0 else "neither"
        shown = f"{mean:+.2f} [{low:+.2f}, {high:+.2f}] for the policy on the same seeds"
        return f"; code alone {code:.2f}{comparison}, {shown}: {better} is better"
    shown = f"{code:.2f}" if "score" in alone else f"{alone['successes']}/{alone['episodes']}"
    return f"; code alone {shown}{comparison}: {ahead}"


def _advice(measured: Mapping[str, Any], config: Mapping[str, Any] | None, rate: float) -> tuple[str, str]:
    if measured.get("ran") != "policy":
        return "The sequence stays below the target: put a policy on top of the code.", ""
    alone = measured.get("plan_alone")
    if alone and alone.get("episodes") and rate_of(alone) > rate:
        return "", "Slower learning and more prior on follow_plan: the policy lost what the code could do."
    usage = measured.get("option_usage") or {}
    unused = [name for name in (config or {}).get("options", ()) if not usage.get(name)]
    if unused:
        return "", f"The policy never chose {', '.join(unused[:4])}."
    return "", "More env steps with the same configuration."


def _critique(success: bool, confidence: float, cause: str, *, slow: str = "", fast: str = "") -> CritiqueReply:
    return CritiqueReply(
        success=success, confidence=confidence, cause=SIGNED + cause + ".", advice_slow=slow, advice_fast=fast
    )
