"""Creates a session from its settings after checking world, models and machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlgpt.store.row_types import TaskInfo
from rlgpt.training.cluster.games import check_place
from rlgpt.training.session.where import versions
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.away.world import LOCAL, games_place
from rlgpt.training.worlds.bounds import picture_flaw
from rlgpt.training.worlds.optional_parts import check_machine
from rlgpt.training.worlds.protocol import UnknownTask, World

if TYPE_CHECKING:  # describing a world needs none of it
    from rlgpt.agents.endpoint import Endpoint
    from rlgpt.store.settings import Settings

USAGE, REFUSED, UNAVAILABLE = 2, 4, 5
"""Exit codes of the command line: a word that means nothing; what cannot be done now; what this machine lacks."""


class CannotCreate(Exception):
    """The argument is the sentence for the operator."""

    def __init__(self, sentence: str, code: int = USAGE) -> None:
        super().__init__(sentence)
        self.code = code


def task_info(world: World, task_id: str, asked_for: str) -> TaskInfo:
    """What the session row keeps of its task. `asked_for`: as the command names the world. Raises CannotCreate for an
    unknown task."""
    try:
        task = world.tasks[task_id]
    except KeyError as error:
        last_word = task_id.split("_")[-1]
        close = [t for t in world.tasks if last_word and last_word in t][:5]
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        if isinstance(error, UnknownTask):  # the world's own words may say which part of the name is wrong
            raise CannotCreate(str(error.args[0]).rstrip(".") + (hint or ".")) from error
        hint = hint or f"; `rlgpt tasks --world {asked_for}` lists them"
        raise CannotCreate(f"the world {world.name} has no task {task_id!r}{hint}") from error
    return {
        "id": task.id,
        "prompt": task.prompt,
        "horizon": task.horizon,
        "milestones": list(task.milestones),
        "kind": task.kind,
        "long_horizon": task.long_horizon,
        "sub_tasks": list(task.sub_tasks),
        "primitives": [p.name for p in world.primitives],
        "targets": list(world.targets),
        "frame_format": world.frame_format,
        "frame_module": world.frame_module,
    }


def create(flags: Mapping[str, Any], elsewhere: bool = False, session_id: str = "") -> dict[str, Any]:
    """{id, name, folder} of a new session with these settings; no worker is started. Neither keys nor devices are
    looked for where it runs `elsewhere`. Without a `session_id` (`store.folder.new_id`) it gets one. Raises
    CannotCreate, UnknownWorld, WorldFailed."""
    from rlgpt.agents.wording import wording
    from rlgpt.store import artifacts, skills
    from rlgpt.store import creation as folders
    from rlgpt.store.errors import BadPlace, DiskFull, StoreError
    from rlgpt.store.home import home
    from rlgpt.store.settings import Refused, settle
    from rlgpt.training.session.replaying import OtherQuestions, require_same_questions

    try:
        settings = settle(flags)
    except Refused as error:
        raise CannotCreate(str(error)) from error
    _check_models(settings, elsewhere)
    if not elsewhere:
        _check_device(settings)
    world = registry.get(settings.world)
    info = task_info(world, settings.task, settings.world)
    check_rl_fields(settings.method.rl, world, settings.task)
    check_place(world, games_place())
    if games_place() in ("", LOCAL):
        check_machine(world)
    if settings.observation == "pixels" and world.pixel_shape is None:
        raise CannotCreate(f"the world {world.name} draws no picture to learn from: leave out --observation pixels")
    if settings.observation == "pixels" and (flaw := picture_flaw(world.pixel_shape)):
        raise CannotCreate(f"the world {world.name} cannot be learnt from pixels: {flaw}")
    try:
        require_same_questions(settings)
        snapshot = _skills_of_the_replayed(settings) or skills.snapshot(settings.skills, world.name)
        wording_hash = wording(world.sheet(settings.task))
        all_versions = {**versions(), "skills": artifacts.digest(snapshot), "wording": wording_hash}
        folder = folders.create(
            settings, task_info=info, world_version=world.version, versions=all_versions, files=[snapshot],
            session_id=session_id,
        )  # fmt: skip
    except (BadPlace, DiskFull) as error:
        raise CannotCreate(str(error), UNAVAILABLE) from error
    except OtherQuestions as error:
        raise CannotCreate(str(error), REFUSED) from error
    except StoreError as error:
        raise CannotCreate(str(error)) from error
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        sentence = f"{home()} cannot keep sessions: {why}; set RLGPT_HOME to another folder"
        raise CannotCreate(sentence, UNAVAILABLE) from error
    return {"id": folder.id, "name": folder.name, "folder": str(folder.path)}


def check_models(tree: Mapping[str, Any]) -> None:
    """The checks of `create` that are about who answers, for settings that were made otherwise. Raises CannotCreate,
    StoreError."""
    from rlgpt.store.settings import stored
    from rlgpt.training.session.replaying import OtherQuestions, require_same_questions

    settings = stored(tree)
    _endpoints(settings, elsewhere=False)
    try:
        require_same_questions(settings)
    except OtherQuestions as error:
        raise CannotCreate(str(error), REFUSED) from error


def _check_device(settings: Settings) -> None:
    """Raises CannotCreate where this machine lacks what every PPO run of the session would need."""
    from rlgpt.training.ppo.machine import MachineLacks, check_device_and_kernel

    try:
        check_device_and_kernel(settings.device, settings.kernel)
    except MachineLacks as error:
        raise CannotCreate(str(error), UNAVAILABLE) from error


def check_rl_fields(fields: Mapping[str, Any], world: World | None, task: str) -> None:
    """Raises CannotCreate for fields that no RL configuration can have, or that name what the world does not have; None
    where it cannot be had here."""
    if not fields:
        return
    from rlgpt.agents.contracts import RewardTerm, RlConfigReply
    from rlgpt.agents.errors import UnusableFields
    from rlgpt.agents.operator_fields import with_operators
    from rlgpt.training.ppo.setup import require_known_names

    usual = RlConfigReply(
        target="", observation=["any"], reward=[RewardTerm(term="task", weight=1.0)], primitives=[], options=[],
        horizon=10, env_steps=0,
    )  # fmt: skip
    try:
        config = with_operators(usual, fields)
        if world is not None:
            require_known_names(config, fields.keys(), world, task)
            if not world.restorable and (config.branches.decisions or config.recovery.share):
                raise ValueError(f"branches and recovery need a world that can be restored, and {world.name} cannot be")
        if {"plan_prior", "option_prior"} <= fields.keys() and config.plan_prior + config.option_prior >= 1.0:
            raise ValueError("plan_prior and option_prior together must stay below 1")
    except UnusableFields as error:
        raise CannotCreate(str(error)) from error
    except ValueError as error:  # ConfigError, ActionSpaceError, RewardError ...
        raise CannotCreate(f"method.rl: {str(error).rstrip('.')}") from error


def _skills_of_the_replayed(settings: Settings) -> bytes | None:
    """The skills that the recorded session could use: with others, the agents' requests would not be those that were
    answered. None where nothing is replayed, or the recorded session's files are gone. Raises NoSession."""
    from rlgpt.store.errors import StoreError
    from rlgpt.training.session.replaying import recorded_of

    reader = recorded_of(settings)
    if reader is None:
        return None
    with reader as recorded:
        try:
            return recorded.artifact(recorded.history_at().session["versions"]["skills"])
        except (StoreError, KeyError):
            return None


