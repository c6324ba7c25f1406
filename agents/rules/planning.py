"""Planner and slow agent of the rule-based model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlgpt.agents.contracts import Executor, PlanReply, SubActionReply, SubTask, TaskPlanReply
from rlgpt.agents.rules.book import Book, Step
from rlgpt.agents.rules.directives import Directives, directives
from rlgpt.agents.rules.question import Question, rate_of

SIGNED = "Rule-based model: "
OFFERED_FROM = 1_000_000
"""Env steps left from which an option is offered: when to call one was learnt in 2M env steps, and not in 0.4M
(docs/evidence.md)."""
CAREFULLY = " With more care: the plan stays below its target."
"""Said in the goal of code that does its work while the plan does not: the fast agent then takes the last version of
the script book, which loses less in what comes later (docs/evidence.md, "Arms on collect_diamond")."""
GAINED = 0.9
"""Share of the episodes of a sub-task in which a later one's milestone came by the way, so that it needs no work."""


def order(question: Question) -> TaskPlanReply:
    """Sub-tasks in the order of the recipes, the task itself last; without those worked on, or gained by the way."""
    done = list(question.get("done") or ())
    over = {str(entry["task"]) for entry in done}
    shares = done[-1].get("gained", {}) if done else {}
    gained = {name for name, share in shares.items() if share >= GAINED}
    open_tasks = [str(n) for n in question["sub_tasks"] if n not in over and _milestone(str(n)) not in gained]
    task = str(question["request"]["task"])
    book = Book(question)
    reached = {m for step in book.steps([*book.goals, *open_tasks]) for m in (step.name, *_gives(step))}
    ordered = [name for name in _by_need(book, open_tasks) if name != task and name in reached]
    needed = {name for step in book.steps([*book.goals, task]) for name in (step.name, *_gives(step))}
    chosen = [name for name in ordered if name in needed] or [name for name in open_tasks if name != task]
    sub_tasks = [
        SubTask(task=n, goal=f"{_milestone(n).replace('_', ' ').capitalize()}.", reason="A recipe needs it later.")
        for n in chosen
    ]
    last = SubTask(task=task, goal=str(question.world.get("prompt", task)), reason="The task itself.")
    reason = SIGNED + "sub-tasks in the order in which the recipes of the world sheet need them."
    if done:
        have = ", ".join(sorted(gained)) or "nothing"
        reason = SIGNED + f"the episodes of the last sub-task end with {have}; what the recipes still need comes next."
    return TaskPlanReply(sub_tasks=[*sub_tasks, last][-12:], reason=reason)


def _milestone(task: str) -> str:
    """Sub-tasks are named like the milestone they end with, or `task/milestone`."""
    return task.rpartition("/")[2]


def _gives(step: Step) -> tuple[str, ...]:
    return step.script.gives if step.script else ()


def _by_need(book: Book, names: list[str]) -> list[str]:
    """`names`, each behind those that it needs."""
    out: list[str] = []
    for step in book.steps(names):
        out += [name for name in names if name not in out and name in (step.name, *_gives(step))]
    return out + [name for name in names if name not in out]


# ---- plans --------------------------------------------------------------------------------------
def plan(question: Question) -> PlanReply:
    """From the recipes at first; then the plan in force, changed where it was measured to lose."""
    book = Book(question)
    last = question.get("plan")
    if last is None:
        learnt = {str(item["name"]) for item in question.get("before") or () if item["mode"] == "rl"}
        items = [_new(step, question) for step in book.plan()][:24] or [_whole_task(question)]
        items = [*items, *_offered(items, question, book)][:24]
        items = [_left_to_rl(i, "Left to RL in the sub-task before.") if i.name in learnt else i for i in items]
    else:
        items = [_unrefuted(item, book) for item in last["sub_actions"]]
        for item in last["sub_actions"]:
            if again := _tried_again(item, book):
                items = _put_back(again, [i for i in items if i.name != again.name], book)
        items = _with_more_care(items, question, book)
    instructions = _instructions(question, book, items)
    items = _obeyed(items, instructions, book)
    items = _with_pins(items, question)
    executor = _executor(items, question, instructions)
    return PlanReply(executor=executor, sub_actions=items, rationale=SIGNED + _rationale(question, book, executor))


