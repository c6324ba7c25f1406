"""Fast agent of the rule-based model: takes the next script of a ladder when a trial fails, and configures RL."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from rlgpt.agents.choice import GOOD_TRIAL_RATE
from rlgpt.agents.contracts import (
    FOLLOW_PLAN,
    CodeReply,
    Hyperparameters,
    RewardTerm,
    RlConfigReply,
    training_horizon,
)
from rlgpt.agents.rules.book import Book, ScriptEntry
from rlgpt.agents.rules.planning import SIGNED
from rlgpt.agents.rules.question import Question, rate_of

FAILED = ("failed", "refused")


def write(question: Question) -> CodeReply:
    """The first version of the script that has not failed; none left, or no script: an empty source."""
    item = question["item"]
    for skill in question.get("skills") or ():
        if skill.get("done_when") == item["done_when"] and not _failed(question, str(skill["source"])):
            note = SIGNED + f"kept from an earlier session, measured {skill.get('measured', '')}."
            return CodeReply(source=str(skill["source"]), note=note)
    script = Book(question).script(item["name"], item["done_when"])
    if script is None:
        return CodeReply(source="", note=SIGNED + f"no script for {item['name']}: I cannot code it.")
    if question.texts.get("goal_before"):
        return _last_version(question, script)
    for number, template in enumerate(script.sources):
        source = _renamed(template, script.name, item["name"])
        if not _failed(question, source):
            note = f"version {number + 1} of {len(script.sources)} from the script book"
            return CodeReply(source=source, note=SIGNED + note + _why(question) + ".")
    note = f"all {len(script.sources)} version(s) of {script.name} in the script book have failed: I cannot code it."
    return CodeReply(source="", note=SIGNED + note)


def _last_version(question: Question, script: ScriptEntry) -> CodeReply:
    """Of code that does its work and shall do more; an empty source where it was tried before."""
    source, of = _renamed(script.sources[-1], script.name, question["item"]["name"]), len(script.sources)
    if any(t["source_hash"] == _hash_of(source) for t in _tried(question)):
        return CodeReply(source="", note=SIGNED + f"version {of} of {of} from the script book was tried already.")
    return CodeReply(source=source, note=SIGNED + f"version {of} of {of} from the script book, as the goal asks.")


def _renamed(source: str, old: str, new: str) -> str:
    return re.sub(rf"\bdef {re.escape(old)}\(", f"def {new}(", source)


def _failed(question: Question, source: str) -> bool:
    """Whether this very source was tried for the sub-action and fell short, by measurement or by an exception."""
    return any(t["source_hash"] == _hash_of(source) and _short(t) for t in _tried(question))


def _tried(question: Question) -> list[Mapping[str, Any]]:
    """Every version of the sub-action so far."""
    last = question.get("last")
    return [*(question.get("earlier") or ()), *([last] if last else ())]


def _hash_of(source: str) -> str:
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


def _short(tried: Mapping[str, Any]) -> bool:
    if tried.get("outcome") != "accepted":
        return tried.get("outcome") in FAILED
    required_shares = {
        "measured": GOOD_TRIAL_RATE, "in_the_plan": tried.get("enough_in_the_plan", GOOD_TRIAL_RATE)
    }  # fmt: skip
    shares = ((share, str(tried[name]).split("/")) for name, share in required_shares.items() if tried.get(name))
    return any(int(done) < share * int(of) for share, (done, of) in shares)


def _why(question: Question) -> str:
    last, critique = question.get("last"), question.get("critique")
    if not last or not _short(last):
        return ""
    lost = f"in the plan it did its work in {last['in_the_plan']} of the episodes" if last.get("in_the_plan") else ""
    cause = (critique or {}).get("cause") or last.get("error") or lost or f"success {last.get('measured')}"
    return f", because the one before fell short: {str(cause)[:300]}"


# ---- RL -----------------------------------------------------------------------------------------
DEFAULTS = Hyperparameters()
ROLLOUT = 2048
OPTIONS_ROLLOUT = 4096
"""With options a rollout holds far fewer decisions than env steps: longer rollouts, smaller batches, faster learning
(collect_diamond, 60k env steps, one seed: 28/60 dev episodes against 17/60 of the untrained prior)."""
SCORE_EPOCHS = 8
"""Where every milestone pays, the reward is dense: a short horizon, many passes."""
PATIENT_RATE, PATIENT_PLAN = 5e-4, 0.8
"""Where the budget allows small steps from the plan as it is (survive_night, 1M and 2.5M env steps, reward at success
alone: 0.88 and 0.87, greedily 0.91 twice, against 0.85 of the plan alone; 300 dev episodes each). A policy below its
code has then not been trained for long enough: slower learning would only keep it there."""
LONG_RUN, LONG_ROLLOUT, LONG_BATCH = 250_000, 16_384, 512
"""From so many env steps on, steps of less noise, from long rollouts in 4 passes, get further (crafter_score, one seed,
mean return of the training episodes around 1M env steps: 16.4 against 15.5 with rollouts of 4,096 in 8 passes, and
rising; after 3M a score of 74 against 68 of the plan alone, 200 dev episodes each)."""
LONG_SCORE_ENTROPY, LONG_GOAL_ENTROPY = 0.01, 0.003
MANY_GAMES = 16
FEW_GAMES, FEW_ROLLOUT, FEW_EPOCHS = 8, 2048, 8
"""A world that plays fewer games than this at once is slow: shorter rollouts, and more passes over each."""
MAX_OPTION_STEPS = 16
"""Env steps of one option, where the world sheet does not ask for longer ones."""
LATER_TRAININGS = 4
"""Where a world advises the env steps of the first training, a later one has this part of those of the one before."""
TRIALS_SHARE = 0.1
"""Of the remaining env steps, kept for trials of later iterations."""


HYPERPARAMETERS = ("gamma", "n_epochs", "batch_size", "target_kl", "width")
"""That a world sheet may advise, beside `learning_rate`, `rollout`, `plan_prior`, `primitive_steps` and `env_steps` (of
the first training)."""


OPTION_STEPS = 8
"""Env steps of one call where options are offered: the policy decides often enough to call one in time."""
OFFERED = Hyperparameters(
    n_envs=MANY_GAMES, n_steps=2048, batch_size=LONG_BATCH, gamma=0.995, ent_coef=0.0, learning_rate=PATIENT_RATE,
    width=128,
)  # fmt: skip
"""What learnt when to call an option that the plan does not (docs/evidence.md, "The learner over code of ordinary
quality"): long rollouts near a plan that decides nearly always, and a reward that starts late."""


def _limit(world: Mapping[str, Any], name: str, usual: int) -> int:
    """A number of the world sheet's limits; the usual one where they are no table, as somebody else may write them."""
    limits = world.get("limits")
    return int(limits.get(name, usual)) if isinstance(limits, Mapping) else usual


def configure(question: Question) -> RlConfigReply:
    world, request = question.world, question["request"]
    options = [str(name) for name in question["options"]]
    items: list[Mapping[str, Any]] = question["plan"]["sub_actions"]
    offered = [str(item["name"]) for item in items if item["mode"] == "option" and item["name"] in options]
    uncoded = [item["name"] for item in items if not item.get("trigger") and item["name"] not in options]
    if offered and FOLLOW_PLAN in options and not uncoded and not world.get("advised_rl"):
        return _configure_offered(question, offered)
    plan, measured = question["plan"], question.get("measured") or {}
    last = question.get("last_config")
    horizon = int(world.get("horizon", 1000))
    milestones = [str(name) for name in world.get("task_milestones") or ()]
    score = world.get("kind") == "score"
    advised: Mapping[str, Any] = world.get("advised_rl") or {}
    games = _limit(world, "games_at_once", MANY_GAMES)
    n_envs = min(MANY_GAMES, games) if options else DEFAULTS.n_envs
    rollout = int(advised.get("rollout", _rollout(bool(options), games))) // n_envs * n_envs
    patient = bool(options) and (score or int(request["env_steps_left"]) >= LONG_RUN)
    if patient and not advised and games >= MANY_GAMES and _env_steps(request, rollout, growing=True) >= LONG_RUN:
        rollout = LONG_ROLLOUT
    rate, plan_prior = 1e-3 if options else 3e-4, 0.6 if FOLLOW_PLAN in options else 0.0
    if patient:
        rate, plan_prior = PATIENT_RATE, PATIENT_PLAN if plan_prior else 0.0
    note = "defaults"
    if advised:
        rate = advised.get("learning_rate", rate)
        plan_prior = advised.get("plan_prior", plan_prior) if plan_prior else 0.0
        note = "what the world sheet advises"
    if last and not patient and not advised and _policy_is_worse(measured):
        rate = max(3e-5, last["hyperparameters"]["learning_rate"] / 2)
        plan_prior = min(0.85, round(last["plan_prior"] + 0.15, 2)) if plan_prior else 0.0
        note = "the policy was below the code alone: slower learning, more weight on the plan"
    elif last:
        rate, plan_prior = last["hyperparameters"]["learning_rate"], last["plan_prior"] if plan_prior else 0.0
        note = "as before, with the remaining env steps"
    return RlConfigReply(
        target=str(world.get("task", "")) if score or not milestones else milestones[-1],
        observation=_features(question),
        reward=_reward(question, plan, milestones, last),
        primitives=[str(p["name"]) for p in question["primitives"]],
        options=options,
        option_prior=round(0.6 * (1 - plan_prior), 3) if options else 0.05,
        plan_prior=plan_prior,
        primitive_steps=int(advised.get("primitive_steps", 1)),
        option_cap=_limit(world, "option_cap", MAX_OPTION_STEPS),
        horizon=training_horizon(horizon),
        env_steps=_advised_env_steps(request, rollout, int(advised["env_steps"]), last)
        if "env_steps" in advised
        else _env_steps(request, rollout, growing=patient or score),
        hyperparameters=_hyperparameters(
            rate, 0.997 if horizon >= 300 and not score else 0.99, bool(options), n_envs, games, score, rollout
        ).model_copy(update={name: advised[name] for name in HYPERPARAMETERS if name in advised}),
        note=SIGNED + note + ".",
    )


def _configure_offered(question: Question, offered: list[str]) -> RlConfigReply:
    """The plan, and what only the policy may call."""
    world = question.world
    games = _limit(world, "games_at_once", MANY_GAMES)
    settings = OFFERED.model_copy(update={"n_envs": min(MANY_GAMES, games)})
    milestones = [str(name) for name in world.get("task_milestones") or ()]
    score = world.get("kind") == "score"
    late = [RewardTerm(term="milestone", argument=name, weight=1.0) for name in milestones[-2:-1]]
    return RlConfigReply(
        target=str(world.get("task", "")) if score or not milestones else milestones[-1],
        observation=_features(question),
        reward=[RewardTerm(term="world", weight=1.0)] if score else [*late, RewardTerm(term="task", weight=2.0)],
        primitives=[],
        options=[FOLLOW_PLAN, *offered],
        option_prior=0.04,
        plan_prior=0.95,
        prior_kl=0.02,
        option_cap=OPTION_STEPS,
        horizon=training_horizon(int(world.get("horizon", 1000))),
        env_steps=_env_steps(question["request"], settings.n_steps * settings.n_envs, growing=True),
        hyperparameters=settings,
        note=SIGNED + f"the plan acts, and the policy learns when to call {', '.join(offered)}.",
    )


def _rollout(options: bool, games: int) -> int:
    if not options:
        return ROLLOUT
    return FEW_ROLLOUT if games < FEW_GAMES else OPTIONS_ROLLOUT


def _hyperparameters(
    rate: float, gamma: float, options: bool, n_envs: int, games: int, score: bool, rollout: int
) -> Hyperparameters:
    n_steps = rollout // n_envs
    if not options:
        return Hyperparameters(learning_rate=rate, gamma=gamma, n_steps=n_steps)
    long = rollout == LONG_ROLLOUT
    return Hyperparameters(
        learning_rate=rate,
        gamma=gamma,
        n_steps=n_steps,
        n_envs=n_envs,
        batch_size=LONG_BATCH if long else 128,
        n_epochs=SCORE_EPOCHS if score and not long else FEW_EPOCHS if games < FEW_GAMES else 4,
        ent_coef=(LONG_SCORE_ENTROPY if score else LONG_GOAL_ENTROPY) if long else 0.005,
    )


def _features(question: Question) -> list[str]:
    features: Mapping[str, Any] = question["features"]
    default = [str(name) for name in question.world.get("default_features") or ()]
    return [name for name in default if name in features] or list(features)


def _reward(
    question: Question, plan: Mapping[str, Any], milestones: list[str], last: Mapping[str, Any] | None
) -> list[RewardTerm]:
    """The goal weighs most; milestones on the way share half of it; nearness to what RL has to reach a tenth. A further
    milestone is a further feature, so those that were goals of sub-tasks before, whose policy is trained on, are left
    out."""
    world = question.world
    if world.get("kind") == "score":
        return [RewardTerm(term="world", weight=1.0)]
    terms = [RewardTerm(term="task", weight=1.0), RewardTerm(term="step", weight=-0.0002)]
    way = milestones[:-1][-6:]
    if last:
        way = [name for name in way if any(t["term"] == "milestone" and t["argument"] == name for t in last["reward"])]
    terms += [RewardTerm(term="milestone", argument=name, weight=round(0.5 / len(way), 4)) for name in way]
    learnt = [f"{i['name']} {i['goal']}".replace("_", " ").lower() for i in plan["sub_actions"] if i["mode"] == "rl"]
    targets = [str(t) for t in world.get("targets") or ()]
    near = [t for t in targets if any(re.search(rf"\b{re.escape(t.replace('_', ' '))}\b", g) for g in learnt)]
    terms += [RewardTerm(term="distance", argument=name, weight=0.01) for name in near[:3]]
    if world.get("kind") == "survive":
        terms.append(RewardTerm(term="world", weight=0.1))
    return terms[:12]


def _env_steps(asked: Mapping[str, Any], rollout: int, growing: bool) -> int:
    """This iteration's share of what is left, in whole rollouts, at least one. `growing`: later iterations, whose code
    is better, get more: 1, 4, 9 ... parts."""
    left, passes = int(asked["env_steps_left"]), max(1, asked["iterations_left"])
    parts = passes * (passes + 1) * (2 * passes + 1) // 6 if growing else passes
    share = int(left * (1 - TRIALS_SHARE) / parts)
    return min(100_000_000, max(share // rollout * rollout, min(left, rollout)))


def _advised_env_steps(asked: Mapping[str, Any], rollout: int, most: int, last: Mapping[str, Any] | None) -> int:
    """One long training, then short ones: each goes on from the best policy so far, and which one that is, 20
    development episodes cannot tell well. One of four equal trainings may so begin where the one before it began."""
    left, more = int(asked["env_steps_left"]), asked["iterations_left"] > 1
    if last:
        most = int(last["env_steps"]) // LATER_TRAININGS
    share = int(left * (1 - TRIALS_SHARE) * (1 - 1 / LATER_TRAININGS if more else 1))
    return max(min(most, share) // rollout * rollout, min(left, rollout))


def _policy_is_worse(measured: Mapping[str, Any]) -> bool:
    alone = measured.get("plan_alone")
    if not alone or not alone.get("episodes") or measured.get("ran") != "policy" or not measured.get("episodes"):
        return False
    return rate_of(measured) < rate_of(alone)
