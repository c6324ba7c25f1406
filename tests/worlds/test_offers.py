"""Which optional parts a world has does not depend on how it comes by their members, nor on the version of Python."""

from __future__ import annotations

from typing import Any

from rlgpt.training.worlds.optional_parts import ChecksMachine, LimitsEnvs, StepsElsewhere, StepsSlowly, is_slow, offers
from tests.worlds.corridor import CorridorWorld


class Wrapped:
    """A world that hands everything on, as gymnasium's wrappers once did."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_wrapper_has_the_parts_of_what_it_wraps() -> None:
    class SlowWorld(CorridorWorld):
        slow = True
        max_envs = 3

    world: Any = Wrapped(SlowWorld())
    assert offers(world, StepsSlowly) and offers(world, LimitsEnvs) and is_slow(world)
    assert not offers(world, ChecksMachine) and not is_slow(Wrapped(CorridorWorld()))  # type: ignore[arg-type]


def test_all_members_are_needed_and_none_is_none() -> None:
    class Half:
        def begin_step(self) -> None: ...

    half = Half()
    assert not offers(half, StepsElsewhere)
    half.begin_reset = None  # type: ignore[attr-defined]
    assert not offers(half, StepsElsewhere)
    half.begin_reset = half.begin_step  # type: ignore[attr-defined]
    assert offers(half, StepsElsewhere)
