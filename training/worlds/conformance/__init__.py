"""Checks whether a world keeps the promises of `protocol`. `rlgpt world check NAME` prints the findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rlgpt.training.worlds.conformance.description import check_frames, check_scripts
from rlgpt.training.worlds.conformance.episodes import (
    check_actions,
    check_answers,
    check_features,
    check_horizon,
    check_mask,
    check_neutral_action,
    check_observers,
    check_pictures,
    check_repeatability,
    check_saving,
    check_tasks,
)
from rlgpt.training.worlds.conformance.host_side import check_host_side, check_imports
from rlgpt.training.worlds.conformance.optional_parts import check_optional_parts
from rlgpt.training.worlds.conformance.promise import Broken
from rlgpt.training.worlds.conformance.sheet import check_sheet
from rlgpt.training.worlds.faults import one_line, world_fault
from rlgpt.training.worlds.protocol import World, WorldFailed


class Finding(NamedTuple):
    ok: bool
    what: str
    """The promise."""
    why: str
    """What breaks the promise, or what was checked."""


def check(world: World) -> list[Finding]:
    """Check every promise that can be checked from outside; a broken one does not keep the others from being
    checked."""
    findings = []
    for what, promise in _PROMISES.items():
        try:
            findings.append(Finding(True, what, promise(world)))
        except Broken as broken:
            findings.append(Finding(False, what, str(broken)))
        except WorldFailed as failed:  # a sentence already; of games elsewhere it passed our own modules only
            findings.append(Finding(False, what, str(failed)))
        except BaseException as error:  # a world may call sys.exit
            findings.append(Finding(False, what, world_fault(error, world) or one_line(error)))
            if isinstance(error, KeyboardInterrupt):  # most are the operator's
                break
    return findings


_PROMISES: dict[str, Callable[[World], str]] = {
    "tasks are well formed": check_tasks,
    "actions and commands fit": check_actions,
    "neutral actions keep still": check_neutral_action,
    "features keep their shapes and ranges": check_features,
    "pictures keep their shape": check_pictures,
    "answers are of the right types": check_answers,
    "the mask leaves an action": check_mask,
    "episodes repeat": check_repeatability,
    "observers change nothing": check_observers,
    "save and restore are exact": check_saving,
    "time limits terminate": check_horizon,
    "views decode and cannot be changed": check_host_side,
    "optional parts are well formed": check_optional_parts,
    "the host module is light": check_imports,
    "frames are drawn": check_frames,
    "the world sheet is complete": check_sheet,
    "the script book is sound": check_scripts,
}
