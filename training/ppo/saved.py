"""Parts of a checkpoint as plain data: the action space with its programs, and each lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlgpt.agents.contracts import RlConfigReply
from rlgpt.training.host.api import Action, PlanItem, Programs
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.slots import ActionSpace, K, Slot, noop_of, primitive_mask
from rlgpt.training.worlds.protocol import World


def space_fields(space: ActionSpace) -> dict[str, Any]:
    return {
        "slots": [
            {
                "slot": index, "key": slot.key, "name": slot.name, "source_hash": slot.source_hash,
                "program": slot.program, "arguments": _lists(slot.arguments), "cap": slot.max_option_steps,
                "has_available": slot.has_available, "similar": slot.similar,
            }
            for index, slot in enumerate(space.slots)
            if slot is not None
        ],
        "programs": {
            "sources": dict(space.programs.sources),
            "actions": [[a.source_hash, _lists(a.arguments)] for a in space.programs.actions],
            "plan": [
                [i.done_when, i.action.source_hash, _lists(i.action.arguments), i.trigger] for i in space.programs.plan
            ],
            "rewards": list(space.programs.rewards),
        },
        "calm": sorted(space.uninterruptible),
    }  # fmt: skip


def _lists(arguments: Sequence[tuple[str, object]]) -> list[list[object]]:
    return [list(pair) for pair in arguments]


def load_space(fields: Mapping[str, Any], world: World, config: RlConfigReply) -> ActionSpace:
    slots: list[Slot | None] = [None] * K
    for entry in fields["slots"]:
        slots[entry["slot"]] = Slot(
            entry["key"], entry["name"], entry["source_hash"], entry["program"],
            tuple((name, value) for name, value in entry["arguments"]), entry["cap"],
            entry["has_available"], entry["similar"],
        )  # fmt: skip
    stored = fields["programs"]
    programs = Programs(
        stored["sources"],
        tuple(Action(source, _pairs(arguments)) for source, arguments in stored["actions"]),
        tuple(
            PlanItem(test, Action(source, _pairs(arguments)), *trigger)
            for test, source, arguments, *trigger in stored["plan"]  # policies of before 0003 have no triggers
        ),
        (),
        tuple(stored["rewards"]),
    )
    return ActionSpace(
        world.action_nvec, noop_of(world), primitive_mask(world, config.primitives), tuple(slots), programs,
        frozenset(fields["calm"]), config.recovery.only_in_trouble, config.primitive_steps,
    )  # fmt: skip


def _pairs(stored: Sequence[Sequence[object]]) -> tuple[tuple[str, object], ...]:
    return tuple((str(name), value) for name, value in stored)


def lane_fields(lane: Lane) -> dict[str, Any]:
    return {
        "episode": lane.episode, "seed": lane.seed, "decisions": lane.decisions, "total": lane.total,
        "usage": lane.usage, "ends": lane.ends, "last": lane.last, "rng": lane.rng.bit_generator.state,
        "watch": lane.watch.save(), "stream": lane.stream.save(), "trouble": lane.trouble.save(),
    }  # fmt: skip


def restore_lane(lane: Lane, entry: Mapping[str, Any], start_view: bytes | None) -> None:
    lane.episode, lane.seed = entry["episode"], entry["seed"]
    lane.decisions, lane.total = entry["decisions"], entry["total"]
    lane.usage, lane.ends = dict(entry["usage"]), {name: dict(ends) for name, ends in entry["ends"].items()}
    lane.last = entry.get("last", "")
    lane.rng = np.random.default_rng(0)
    lane.rng.bit_generator.state = entry["rng"]
    lane.watch.restore(entry["watch"])
    lane.trouble.restore(entry.get("trouble", (0, 0, 0)))
    lane.novelty = lane.env.novelty()
    lane.stream.restore(lane.env, entry["stream"])
    lane.phase, lane.outcome = "decide", ""
    lane.start_view = start_view
    lane.introduce()
