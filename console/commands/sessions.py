"""Looking at sessions: `sessions`, `show`, `attach`, `replay`, `serve`, `wait`, `logs`."""

from __future__ import annotations

import contextlib
import operator
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rlgpt.console.commands import output, record
from rlgpt.console.commands.children import START_PATIENCE
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.follow import EVERY, follow
from rlgpt.console.commands.listed import listed
from rlgpt.console.commands.open import open_console
from rlgpt.console.commands.show import lines
from rlgpt.console.commands.words import Json, Session, complete_session
from rlgpt.console.view.happenings import logged
from rlgpt.console.view.logs import LEVEL, LEVELS, at_level, log_line
from rlgpt.console.view.numbers import count, day_time, measured, money
from rlgpt.console.view.sessions import newest_result
from rlgpt.console.view.text import plain
from rlgpt.store.catalog import Summary, find
from rlgpt.store.errors import NoSession
from rlgpt.store.folder import SessionFolder, root
from rlgpt.store.folder import sessions as all_sessions
from rlgpt.store.lease import Lease
from rlgpt.store.reach import reached
from rlgpt.store.reader import Reader

TITLES = (
    "id", "name", "task", "model", "status", "iteration", "result", "env steps", "cost", "started",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    for command in (sessions, show, attach, replay, serve, wait, logs):
        app.command()(command)


def sessions(json: Json = False) -> None:
    """List the sessions of this store, newest last."""
    summaries = listed()[::-1]
    if json:
        output.document({"sessions": [_tree(summary) for summary in summaries]})
        return
    if not summaries:
        output.say("no session yet; `rlgpt run TASK` starts one, `rlgpt tasks` lists what there is to do")
        return
    output.table(TITLES, [_row(summary) for summary in summaries])
    for broken in filter(operator.attrgetter("fault"), summaries):
        output.say(broken.fault if broken.id in broken.fault else f"{broken.id}: {broken.fault}")


def show(session: Session, json: Json = False) -> None:
    """Everything about one session: plan, attempts, training, evaluations and verdicts of every iteration."""
    with looked_at(session) as folder, Reader(folder) as reader:
        history = reader.history_at()
        whole = record.whole(history, reader.commands()) | {"alive": reader.alive()}
        if reader.notice:
            output.note(reader.notice)
    if json:
        output.document(whole)
        return
    for line in lines(whole):
        output.say(line)


def attach(
    session: Annotated[
        str, typer.Argument(metavar="[ID]", help="The newest running one if left out.", autocompletion=complete_session)
    ] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="Look, send nothing.")] = False,
) -> None:
    """Open the console on a session; `q` leaves it running."""
    with reached(session) if session else contextlib.nullcontext(_newest()) as folder:
        code = open_console(folder, read_only=read_only)
    raise typer.Exit(code)


def replay(session: Session) -> None:
    """Open a past session, or a bundle, in the console at its beginning."""
    with looked_at(session) as folder:
        raise typer.Exit(open_console(folder, replay=True, read_only=folder.path.parent != root()))


def serve(
    session: Annotated[
        str, typer.Argument(metavar="[ID]", help="The list of sessions if left out.", autocompletion=complete_session)
    ] = "",
    port: Annotated[int, typer.Option(min=1, max=65535, help="On 127.0.0.1.")] = 8737,
    read_only: Annotated[bool, typer.Option("--read-only", help="Look, send nothing.")] = False,
) -> None:
    """Serve the console to a browser on this machine, at an address with a secret token."""
    from rlgpt.console.serve import serve as serve_console

    words = [find(session).id] if session else []
    raise typer.Exit(serve_console(port, [*words, *(["--read-only"] if read_only else [])]))


def wait(session: Session, json: Json = False) -> None:
    """Wait for the end of a session, silently; the exit code tells how it ended."""
    with reached(session) as folder:
        code = follow(folder, json=json, quiet=True)
    raise typer.Exit(code)


