"""The questions of the service. What a question needs is imported when it is asked: some need torch, most do not."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from rlgpt.training.worlds import registry

if TYPE_CHECKING:
    from rlgpt.training.service.sources import Admitting


def worlds() -> dict[str, Any]:
    return {"worlds": list(registry.names())}


def tasks(world: str) -> dict[str, Any]:
    world_asked = registry.get(world)
    fields = ("id", "prompt", "horizon", "kind", "long_horizon")
    task_fields = [{name: getattr(task, name) for name in fields} for task in world_asked.tasks.values()]
    return {"world": world_asked.name, "version": world_asked.version, "tasks": task_fields}


def task(world: str, task: str) -> dict[str, Any]:
    """What a session would keep of its task. Raises UnknownWorld, CannotCreate where the world has no such task."""
    from rlgpt.training.session import creation

    return dict(creation.task_info(registry.get(world), task, world))


def check_world(world: str, games_on: str = "") -> dict[str, Any]:
    """Whether it keeps the promises of the protocol, with its games at `games_on` where that is given."""
    from rlgpt.training.cluster.games import placed
    from rlgpt.training.worlds.conformance import check

    findings = check(placed(registry.get(world), world, games_on))
    return {
        "world": world,
        "ok": all(finding.ok for finding in findings),
        "findings": [finding._asdict() for finding in findings],
    }


def create(settings: dict[str, Any], elsewhere: bool = False) -> dict[str, Any]:
    """{id, name, folder} of a new session with a settings tree, whose worker may run `elsewhere`; none is started."""
    from rlgpt.training.session import creation

    return creation.create(settings, elsewhere)


def prices() -> dict[str, Any]:
    """{model: [USD per million tokens in, out]}."""
    from rlgpt.agents.prices import LISTED

    return {model: [price.tokens_in, price.tokens_out] for model, price in LISTED.items()}


@cache
def _admitting(world: str) -> Admitting:
    from rlgpt.training.service.sources import Admitting

    admitting = Admitting(registry.get(world))
    atexit.register(admitting.close)
    return admitting


def open_admission(world: str) -> None:
    """Make the world and an action host, so that the first `admit` need not wait for them."""
    _admitting(world)


def admit(world: str, kind: str, source: str, task: str, seed: int) -> dict[str, Any]:
    """{ok, name, rule, line, message} of an `action`, a `done_when` or a `reward`, as in a worker."""
    return _admitting(world).answer(kind, source, task, seed)


def try_action(
    file: str,
    world: str = "crafter",
    task: str = "",
    action: str = "",
    seed: int = 0,
    steps: int = 200,
    mode: str = "locked",
    allow_process: bool = False,
) -> dict[str, Any]:
    """One call of a coded action of a file, after admission; see `sources.try_action`."""
    from rlgpt.training.service import sources

    return sources.try_file(registry.get(world), file, task, action, seed, steps, mode, allow_process)


def try_skill(world: str, source: str, done_when: str, task: str, max_steps: int = 300) -> dict[str, Any]:
    """{outcome, episodes, successes, env_steps, error}: trials as a session would run them."""
    from rlgpt.training.service import sources

    return sources.try_skill(registry.get(world), source, done_when, task, max_steps)


def protections() -> dict[str, Any]:
    """Every attack on a locked action host of this machine, and what stopped it."""
    from rlgpt.training.host.client.doctor import table

    return {"mode": "locked", "lines": [asdict(line) for line in table()]}


def minedojo_needs() -> list[dict[str, Any]]:
    """What MineDojo needs on this machine: [{item, ok, sentence, cure, optional}]."""
    from rlgpt.training.worlds.minedojo.doctor import findings

    return [asdict(finding) for finding in findings()]


def experiment_bill(request: dict[str, Any]) -> dict[str, Any]:
    """What is left to run of an experiment, and what it will cost."""
    from rlgpt.training.experiments import requests

    return requests.bill_of(request)


def experiment_folder(request: dict[str, Any]) -> str:
    """The folder for an experiment's bundles, once something can be written into it."""
    from rlgpt.training.experiments import requests

    return requests.need_folder(request)


def experiment_bundles(request: dict[str, Any]) -> dict[str, Any]:
    """{written, missing}: bundles of the sessions of an experiment that are over."""
    from rlgpt.training.experiments import requests

    return requests.write_bundles(request)


def cluster(on: str, settings: dict[str, Any]) -> dict[str, Any]:
    """{address, nodes: [{host, cpus, gpus, python, packages, cpu, free, fault}]}: whether sessions can run there."""
    from rlgpt.training.cluster.nodes import describe_nodes

    return describe_nodes(on, _llm(settings), str(settings.get("world", "crafter")))


def cluster_reached(on: str, settings: dict[str, Any]) -> dict[str, Any]:
    """{address} of a cluster that answers, and has the keys that a session with these settings (empty: any) needs."""
    from rlgpt.training.cluster.nodes import Nodes

    Nodes(on).need_keys(_llm(settings))
    return {"address": on}


def _llm(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the models, from files and environment too; empty where no session is meant."""
    from rlgpt.store.settings import settle

    return settle(settings).llm.model_dump(mode="json") if settings else {}


def cluster_end(on: str, session: str) -> dict[str, Any]:
    """{ended}: how many seats of a session that nobody follows were ended there, with all that they ran."""
    from rlgpt.training.cluster.connect import connect
    from rlgpt.training.cluster.placed import seats_of

    seats = list(seats_of(session, connect(on), on))
    for seat in seats:
        seat.end()
    return {"ended": len(seats)}


def rl_fields(fields: dict[str, Any], world: str, task: str) -> None:
    """Whether an RL configuration can have these fields; their names are checked where the world is installed. Raises
    CannotCreate."""
    from rlgpt.training.session import creation
    from rlgpt.training.worlds import registry

    try:
        known = registry.get(world)
    except registry.UnknownWorld:
        known = None
    creation.check_rl_fields(fields, known, task)


def models(settings: dict[str, Any]) -> None:
    """Whether who answers a session with this whole tree of settings is there: a key, a recorded session that was asked
    the same. Raises CannotCreate, StoreError."""
    from rlgpt.training.session import creation

    creation.check_models(settings)


QUESTIONS: Mapping[str, Callable[..., Any]] = {
    question.__name__: question
    for question in (
        worlds, tasks, task, check_world, create, rl_fields, models, prices, open_admission, admit, try_action,
        try_skill, protections, minedojo_needs, experiment_bill, experiment_folder, experiment_bundles, cluster,
        cluster_reached, cluster_end,
    )
}  # fmt: skip
