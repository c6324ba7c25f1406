"""Opening a session for its worker: store, world, host, client, and the row that says it started or resumed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlgpt.agents.backends import Outcome
from rlgpt.agents.client import Client, make_client
from rlgpt.agents.loop import Limits
from rlgpt.store import artifacts, catalog, events, skills
from rlgpt.store.errors import StoreError
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import CheckpointState, History, Run
from rlgpt.store.lease import TrainingSlot
from rlgpt.store.live_calls import LiveCalls
from rlgpt.store.progress import Progress
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings, stored
from rlgpt.store.writer import Writer
from rlgpt.training.cluster.games import placed
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.seeds import stream_seed
from rlgpt.training.session.command_replay import CommandReplay
from rlgpt.training.session.creation import task_info
from rlgpt.training.session.inbox import Inbox
from rlgpt.training.session.llm_journal import StoreJournal
from rlgpt.training.session.replaying import REPLAY, recorded_of
from rlgpt.training.session.runtime import SessionRuntime
from rlgpt.training.session.where import other_simulator, where
from rlgpt.training.steps.commands import apply_pending
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.away.world import games_place
from rlgpt.training.worlds.optional_parts import report_to
from rlgpt.training.worlds.protocol import World

REWORDED = "the recorded requests had other words than today's: each answer is known by the step that asked for it"
LANES = 64
"""Envs that may have an option open at once."""


def open_session(place: Path) -> SessionRuntime:
    """Raises StoreError, AgentError, HostError, UnknownWorld, CannotCreate (for a task that the world has no more) or
    WorldFailed, each with the operator's sentence."""
    folder = SessionFolder(place)
    slot = TrainingSlot.inherited(place)  # before any child could inherit it too
    with contextlib.ExitStack() as undo:  # what is open when something is refused
        writer = undo.enter_context(Writer(folder))
        reader = Reader(folder)
        settings = stored(writer.history.session["settings"])
        world = registry.get(settings.world)
        task_info(world, settings.task, settings.world)  # the world may have lost the task since the session was made
        world = placed(world, settings.world, games_place())
        progress = Progress(folder.path)
        undo.callback(progress.close)
        recorded = _recorded(settings)
        reworded = recorded is not None and _wording(recorded) != _wording(writer.history)
        client = _client(settings, StoreJournal(writer, reader, settings), progress, folder, reworded)
        host = open_host(
            world,
            lanes=LANES,
            mode=settings.host_mode,
            seed=stream_seed(settings.seed, "host"),
            allow_process=settings.host_mode in ("process", "trusted"),
        )
        undo.callback(host.close)
        here = where()
        begin(folder, writer, {"mode": host.mode, "enforced": dict(host.enforced)}, here)
        tell_other_version(writer, world)
        name = writer.history.session["versions"].get("skills")
        snapshot = skills.read(reader.artifact(name)) if name else []
        runtime = SessionRuntime(
            folder=folder,
            settings=settings,
            writer=writer,
            reader=reader,
            world=world,
            host=host,
            client=client,
            limits=limits(settings),
            progress=progress,
            inbox=Inbox(writer),
            apply=apply_pending,
            slot=slot,
            command_replay=_command_replay(settings, writer),
            reworded=reworded,
            skills=[skill.told() for skill in snapshot],
        )
        undo.pop_all()
    if reworded:
        runtime.log("info", "replay", sentence=REWORDED)
    for other in filter(None, (_other_processor(recorded, here), other_version(recorded, world))):
        runtime.log("warning", "replay", sentence=other)
    report_to(
        world,
        lambda event: runtime.log(
            "warning" if event.kind in ("fault", "restart") else "info",
            event.kind,
            sentence=event.sentence,
            **event.detail,
        ),
    )
    runtime.inbox.start()
    return runtime


def limits(settings: Settings) -> Limits:
    loop = settings.loop
    return Limits(
        iterations=loop.iterations,
        inner=loop.inner,
        candidates=loop.candidates,
        depth=loop.depth,
        target=loop.target,
        dev_first=loop.dev_first,
        dev_more=loop.dev_more,
        test_episodes=loop.test_episodes,
        review=settings.review,
        critic=settings.critic,
        arm=settings.method.arm,
        uncoded=settings.method.uncoded,
        fixed_plan=settings.method.plan == "fixed",
        controls=settings.method.controls,
    )


def begin(folder: SessionFolder, writer: Writer, host: events.ActionHost, here: events.Where) -> None:
    """`started`, or `resumed` with the training run that goes back to its last checkpoint that is sound."""
    before = writer.history.where
    _say_begun(folder, writer, host, here)
    if before is not None and before["cpu"] != here["cpu"]:
        was = f"{here['cpu']} at {here['node']}, before it was {before['cpu']} at {before['node']}"
        writer.event(events.Nondeterministic(f"continued on another kind of processor: {was}"))
    if before is not None and (cause := other_simulator(before, here)):
        writer.event(events.Nondeterministic(cause))


