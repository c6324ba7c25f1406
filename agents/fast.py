"""The fast agent: writes a coded action and repairs it; instantiates RL as a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlgpt.agents import choice, loop, memory
from rlgpt.agents.asking import entries, messages
from rlgpt.agents.client import Client
from rlgpt.agents.context import Context
from rlgpt.agents.contracts import FOLLOW_PLAN, LONGEST_SOURCE, CodeReply, RlConfigAsked
from rlgpt.agents.errors import UselessReply
from rlgpt.agents.linking import link, signature
from rlgpt.agents.probes import Look, Probe, Tool, TryAction
from rlgpt.agents.rules import coding, question
from rlgpt.store.history import Attempt, Item
from rlgpt.store.row_types import JsonObject

TRY_DOC = (
    "Try a source as the code of this sub-action in 3 training episodes, from where the plan needs it. Tells in how "
    "many done_when came true, and how one that was lost went. The trials that decide have other seeds."
)
LOOK_DOC = "Look at the world where this sub-action begins, in a training episode."

TRIM = (
    "code_of_others", "earlier", "second", "skills_to_call", "skills", "lost_in_plan", "lost_trials", "previous",
)  # fmt: skip
"""What is shortened of a question that is too long, in this order."""


# ---- coded actions ------------------------------------------------------------------------------
def write(client: Client, context: Context, item: Item, attempt: int, draft: int = 1) -> CodeReply:
    """The source of a coded action; a reply without source says that the model cannot code it.

    All drafts of an attempt answer the same question, but for their number and the temperature: none waits for what
    was measured of another.
    """
    history = context.history
    attempts = choice.before_drafts(history.attempts_of(item.name), draft)
    newest, second = _to_repair(attempts)
    previous = context.text(newest.source_hash) if newest else ""
    plan = history.plan

    last = memory.attempt_now(context, item, newest)
    to_repair = previous.strip() if last and last.get("outcome") in ("failed", "refused") else ""

    others, skills = memory.code_of_others(context, item), memory.nearest_skills(context, item)
    callable_from = [*others, *(str(skill["source"]) for skill in skills)]
    library = set(re.findall(r"^(\w+)\(", str(context.sheet["library_doc"]), re.M))

    def useless(reply: CodeReply) -> str:
        linked = link(reply.source, callable_from, library)
        same = bool(to_repair) and linked.source.strip() == to_repair
        size = len(reply.source.encode(errors="replace"))
        if size > LONGEST_SOURCE:
            return f"the source has {size:,} bytes, and at most {LONGEST_SOURCE:,} are taken"
        return "this is the very source that failed" if same else linked.clash

    drafts = context.limits.candidates
    asked = messages(
        "fast",
        "fast_write",
        context,
        scripts=entries(client, "fast", context, item),
        trim=TRIM,
        request={
            "ask": "write", "attempt": attempt, "attempts": context.limits.inner, **memory.passes(context),
            **({"draft": draft, "drafts": drafts} if drafts > 1 else {}),
        },
        item=memory.wanted(item),
        goal_before=choice.goal_before(history, item, attempts) if last and last.get("outcome") == "accepted" else "",
        before=[step.name for step in plan.steps_before(item)] if plan and item in plan.items else [],
        advice=context.advice("fast"),
        skills=[dict(s) for s in context.skills if s.get("name") == item.name],
        last=last,
        previous=previous,
        critique=memory.critique(newest.verdict, "advice_fast") if newest else None,
        critique_of_plan=memory.critique_of_plan(history) if newest else None,
        earlier=memory.earlier_attempts(context, item, [a for a in attempts if a not in (newest, second)]),
        second=memory.attempt_now(context, item, second),
        second_source=context.text(second.source_hash) if second else "",
        code_of_others=others,
        skills_to_call=[_offered(skill) for skill in skills],
        lost_trials=_lost_trials(newest, item),
        second_lost=_lost_trials(second, item)[:1],
        lost_in_plan=memory.lost_episodes(memory.last_closed(history), item.name) if newest else [],
    )  # fmt: skip
    where = history.iteration.number if history.iteration else 0
    step = f"write/{history.sub_task}.{where}/{item.name}/{len(attempts) + draft}"
    warmth = (draft - 1) / (drafts - 1) if drafts > 1 else 0.0

    def try_action(arguments: TryAction) -> Probe:
        assert context.prober is not None
        linked = link(arguments.source, callable_from, library)
        return Probe(linked.clash) if linked.clash else context.prober.try_action(item, linked.source)

    def look(arguments: Look) -> Probe:
        assert context.prober is not None
        return context.prober.look(item, arguments.seed, arguments.step)

    tools = [Tool("try_action", TRY_DOC, TryAction, try_action), Tool("look", LOOK_DOC, Look, look)]
    offered = tools if context.prober else []
    reply = client.ask("fast", step, asked, CodeReply, useless, warmth, offered)
    source = link(reply.source, callable_from, library).source
    if previous.strip() and source.strip() == previous.strip():  # the same again means: keep it
        return CodeReply(source="", note=reply.note)
    return CodeReply(source=source, note=reply.note)


def _to_repair(attempts: Sequence[Attempt]) -> tuple[Attempt | None, Attempt | None]:
    """The version to go on from, of the last attempt that brought code, and the second best of the drafts beside it."""
    if not attempts:
        return None, None
    by_attempt = choice.rounds(attempts)
    drafts = next((each for each in reversed(by_attempt) if any(map(memory.has_code, each))), by_attempt[-1])
    best = choice.best_draft(drafts)
    others = [draft for draft in drafts if draft is not best and draft.admitted]
    return best, choice.best_draft(others) if others else None


def _offered(skill: JsonObject) -> memory.Plain:
    told = {k: skill[k] for k in ("goal", "done_when", "measured") if k in skill}
    return {"call": signature(str(skill["source"]), str(skill.get("name"))), **told}


def _lost_trials(attempt: Attempt | None, item: Item) -> list[str]:
    return memory.lost_trials(attempt.last_trial(item.done_when) or attempt.trial) if attempt else []


# ---- RL -----------------------------------------------------------------------------------------
def configure(client: Client, context: Context, refused: str = "", refused_source: str = "") -> RlConfigAsked:
    """What to train: every name in it exists, every option was measured to work, at least sometimes.

    `refused`: why the reward function of the answer before, `refused_source`, was not admitted.
    """
    history = context.history
    plan = history.plan
    usable = [i.name for i in plan.items if plan.acts(i.name)] if plan else []
    options = [*usable, *([FOLLOW_PLAN] if plan and loop.has_code(plan) else ())]
    last = memory.last_closed(history)
    known = _Known(context, options)
    asked = messages(
        "fast_rl",
        "fast_configure",
        context,
        trim=("earlier", "measured"),
        request={
            "ask": "configure",
            "env_steps_left": context.env_steps_left,
            "iterations_left": context.iterations_left,
            "restorable": context.restorable,
        },
        plan=memory.plan_now(context),
        options=options,
        advice=context.advice("fast"),
        last_config=memory.configured(_last_config(context)),
        reward_sources=memory.reward_sources(context, _last_config(context)),
        measured=memory.measured(context, last) if last else None,
        critique=memory.critique(last.verdict, "advice_fast") if last else None,
        earlier=memory.earlier_iterations(history),
        refused=refused,
        refused_source=refused_source,
    )

    def useless(reply: RlConfigAsked) -> str:
        return known.mistake(reply) or context.config_fault(reply)

    step = f"configure/{history.sub_task}/{history.revision}" + ("/again" if refused else "")
    try:
        return client.ask("fast", step, asked, RlConfigAsked, useless)
    except UselessReply as error:
        usual = coding.configure(question.read({"messages": asked}))
        note = f"{error} The rule-based model's configuration stands in."
        return RlConfigAsked(**usual.model_dump() | {"note": note})


def _last_config(context: Context) -> memory.Plain | None:
    """This sub-task's; before it has one, that of the sub-task before, whose policy is trained on."""
    history = context.history
    known = [i for i in history.iterations if history.sub_task - 1 <= i.sub_task <= history.sub_task and i.config]
    return dict(known[-1].config.config) if known and known[-1].config else None