def refine(question: Question) -> PlanReply:
    """Failed sub-actions get what they lack in front of them; those that lack nothing are left to RL."""
    book = Book(question)
    request = question["request"]
    failed, last_depth = set(request["failed"]), bool(request["last_depth"])
    before = question["plan"]
    names = [item["name"] for item in before["sub_actions"]]
    items: list[SubActionReply] = []
    for item in before["sub_actions"]:
        new_item = _unrefuted(item, book)
        if item["name"] in failed and item["mode"] == "option":
            continue
        if item["name"] in failed:
            missing = [] if last_depth else book.missing_before(item["name"], [*names, *(i.name for i in items)])
            items += [_new(step, question) for step in missing]
            if not missing and request.get("only_mode") != "code":
                why = item.get("critique") or item.get("error") or f"success {item.get('measured', '0/0')} in trials"
                new_item = _left_to_rl(new_item, f"No code of it was accepted: {why}")
        items.append(new_item)
    items = _learnt_last(items, book)
    instructions = _instructions(question, book, items)
    items = _with_pins(_obeyed(items, instructions, book), question)
    executor: Executor = "policy" if any(i.mode == "rl" for i in items) else before["executor"]
    options = {item["name"] for item in before["sub_actions"] if item["mode"] == "option"} & failed
    reasons = []
    if failed - options:
        told = ", ".join(sorted(failed - options))
        reasons.append(f"{told} failed as code; what each lacks comes first, the rest is left to RL.")
    if options:
        reasons.append(f"Dropped, because no code of it worked: {', '.join(sorted(options))}.")
    return PlanReply(executor=executor, sub_actions=items, rationale=SIGNED + " ".join(reasons))


def _learnt_last(items: list[SubActionReply], book: Book) -> list[SubActionReply]:
    """What is left to RL and needed by nothing else comes last: whatever follows it waits until it is learnt."""
    needed = book.needed(item.name for item in items)
    waits = [item.mode == "rl" and item.name not in needed for item in items]
    return [i for i, last in zip(items, waits, strict=True) if not last] + [
        i for i, last in zip(items, waits, strict=True) if last
    ]


# ---- sub-actions --------------------------------------------------------------------------------
def _new(step: Step, question: Question) -> SubActionReply:
    script = step.script
    if script is None:
        mode, reason = "rl", "The world offers no script for it: I cannot code it."
    elif script.hard:
        mode, reason = "rl", "The script book marks it as hard for code alone."
    else:
        mode, reason = "code", f"The script book holds {script.versions} version(s) of it."
    return SubActionReply(
        name=step.name,
        mode=mode,  # type: ignore[arg-type]
        goal=step.goal[:400],
        reason=reason,
        done_when=step.done_when[:600],
        max_steps=_max_steps(question.world),
    )


def _offered(items: list[SubActionReply], question: Question, book: Book) -> list[SubActionReply]:
    """Actions that only a policy calls, where it has env steps enough to learn when."""
    request = question["request"]
    if "only_mode" in request or int(request["env_steps_left"]) < OFFERED_FROM:
        return []
    return [
        SubActionReply(
            name=script.name,
            mode="option",
            goal=script.goal[:400],
            reason="Its moment is learnt: the script book has it for use in the midst of other steps.",
            trigger=script.trigger[:600],
            done_when=script.done_when[:600],
            max_steps=_max_steps(question.world),
        )
        for script in book.offered(item.name for item in items)
    ]


def _whole_task(question: Question) -> SubActionReply:
    """For a task without milestones and scripts."""
    world = question.world
    step = Step("do_the_task", str(world.get("prompt") or world.get("task")), "False", None)
    item = _new(step, question)
    if question.get("scripts"):  # the book has some, for milestones that this task does not name
        item = item.model_copy(update={"reason": "No milestone of the task leads to a script: left to RL."})
    return item