def tell_other_version(writer: Writer, world: World) -> None:
    """A world may have been changed since the session began: what follows is another game under the same name."""
    version = writer.history.session["world_version"]
    cause = f"goes on in version {world.version} of the world {world.name}; it was begun in {version}"
    if version != world.version and cause not in writer.history.nondeterministic:
        writer.event(events.Nondeterministic(cause))


def _say_begun(folder: SessionFolder, writer: Writer, host: events.ActionHost, here: events.Where) -> None:
    history = writer.history
    running = [run for run in history.runs.values() if run.state == "running"]
    if not running:
        if history.status == "created" or not history.incarnation:  # a supervisor may have told of a queue before
            writer.event(events.Started(host, here))
        else:
            writer.event(events.Resumed(from_seq=history.seq, host=host, where=here))
        return
    run = running[-1]
    checkpoint = next((c for c in reversed(run.checkpoints) if _is_sound(folder, c)), None)
    cause = None if checkpoint is run.checkpoint else _what_is_lost(run, checkpoint)
    writer.event(
        events.Resumed(
            from_seq=checkpoint.seq if checkpoint else run.seq,
            run=run.run,
            update=checkpoint.update if checkpoint else 0,
            env_steps=checkpoint.env_steps if checkpoint else 0,
            cause=cause,
            host=host,
            where=here,
        )
    )


def _is_sound(folder: SessionFolder, checkpoint: CheckpointState) -> bool:
    try:
        artifacts.get(folder.artifacts, checkpoint.artifact)
    except (StoreError, OSError):
        return False
    return True


def _what_is_lost(run: Run, checkpoint: CheckpointState | None) -> str:
    assert run.checkpoint is not None
    again = f"from update {checkpoint.update}" if checkpoint else "from its beginning"
    last = run.checkpoint.update
    return f"the checkpoint of update {last} is missing or damaged, so PPO run {run.run} starts again {again}"


def _command_replay(settings: Settings, writer: Writer) -> CommandReplay:
    source = recorded_of(settings)
    if source is None:
        return CommandReplay()
    with source:
        return CommandReplay.of(source, {command.id for command in writer.commands_after(0)})


def _client(
    settings: Settings, journal: StoreJournal, progress: Progress, folder: SessionFolder, reworded: bool
) -> Client:
    llm = settings.llm.model_dump()
    source = recorded_of(settings)
    if source is None:
        live = LiveCalls(folder.path, progress)
        return make_client(llm, journal, os.environ, waits=progress.waits, folder=folder.path, live=live)
    source_llm = _asked_first(source)

    def recorded(step: str, request_hash: str | None) -> Sequence[Outcome]:
        return journal.outcomes(source, step, request_hash)

    llm = source_llm | {"kind": settings.llm.kind, "replayed": source_llm["kind"], "reworded": reworded}
    return make_client(llm, journal, os.environ, recorded=recorded, had=journal.own_outcomes)


def _recorded(settings: Settings) -> History | None:
    """Of the session that is replayed."""
    source = recorded_of(settings)
    if source is None:
        return None
    with source:
        return source.history_at(None)


def _wording(history: History) -> object:
    """Which words its requests have."""
    return history.session["versions"].get("wording")


def _other_processor(recorded: History | None, here: events.Where) -> str:
    """What is to be said of a replay of a session that another kind of processor computed, else ""."""
    there = recorded.where.get("cpu") if recorded is not None and recorded.where else None
    if there is None or there == here["cpu"]:
        return ""
    return (
        f"recorded on another kind of processor ({there}, here {here['cpu']}): its networks may compute other "
        "last bits, and what is learnt may differ from the recorded session"
    )


def other_version(recorded: History | None, world: World) -> str:
    """What is to be said of a replay of a session that played another version of the world, else ""."""
    there = recorded.session["world_version"] if recorded is not None else world.version
    if there == world.version:
        return ""
    return (
        f"recorded in version {there} of the world {world.name}, here it is {world.version}: what happens may differ "
        "from the recorded session"
    )


def _asked_first(source: Reader) -> dict[str, Any]:
    """The `llm` settings under which the answers of a session were once given: its own, or, where it is a replay
    itself, those of the session at the beginning of the chain. Raises NoSession."""
    llm: dict[str, Any] = source.history_at(None).session["settings"]["llm"]
    while str(llm["kind"]).startswith(REPLAY):
        with Reader(catalog.find(llm["kind"].removeprefix(REPLAY))) as earlier:
            llm = earlier.history_at(None).session["settings"]["llm"]
    return llm
