"""What is kept of an episode while it is played, and what of it is shown when it was lost (`store/failures.py`)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rlgpt.training.host.api import FOLLOW_PLAN
from rlgpt.training.options.lane import Lane
from rlgpt.training.options.runner import PLAN_ITEM
from rlgpt.training.options.slots import ActionSpace, primitive_names
from rlgpt.training.rollouts.evidence import Describer
from rlgpt.training.worlds.optional_parts import survey_of
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import Env, NativeAction, World

EVERY = 25
"""Env steps between two lines of the timeline."""
LINES = 24
"""Lines of a timeline at most; of a longer episode they are further apart."""
LAST = 16
"""Env steps at the end that are shown one by one."""
BEFORE = 8
"""Env steps before the end at which the first of two pictures is taken."""


SMALL = 0.05
"""Relative change of a number with a fraction below which nothing is told."""


class Moment(NamedTuple):
    """One env step: what was done, and the view that came of it."""

    step: int
    doing: str
    source_hash: str
    line: int
    """Of the yield; 0 where no code acted."""
    command: NativeAction
    view: bytes
    """Whole."""


class Trace:
    """Of one lane's episode, from where it was started."""

    def __init__(self, space: ActionSpace, names: Sequence[str]) -> None:
        """`names` of the items that follow_plan runs."""
        self._space, self._names = space, names
        self.timeline: list[Moment] = []
        self.last_moments: deque[Moment] = deque(maxlen=LAST + 1)
        self.survey = ""
        """Of the world, at the end."""

    def start(self, env: Env) -> None:
        first = Moment(env.steps, "", "", 0, (), packed_view(env, True))
        self.timeline = [first]
        self.last_moments.clear()
        self.last_moments.append(first)

    def step(self, lane: Lane, command: NativeAction) -> None:
        doing, source_hash = self._doing(lane)
        line = lane.line if source_hash else 0
        moment = Moment(lane.env.steps, doing, source_hash, line, command, packed_view(lane.env, True))
        self.last_moments.append(moment)
        if moment.step - self.timeline[-1].step >= EVERY:
            self.timeline.append(moment)

    def end(self, env: Env) -> None:
        """While the env still shows how the episode ended."""
        self.survey = survey_of(env)

    def _doing(self, lane: Lane) -> tuple[str, str]:
        """(name of what acts, hash of its source)."""
        slot = self._space.slots[lane.slot] if lane.slot >= 0 else None
        if slot is None or lane.idle:
            return ("a primitive" if slot is None else f"{slot.name} (returned without a step)"), ""
        if slot.program == FOLLOW_PLAN and lane.running >= PLAN_ITEM:
            index = lane.running - PLAN_ITEM
            name = self._names[index] if index < len(self._names) else f"item {index + 1}"
            return name, self._space.programs.plan[index].action.source_hash
        return slot.name, slot.source_hash


class Shower:
    """Turns a trace into the plain data of a failure, in the world's own words."""

    def __init__(self, world: World, sources: Mapping[str, str]) -> None:
        """`sources` by hash."""
        self._describe = Describer(world)
        self._lines = {name: source.splitlines() for name, source in sources.items()}
        self._names = primitive_names(world)

    def shown(self, trace: Trace) -> dict[str, Any]:
        """timeline, last steps with the line that yielded each, pictures before the end and at it, and what there was
        to be seen."""
        last = list(trace.last_moments)
        end, before = last[-1], last[max(0, len(last) - 1 - BEFORE)]
        every = math.ceil(len(trace.timeline) / LINES)
        timeline = [m for m in trace.timeline[::every] if m is not end] + [end]
        return {
            "timeline": [{"step": m.step, "doing": m.doing, **self._describe.moment(m.view)} for m in timeline],
            "last": [self._yielded(m, earlier) for earlier, m in pairwise(last)],
            "before": {"step": before.step, "picture": self._describe.picture(before.view)},
            "after": {"step": end.step, "picture": self._describe.picture(end.view)},
            **({"survey": trace.survey} if trace.survey else {}),
        }

    def _yielded(self, moment: Moment, earlier: Moment) -> dict[str, Any]:
        now, then = self._describe.moment(moment.view), self._describe.moment(earlier.view)
        entry: dict[str, Any] = {"step": moment.step, "doing": moment.doing}
        entry["did"] = self._names.get(moment.command, str(list(moment.command)))
        if moment.line:
            entry["line"] = moment.line
            lines = self._lines.get(moment.source_hash, ())
            entry["code"] = lines[moment.line - 1].strip()[:100] if moment.line <= len(lines) else ""
        changed = {key: [then.get(key), value] for key, value in now.items() if _differs(value, then.get(key))}
        return entry | ({"changed": changed} if changed else {})


def _differs(value: Any, before: Any) -> bool:
    """Whether a change is worth telling: daylight fades in every step."""
    if isinstance(value, float) and isinstance(before, float):
        return abs(value - before) >= SMALL * max(1.0, abs(before))
    return bool(value != before)
