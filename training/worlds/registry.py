"""Worlds by name: the built-in ones, and those that installed packages add by entry point."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from rlgpt.training.worlds.faults import one_line, raised_in
from rlgpt.training.worlds.protocol import World

GROUP = "rlgpt.worlds"
_BUILT_IN = {
    "crafter": "rlgpt.training.worlds.crafter.world:make_world",
    "kitchen": "rlgpt.training.worlds.kitchen.world:make_world",
    "minedojo": "rlgpt.training.worlds.minedojo.world:make_world",
}
"""Name -> `module:function`, a function of no arguments that returns the `World`."""
_EXTRA_OF_MODULE = {"mujoco": "kitchen", "gymnasium_robotics": "kitchen"}
"""Package that a built-in world needs -> the extra that installs it."""

_REQUIRED_MEMBERS = sorted({*World.__annotations__, *(name for name in vars(World) if not name.startswith("_"))})
"""Names of the members that every world has."""


class UnknownWorld(LookupError):
    """No world of that name, or it cannot be loaded. The sentence for the operator is the argument."""


def _entry_points() -> dict[str, EntryPoint]:
    """Entry points by name; a built-in name cannot be taken over by another package."""
    plugins = {point.name: point for point in entry_points(group=GROUP)}
    return plugins | {name: EntryPoint(name, target, GROUP) for name, target in _BUILT_IN.items()}


def names() -> tuple[str, ...]:
    """Names of all worlds, sorted. None of them is imported."""
    return tuple(sorted(_entry_points()))


class WorldLacksSomething(UnknownWorld):
    """A world of ours that this machine cannot have as it is: a package is missing, or has another version."""


def _has(world: object, member: str) -> bool:
    """A property is asked first: `hasattr` takes an AttributeError of its code for a member that is not there."""
    if hasattr(type(world), member):
        getattr(world, member)
    return hasattr(world, member)


@cache
def get(name: str) -> World:
    """The world called `name`, made once per process.

    `name` may also be `package.module:function`, for a world that is not registered.
    Raises `UnknownWorld`, `WorldLacksSomething`.
    """
    module, colon, function = name.partition(":")
    point = EntryPoint(name, name, GROUP) if colon else _entry_points().get(name)
    if point is None:
        raise UnknownWorld(f"There is no world called {name!r}; the worlds here are {', '.join(names())}.")
    try:
        world = point.load()() if not colon else getattr(import_module(module), function)()
        missing = [member for member in _REQUIRED_MEMBERS if not _has(world, member)]
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF_MODULE.get(error.name or "")
        reason = f"it needs {error.name}: pip install 'rlgpt[{extra}]'" if extra else f"{error}"
        refused = WorldLacksSomething if extra else UnknownWorld
        raise refused(f"The world {name!r} cannot be loaded: {reason}.") from error
    except ImportError as error:
        refused = WorldLacksSomething if name in _BUILT_IN else UnknownWorld
        raise refused(f"The world {name!r} cannot be loaded: {error}.") from error
    except (Exception, SystemExit) as error:  # another package's code
        place = raised_in(error, (module if colon else point.module).partition(".")[0])
        words = one_line(error) + (f" ({place})" if place else "")
        raise UnknownWorld(f"The world {name!r} cannot be loaded: {words}.") from error
    if missing:
        raise UnknownWorld(
            f"The world {name!r} has no {', '.join(missing)}: it was written for another version of the protocol; "
            "see docs/worlds.md."
        )
    return cast(World, world)