def logs(
    session: Session,
    forever: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the session ends.")] = False,
    level: Annotated[str, typer.Option(help="debug, info, warning or error: this and worse.")] = LEVEL,
    worker: Annotated[bool, typer.Option("--worker", help="What its processes printed, instead.")] = False,
    json: Json = False,
) -> None:
    """Print the log of a session: the lines of the console's log pane."""
    if level not in LEVELS:
        raise typer.BadParameter(f"there is no level {level!r}; there are {', '.join(LEVELS)}.")
    if worker and (forever or json):
        raise Failure("--worker prints what is there as it is: it has neither --follow nor --json.", Exit.USAGE)
    if worker:
        folder = find(session)
        for line in folder.log.read_text(errors="replace").splitlines() if folder.log.exists() else []:
            output.say(line)
        return
    began, seen_alive = time.monotonic(), False
    with reached(session) as folder, Reader(folder) as reader:
        seq = 0
        while True:
            alive = reader.alive()
            seen_alive = seen_alive or alive
            waits = forever and not seen_alive and time.monotonic() - began < START_PATIENCE
            starting = waits and _is_starting(folder, reader)
            while rows := reader.changes_since(seq, without=("frame", "episode", "metric")):
                seq = rows[-1][1]["seq"]
                for change in rows:
                    sentence = logged(change)
                    if sentence and at_level(sentence, level):
                        output.record(sentence) if json else output.say(plain(log_line(sentence)))
            if not forever or not (alive or starting) or _reader_has_left():
                return
            time.sleep(EVERY)


def _is_starting(folder: SessionFolder, reader: Reader) -> bool:
    """Whether a worker was started that has written no row yet, and may not hold the session yet. A new session and a
    fork have rows before its first, but no log of its processes."""
    return folder.log.exists() and reader.history_at().status == "created"


def _reader_has_left() -> bool:
    """`logs -f ID | head -1`: a session may be quiet for long, and only a write would tell."""
    watch = select.poll()
    try:
        watch.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # no descriptor
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # such as a name that is too long for one
        return False


@contextlib.contextmanager
def looked_at(session: str) -> Iterator[SessionFolder]:
    """A session of the store, or that of a bundle file, which may lie on read-only media."""
    if not _is_file(session):
        with reached(session) as folder:
            yield folder
        return
    from rlgpt.store.bundle import viewed

    with viewed(Path(session)) as folder:
        yield folder


def _newest() -> SessionFolder:
    running = [session for session in all_sessions() if Lease.held(session.path)]
    if not running:
        raise NoSession("no session is running; `rlgpt sessions` lists those there are")
    return running[-1]


def _tree(s: Summary) -> dict[str, Any]:
    """One element of `sessions --json`."""
    plain = ("id", "name", "task", "world", "model", "reason", "iteration", "revision", "phase", "env_steps", "tags")
    return {key: getattr(s, key) for key in plain} | {
        "status": _status(s),
        "alive": s.alive,
        "node": s.node or None,
        "dev": record.rate_of(s.dev) if s.dev_episodes else None,
        "test": record.rate_of(s.test) if s.test_episodes else None,
        "cost": record.cost_of(s.cost, s.unknown_price, s.tokens),
        "started_at": s.started_at,
        "last_at": s.at,
        "active_seconds": s.active,
        "parent": s.parent_id,
        "bytes": s.size,
        "store": s.store or None,
        "error": s.fault or None,
    }


def _status(s: Summary) -> str:
    """How it ended, else what it does; `dead` when it has begun and no worker has it."""
    if s.fault:
        return "damaged"
    if s.result:
        return s.result
    return s.status if s.alive or s.status == "created" else "dead"


def _row(s: Summary) -> tuple[object, ...]:
    if s.fault:
        return (s.id, "", "", "", _status(s), "", "", "", "", "")
    result, split = newest_result(s)
    return (
        s.id,
        s.name,
        s.task,
        "rule-based model" if s.model == "rules" else s.model,
        _status(s),
        s.iteration,
        f"{measured(result)} {split}" if result.episodes else "",
        count(s.env_steps),
        money(s.cost, s.unknown_price),
        day_time(s.started_at),
    )
