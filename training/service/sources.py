"""Answers questions about sources: would a worker admit them, and what do they do in a trial?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from rlgpt.store.row_types import tell_refusal
from rlgpt.training.host.api import Action, Admission, Ask, Host, Kind, Mode, Programs, source_hash
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.options.slots import primitive_names
from rlgpt.training.rollouts.dry_views import dry_views
from rlgpt.training.seeds import episode_seed
from rlgpt.training.worlds.packed import packed_view
from rlgpt.training.worlds.protocol import World

LONGEST_FILE = 1 << 20


class Admitting:
    """Holds a world and an action host until it is closed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._host = open_host(world, lanes=1)
        self._views: dict[tuple[str, int], list[list[bytes]]] = {}

    def answer(self, kind: str, source: str, task: str, seed: int) -> dict[str, Any]:
        """{ok, name, rule, line, message}."""
        if (task, seed) not in self._views:
            self._views[task, seed] = dry_views(self._world, task, seed)
        admission = self._host.admit(cast(Kind, kind), source, self._views[task, seed])
        answer = {name: getattr(admission, name) for name in ("name", "rule", "line", "message")}
        return {"ok": admission.admitted, **answer}

    def close(self) -> None:
        self._host.close()


def try_skill(world: World, source: str, done_when: str, task: str, max_steps: int) -> dict[str, Any]:
    """{outcome, episodes, successes, env_steps, error} of trials that begin with fresh episodes."""
    from rlgpt.training.rollouts.trials import MAX_TRIALS, try_item

    host = open_host(world, lanes=MAX_TRIALS)
    try:
        views = dry_views(world, task, 0)
        for kind, text in (("action", source), ("done_when", done_when)):
            admission = host.admit(cast(Kind, kind), text, views)
            if not admission.admitted:
                why = tell_refusal(admission.rule, admission.line, admission.message)
                return {"outcome": "refused", "episodes": 0, "successes": 0, "env_steps": 0, "error": why}
        name = source_hash(source)
        result = try_item(
            world,
            task,
            prefix=(),
            action=Action(name),
            done_when=done_when,
            sources={name: source},
            host=host,
            seeds=[episode_seed(0, "trial", index) for index in range(MAX_TRIALS)],
            max_steps=max_steps,
        )
    finally:
        host.close()
    return {name: getattr(result, name) for name in ("outcome", "episodes", "successes", "env_steps", "error")}


def try_file(
    world: World, file: str, task: str, action: str, seed: int, steps: int, mode: str, allow_process: bool
) -> dict[str, Any]:
    """`tried` with a file, an action host of its own and, without a task, the world's first.

    Raises ValueError, OSError, HostError, UnknownTask, WorldFailed.
    """
    source = _read(Path(file))
    host = open_host(world, lanes=1, mode=cast(Mode, mode), seed=seed, allow_process=allow_process)
    try:
        return tried(world, host, source, action, task or next(iter(world.tasks)), seed, steps)
    finally:
        host.close()


def tried(world: World, host: Host, source: str, name: str, task: str, seed: int, steps: int) -> dict[str, Any]:
    """{admitted, rule, line, message, outcome, yields, env_steps, enforced, host_deaths}.

    `outcome` is refused, an end of the host (return, error, bad_yield, budget, killed), interrupt, episode or steps.
    The arguments of the action take their first values. `name` empty takes whatever action the file defines.
    """
    admission = host.admit("action", source, [])
    if admission.admitted:  # only then are views worth the time that it takes to play for them
        admission = host.admit("action", source, dry_views(world, task, seed))
    report: dict[str, Any] = {
        "admitted": admission.admitted,
        "rule": admission.rule,
        "line": admission.line,
        "message": admission.message,
        "outcome": "refused",
        "yields": [],
        "env_steps": 0,
    }
    if admission.admitted and name and admission.name != name:
        mismatch = f"the file's action is `{admission.name}`, not `{name}`"
        report |= {"admitted": False, "rule": "name", "line": 1, "message": mismatch}
    elif admission.admitted:
        report |= _trial(world, host, admission, source, task, seed, steps)
    return report | {"enforced": dict(host.enforced), "host_deaths": host.deaths}


def _trial(
    world: World, host: Host, admission: Admission, source: str, task: str, seed: int, steps: int
) -> dict[str, Any]:
    """One call on a trial seed, until it ends, the world interrupts it or the steps are used up."""
    name = admission.source_hash
    arguments = tuple((argument, values[0]) for argument, values in admission.arguments.items())
    host.load(Programs(sources={name: source}, actions=(Action(name, arguments),)))
    names = primitive_names(world)
    env = world.make(task)
    try:
        env.reset(episode_seed(seed, "trial", 0))
        ask = Ask(0, packed_view(env, True), open=0, episode_start=True)
        yields: list[object] = []
        while True:
            answer = host.tick([ask])[0]
            if answer.command is None:
                outcome = str(answer.end)
                message = answer.message
                break
            result = env.step(answer.command)
            yields.append(names.get(answer.command, list(answer.command)))
            message = "the world broke the episode off" if result.truncated else ""
            if result.terminated or result.truncated:
                outcome = "episode"
                break
            if env.interrupt() and not admission.uninterruptible:
                outcome = "interrupt"
                break
            if len(yields) == steps:
                outcome = "steps"
                break
            ask = Ask(0, packed_view(env, False), resume=True, step=env.steps)
    finally:
        env.close()
    return {"outcome": outcome, "message": message, "yields": yields, "env_steps": len(yields)}


def _read(file: Path) -> str:
    """The text of a file of at most a megabyte; raises ValueError for what is no text."""
    with file.open("rb") as opened:
        content = opened.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise ValueError(f"{file} is larger than a megabyte")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file} is no text in UTF-8") from None