def _max_steps(world: Mapping[str, Any]) -> int:
    """500 env steps, a tenth of an episode that is longer than 5,000, and 2,000 at most (the contract's limit). A plant
    that ripens for more than 300 env steps, and is eaten once, takes more than 500."""
    horizon = int(world.get("horizon", 500))
    return max(20, min(horizon, max(500, min(horizon // 10, 2000))))


def _unrefuted(item: Mapping[str, Any], book: Book) -> SubActionReply:
    """A sub-action of the plan in force as it is, but without a mode that measurement has refuted."""
    state = item.get("outcome", item.get("state", "untried"))
    reply = SubActionReply(
        name=item["name"],
        mode=item["mode"],
        goal=item["goal"][:400],
        reason=f"As before: {state} {item.get('measured', '')}".strip() + ".",
        trigger=item.get("trigger", ""),
        done_when=item["done_when"][:600],
        max_steps=item["max_steps"],
    )
    in_book = book.script(item["name"], item["done_when"]) is not None
    if item["mode"] == "code" and not in_book and item.get("state") in ("failed", "untried"):
        return _left_to_rl(reply, "The world offers no script for it: I cannot code it.")
    return reply


def _tried_again(item: Mapping[str, Any], book: Book) -> SubActionReply | None:
    """As code once more, where it was left to RL because its code failed behind code that has changed or will."""
    changing = item.get("code_before_it_changes")
    if item["mode"] != "rl" or not changing or book.script(item["name"], item["done_when"]) is None:
        return None
    reason = f"Its code failed behind that of {', '.join(changing)}, which changes: it is tried again."
    return _unrefuted(item, book).model_copy(update={"mode": "code", "reason": reason[:600]})


def _with_more_care(items: list[SubActionReply], question: Question, book: Book) -> list[SubActionReply]:
    """Asks once for the last versions of what does its work, where the code alone stays below the target."""
    rate = _code_rate(question.get("measured"))
    if rate is None or rate >= float(question["request"].get("target", 1.0)):
        return items
    before = {str(item["name"]): item for item in question["plan"]["sub_actions"]}
    out = []
    for item in items:
        script, now = book.script(item.name, item.done_when), before.get(item.name, {})
        works = now.get("state") == "accepted" and not now.get("loses_too_much")
        if item.mode == "code" and works and script and script.versions > 1 and CAREFULLY not in item.goal:
            reason = f"Accepted {now.get('measured', '')}, and the plan stays below its target: more is asked of it."
            item = item.model_copy(update={"goal": item.goal[: 400 - len(CAREFULLY)] + CAREFULLY, "reason": reason})
        out.append(item)
    return out


def _put_back(item: SubActionReply, others: list[SubActionReply], book: Book) -> list[SubActionReply]:
    """The plan with a sub-action before the first of the others that comes behind it in a first plan, because what is
    left to RL comes last. The others stay in their order, which may be an operator's."""
    places = {step.name: place for place, step in enumerate(book.plan())}
    own = places.get(item.name, len(places))
    behind = (index for index, other in enumerate(others) if places.get(other.name, -1) > own)
    index = next(behind, len(others))
    return [*others[:index], item, *others[index:]]


def _left_to_rl(item: SubActionReply, reason: str) -> SubActionReply:
    return item.model_copy(update={"mode": "rl", "reason": reason[:600]})


# ---- what people, critics and measurements ask --------------------------------------------------
def _instructions(question: Question, book: Book, items: list[SubActionReply]) -> Directives:
    """The critic first, so that the operator has the last word."""
    critique = question.get("critique") or {}
    plan = question.get("plan") or {"sub_actions": []}
    texts = [str(critique.get("advice_slow", "")), *(str(i.get("advice", "")) for i in plan["sub_actions"])]
    rejected = (question.get("rejected") or {}).get("operator", "")
    names = [item.name for item in items] + [script.name for script in book.scripts]
    return directives([*texts, str(rejected), *question.advice], names)


def _obeyed(items: list[SubActionReply], instructions: Directives, book: Book) -> list[SubActionReply]:
    remaining = [item for item in items if item.name not in instructions.dropped] or items
    out = []
    for item in remaining:
        mode = item.mode if item.trigger else instructions.modes.get(item.name, item.mode)
        if mode == "code" and item.mode == "rl" and book.script(item.name, item.done_when) is None:
            mode = "rl"
        if mode != item.mode:
            item = item.model_copy(update={"mode": mode, "reason": "Operator or critic asked for it."})
        out.append(item)
    return out


def _with_pins(items: list[SubActionReply], question: Question) -> list[SubActionReply]:
    """Pinned sub-actions exactly as given; those that are missing come last."""
    pins = {pin["name"]: pin for pin in question.get("pins") or ()}
    out = []
    for item in items:
        pin = pins.pop(item.name, None)
        out.append(_pinned(pin) if pin else item)
    return out + [_pinned(pin) for pin in pins.values()]


def _pinned(pin: Mapping[str, Any]) -> SubActionReply:
    fields = {k: pin[k] for k in ("name", "mode", "goal", "trigger", "done_when", "max_steps") if k in pin}
    return SubActionReply(**fields, reason="Pinned by the operator.")


def _executor(items: list[SubActionReply], question: Question, instructions: Directives) -> Executor:
    """The sequence first; a policy for what is left to RL, or once the code was below the target."""
    if any(item.mode != "code" for item in items):
        return "policy"
    if instructions.executor:
        return "policy" if instructions.executor == "policy" else "sequence"
    rate = _code_rate(question.get("measured"))
    target = float(question["request"].get("target", 1.0))
    return "policy" if rate is not None and rate < target else "sequence"


def _code_rate(measured: Mapping[str, Any] | None) -> float | None:
    """Dev success of the code alone in the last iteration."""
    if not measured or not measured.get("episodes"):
        return None
    alone = measured.get("plan_alone") or (measured if measured.get("ran") == "plan" else None)
    if not alone:
        return 0.0
    return rate_of(alone)


def _rationale(question: Question, book: Book, executor: str) -> str:
    if not book.scripts:
        return "this world offers no script book, so I cannot code; every sub-action is left to RL."
    if not book.plan():
        return "no milestone of this task leads to a script of the book, so it is left to RL."
    measured = question.get("measured")
    if not measured or not measured.get("episodes"):
        rest = "the sequence of them as it is" if executor == "sequence" else "RL for what code alone will not do"
        return f"the chain of recipes to the goal; scripts first, {rest}."
    if "score" in measured:
        result = f"a score of {measured['score']:.2f} in the evaluation episodes"
    else:
        result = f"{measured['successes']}/{measured['episodes']} evaluation episodes succeeded"
    if executor == "policy":
        return f"{result}, below the target: a policy on top of the code, with the plan as one of its actions."
    return f"{result}; the sequence stays."