class _Known:
    """The names that a configuration may use."""

    def __init__(self, context: Context, options: list[str]) -> None:
        sheet = context.sheet
        self._options = options
        last = _last_config(context) or {}
        self._rewards = [term["argument"] for term in last.get("reward", ()) if term["term"] == "generated"]
        self._primitives = [p["name"] for p in sheet["primitives"]]
        self._features = list(sheet.get("features") or {})
        self._arguments = {
            "distance": list(sheet.get("targets") or ()),
            "milestone": [m["name"] if isinstance(m, dict) else m for m in sheet.get("milestones") or ()],
        }

    def mistake(self, reply: RlConfigAsked) -> str:
        for what, given, known in (
            ("feature", reply.observation, self._features),
            ("primitive", reply.primitives, self._primitives),
            ("accepted option", reply.options, self._options),
        ):
            strange = [name for name in given if name not in known]
            if strange:
                return f"there is no {what} {strange[0]!r}; there are: {', '.join(known) or 'none'}"
        if not reply.primitives and not reply.options:
            return "without primitives and options there is nothing to choose from"
        for term in reply.reward:
            names = self._arguments.get(term.term)
            if names is not None and term.argument not in names:
                return f"{term.term} has no argument {term.argument!r}; there are: {', '.join(names) or 'none'}"
            if (
                term.term == "generated"
                and term.argument not in self._rewards
                and (term.argument or not reply.reward_source)
            ):
                return "a generated term needs a reward_source and an empty argument, or the argument it had before"
        if (reply.recovery.share or reply.recovery.only_in_trouble) and FOLLOW_PLAN not in reply.options:
            return f"recovery needs {FOLLOW_PLAN} among the options"
        if reply.plan_prior + (reply.option_prior if len(reply.options) > 1 else 0.0) >= 1.0:
            return "plan_prior and option_prior together must stay below 1"
        return ""
