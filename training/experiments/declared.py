"""The tasks and arms of each experiment, fixed before anything runs.

All arms of an experiment share task, horizon, observation, budgets, an empty skill library and the session seeds;
they differ in what is listed here and in nothing else. method.md, "Experiments".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlgpt.store.experiments import Manifest, Planned, load
from rlgpt.training.experiments.coverage import missing_sets
from rlgpt.training.rollouts.script_bot import script_bot
from rlgpt.training.session.creation import task_info
from rlgpt.training.worlds import registry

Tree = dict[str, Any]

PUBLISHED: Tree = {"method": {"reward": "published", "whole_budget": True}}
"""What the arms of a fair comparison have in common beyond the budget."""


class Undeclared(ValueError):
    """An experiment that cannot be made; the argument is the sentence for the operator."""


@dataclass(frozen=True)
class Arm:
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """A settings tree over the experiment's own."""


@dataclass(frozen=True)
class Declared:
    about: str
    tasks: tuple[str, ...]
    """Of `world`, when none are named."""
    arms: tuple[Arm, ...]
    """The first is the one the others are compared with. Empty: those of `chain_arms`, which depend on the task."""
    common: Mapping[str, Any] = field(default_factory=lambda: PUBLISHED)
    usual: Mapping[str, Any] = field(default_factory=dict)
    """What holds where the request says nothing else."""
    world: str = "crafter"


def _method(**fields: Any) -> Tree:
    return {"method": fields}


def merged(*layers: Mapping[str, Any]) -> Tree:
    """Trees over each other, the last wins; lists are replaced."""
    out: Tree = {}
    for layer in layers:
        for key, value in layer.items():
            old = out.get(key)
            both = isinstance(value, Mapping) and isinstance(old, Mapping)
            out[key] = merged(old or {}, value) if both or isinstance(value, Mapping) else value
    return out


RL = Arm("rl", _method(arm="rl") | {"loop": {"iterations": 0}})
"""All of the budget in one run of PPO: its plan cannot change, so a second pass would only cut the run."""
CODE = Arm("code", _method(arm="code") | {"loop": {"inner": 10}})
"""As many attempts as a session may have."""
WHOLE = Arm("rlgpt")
CONTROLLED = Arm("rlgpt", _method(controls=["plan", "random", "prior", "script"]))


def _dense(name: str, arm: Arm) -> Arm:
    """The arm with the reward that the fast agent designs, in place of the one that arms share."""
    return Arm(f"{name} dense", merged(arm.settings, _method(reward="designed")))


_OBJECTS = ("hinge_cabinet", "microwave", "light_switch", "kettle")

KINDS: dict[str, Declared] = {
    "arms": Declared(
        "RL alone, code alone and RL-GPT; beside it uniform choice, no PPO step, its plan and the shipped script",
        (
            "make_stone_pickaxe", "collect_iron", "collect_diamond", "defeat_skeleton", "eat_plant", "wake_up",
            "survive_night", "crafter_score",
        ),
        (CONTROLLED, CODE, RL),
    ),
    "blind": Declared(
        "RL-GPT, code alone and RL alone where code cannot see all it needs, from success alone and a designed reward",
        tuple(f"{name}{blind}" for name in _OBJECTS for blind in ("", "_blind2")),
        (
            _dense("rlgpt", CONTROLLED),
            CODE,
            _dense("rl", RL),
            CONTROLLED,
            replace(RL, label="rl sparse"),
        ),
        world="kitchen",
    ),
    "iterations": Declared(
        "0, 1, 2 and 3 refinements with the same env steps in all; 0 has one attempt each and no feedback",
        ("collect_iron",),
        (
            Arm("0", _method(warm=False) | {"loop": {"iterations": 0, "inner": 1, "depth": 0}, "critic": "none"}),
            *(Arm(str(n), _method(warm=False) | {"loop": {"iterations": n}}) for n in (1, 2, 3)),
        ),
    ),
    "critic": Declared(
        "with the critic, and with measurements alone",
        ("collect_iron",),
        (WHOLE, Arm("no critic", {"critic": "none"})),
    ),
    "fast": Declared(
        "a fast agent that repairs its code, and one that writes each action once an iteration",
        ("collect_iron",),
        (WHOLE, Arm("no repair", {"loop": {"inner": 1}})),
    ),
    "slow": Declared(
        "a slow agent that re-plans and refines, and one whose first plan stands",
        ("collect_iron",),
        (WHOLE, Arm("fixed plan", _method(plan="fixed"))),
    ),
    "interface": Declared(
        "what the agents may design: nothing, the reward, the actions, or both",
        ("collect_iron",),
        (
            Arm("neither", _method(arm="rl", reward="published") | {"loop": {"iterations": 0}}),
            Arm("reward", _method(arm="rl") | {"loop": {"iterations": 0}}),
            Arm("actions", _method(reward="published")),
            Arm("both"),
        ),
        _method(whole_budget=True),
    ),
    "complexity": Declared(
        "RL alone, code alone and RL-GPT on recipes of growing length",
        ("collect_wood", "make_stone_pickaxe", "collect_iron", "collect_diamond"),
        (WHOLE, CODE, RL),
    ),
    "learner": Declared(
        "PPO as it is, and with each setting that keeps it near its plan or has it learn where the plan fails",
        ("collect_diamond",),
        (
            Arm("rlgpt", _method(controls=["plan", "prior"])),
            Arm("prior kl", _method(rl={"prior_kl": 0.5})),
            Arm("recovery", _method(rl={"recovery": {"share": 0.5}})),
            Arm("in trouble", _method(rl={"recovery": {"share": 0.5, "only_in_trouble": True}})),
            Arm("branches", _method(rl={"branches": {"decisions": 16}})),
        ),
    ),
    "coverage": Declared(
        "RL alone, and code alone and RL-GPT where code is missing for none, each and several of the sub-actions",
        ("make_stone_pickaxe", "collect_iron"),
        (),
        _method(reward="designed", whole_budget=True),
        {"loop": {"inner": 1}},
    ),
}  # fmt: skip