def _endpoints(settings: Settings, elsewhere: bool) -> Mapping[str, Endpoint]:
    """By role; empty where no server is asked, or only the worker may have the key. Raises CannotCreate where the key
    of a well-known server is missing."""
    from rlgpt.agents.endpoint import endpoints
    from rlgpt.agents.errors import MissingKey, Unclear

    if settings.llm.kind != "openai":
        return {}
    try:
        return endpoints(settings.llm.model_dump(), os.environ)
    except MissingKey as error:
        if elsewhere or settings.llm.base_url:  # the worker may have the key of a server of the operator's own
            return {}
        local = "a server of your own needs none: name it with --base-url"
        raise CannotCreate(f"{str(error).rstrip('.')}; {local}", UNAVAILABLE) from error
    except Unclear as error:
        raise CannotCreate(str(error)) from error


def _check_models(settings: Settings, elsewhere: bool) -> None:
    """Raises CannotCreate where the key of a well-known server is missing, or a budget in USD could not hold."""
    from rlgpt.agents.endpoint import redacted_url

    roles = _endpoints(settings, elsewhere)
    cost_set = "cost" in settings.budget.model_fields_set and settings.budget.cost is not None
    unknown = next((e for e in roles.values() if e.price is None and not e.tells_cost), None)
    if cost_set and unknown is not None:
        raise CannotCreate(
            f"a budget of {settings.budget.cost:g} USD cannot hold, because no price of {unknown.model} at "
            f"{redacted_url(unknown.base_url)} is known: give --price-in and --price-out in USD per million tokens "
            "(0 for a server of your own), or leave --max-cost out and keep to --max-tokens"
        )