def chain_arms(world: str, task: str) -> tuple[Arm, ...]:
    """Of `coverage`: RL-GPT and code alone for each set of sub-actions that are left without code, and RL alone.

    Raises Undeclared for a task without a chain, CannotCreate for an unknown one, UnknownWorld.
    """
    declared_world = registry.get(world)
    task_info(declared_world, task, world)
    names = [step.name for step in script_bot(declared_world, task)]
    if len(names) < 2:
        raise Undeclared(f"the script book of {declared_world.name} has no chain of sub-actions to {task}")
    arms = []
    for places in missing_sets(len(names)):
        without = " without " + ",".join(str(place + 1) for place in places) if places else ""
        uncoded = [names[place] for place in places]
        arms += [Arm(arm + without, _method(arm=arm, uncoded=uncoded)) for arm in ("rlgpt", "code")]
    return (*arms, RL)


def trees(
    kind: str, base: Mapping[str, Any], tasks: Sequence[str], seeds: Sequence[int], arms: Sequence[str] = ()
) -> list[tuple[str, str, int, Tree]]:
    """[(task, arm, seed, settings tree)], seeds outermost so that a part of them is a whole comparison. A reward that
    `base` names takes the place of the one that arms share. `arms`: those of the experiment to run, all if empty.

    Raises Undeclared, CannotCreate, UnknownWorld.
    """
    if kind not in KINDS:
        raise Undeclared(f"there is no experiment {kind!r:.40}; there are {', '.join(KINDS)}")
    declared = KINDS[kind]
    world = str(base.get("world", "crafter"))
    if not declared.arms and base.get("llm", {}).get("kind", "rules") != "rules":
        raise Undeclared(f"{kind} leaves out sub-actions of the script book by their names: it needs --llm rules")
    chosen = list(tasks) or _defaults(declared, world)
    twice = [word for named in (chosen, seeds, arms) for word in named if named.count(word) > 1]
    if twice:
        raise Undeclared(f"{twice[0]} is named twice")
    method = dict(base.get("method", {}))
    reward = method.pop("reward", "")
    shared = declared.common["method"].get("reward", "published")
    base = merged(declared.usual, {**base, "method": method})
    run = {task: _chosen_arms(kind, declared.arms or chain_arms(world, task), arms) for task in chosen}
    problems = []
    for seed in seeds:
        for task in chosen:
            for arm in run[task]:
                tree = merged(base, declared.common, arm.settings)
                if reward and tree["method"].get("reward") == shared:
                    tree["method"]["reward"] = reward
                tree = merged(tree, {"task": task, "seed": seed, "skills": "none", "method": {"label": arm.label}})
                problems.append((task, arm.label, seed, tree))
    return problems


def _chosen_arms(kind: str, declared: Sequence[Arm], names: Sequence[str]) -> list[Arm]:
    """Those named, in the order of the declaration; all if none is named."""
    labels = [arm.label for arm in declared]
    for name in names:
        if name not in labels:
            raise Undeclared(f"{kind} has no arm {name!r:.60}; it has {', '.join(labels)}")
    return [arm for arm in declared if not names or arm.label in names]


def _defaults(declared: Declared, world: str) -> list[str]:
    if world != declared.world:
        raise Undeclared(f"name the tasks of {world}: the declared ones are of {declared.world}")
    return list(declared.tasks)


def declare(
    kind: str,
    name: str,
    base: Mapping[str, Any],
    tasks: Sequence[str],
    seeds: Sequence[int],
    arms: Sequence[str] = (),
) -> Manifest:
    """The experiment of this name: as it is on the disk, or new and not yet saved.

    Raises Undeclared when the one on the disk was declared otherwise, NoExperiment for what is no name and for a file
    that cannot be read.
    """
    sessions = [Planned(*one) for one in trees(kind, base, tasks, seeds, arms)]
    name = name or "-".join([kind, *(tasks if len(tasks) == 1 else [])])
    new = Manifest(name, kind, KINDS[kind].about, sessions)
    if not new.path.exists():
        return new
    existing = load(new.path)
    if existing.name != name:
        raise Undeclared(f"{new.path} is of another experiment, {existing.name!r:.80}: give that its own folder")
    if (existing.kind, [_bare(p) for p in existing.sessions]) != (kind, [_bare(p) for p in sessions]):
        raise Undeclared(
            f"the experiment {name} was declared with other tasks, arms, seeds or settings ({len(existing.sessions)} "
            "sessions): give the same ones to go on with it, or choose another --name"
        )
    return existing


def _bare(planned: Planned) -> Planned:
    return replace(planned, id="", settings=json.loads(json.dumps(planned.settings)))
