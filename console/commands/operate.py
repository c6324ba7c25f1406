"""The operator's commands on a running session, each sent to its inbox."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.follow import is_dead, unstarted
from rlgpt.console.commands.words import Json, Revision, Session
from rlgpt.store import inbox, processes
from rlgpt.store.address import source_of
from rlgpt.store.commands import LONGEST, parse_command
from rlgpt.store.epilogue import append_stop, ended_at
from rlgpt.store.event_payloads import payload_of
from rlgpt.store.folder import SessionFolder
from rlgpt.store.history import History
from rlgpt.store.lease import Lease, owner
from rlgpt.store.mirror import refusal
from rlgpt.store.placing import ask_to_end, placed_on
from rlgpt.store.reach import ENDED_WELL, reached
from rlgpt.store.reader import Reader

PATIENCE = 10.0
"""Seconds to wait for a command's fate before saying that it is queued."""
ENDING = 120.0
"""Seconds that whoever follows a session on a cluster may take to end it there: a node may be silent for a minute."""
FINAL = ("applied", "refused", "expired")
Apply = Annotated[str, typer.Option("--apply", help="now: ends the PPO run in progress; next: waits for it.")]
Text = Annotated[str, typer.Argument(help="What to say, word for word.")]


def register(app: typer.Typer) -> None:
    for command in (pause, stop, approve, reject, override, edit, advise, verdict, budget):
        app.command()(command)
    app.command("stop-training")(stop_training)
    app.command("cancel-call")(cancel_call)


def pause(session: Session, json: Json = False) -> None:
    """Pause a session at its next safe point."""
    send_command(session, "pause", {}, json)


def stop(
    session: Session,
    now: Annotated[bool, typer.Option("--now", help="End its processes at once, whatever they do.")] = False,
    json: Json = False,
) -> None:
    """Stop a session; `rlgpt resume` goes on from the last step, in training from the last update."""
    with reached(session) as folder:
        unfollowed = placed_on(folder.path) and is_dead(folder)
        if not Lease.held(folder.path) and not (unfollowed and now):
            words = f": `rlgpt resume {folder.id}` follows it again, or stop it with --now" if unfollowed else ""
            raise Failure(f"session {folder.id} is not {'followed' if unfollowed else 'running'}{words}.", Exit.REFUSED)
        if not now:
            send_command(session, "stop", {}, json, until_end=True)
            return
        if placed_on(folder.path):
            _end_on_cluster(folder)
        elif source := source_of(folder.path):
            raise Failure(f"session {folder.id} is a mirror of {source}: stop it there.", Exit.REFUSED)
        else:
            _kill(folder)
    if json:
        output.document({"session": folder.id, "kind": "stop", "state": "applied", "reason": "killed"})
    else:
        output.say(f"the processes of {folder.id} are gone; `rlgpt resume {folder.id}` goes on")


def approve(session: Session, revision: Revision, json: Json = False) -> None:
    """Let the plan that waits for approval come into force."""
    send_command(session, "approve", {}, json, revision)


def reject(session: Session, revision: Revision, text: Text = "", json: Json = False) -> None:
    """Send the plan that waits back to the slow agent, with a reason."""
    if not text.strip():
        raise Failure("the slow agent has to know why: give a reason.", Exit.USAGE)
    send_command(session, "reject", {"text": text}, json, revision)


def override(
    session: Session,
    revision: Revision,
    sub_action: Annotated[str | None, typer.Option(help="The sub-action to change.")] = None,
    mode: Annotated[str | None, typer.Option(help="code, rl, or option: code that only the policy calls.")] = None,
    pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Keep it against the model.")] = None,
    rename: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    goal: Annotated[str | None, typer.Option(help="Its new goal, for which its code is written anew.")] = None,
    done_when: Annotated[str | None, typer.Option(help="An expression over start and view.")] = None,
    trigger: Annotated[
        str | None, typer.Option(help="A guard runs while this holds, an option is tried where it does; empty: a step.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Env steps a trial may spend on it.")] = None,
    position: Annotated[int | None, typer.Option(min=0, help="Move it there, from 0.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out of the plan.")] = False,
    add: Annotated[bool, typer.Option("--add", help="Add it; needs mode, goal and done-when.")] = False,
    executor: Annotated[str | None, typer.Option(help="sequence or policy.")] = None,
    apply: Apply = "now",
    json: Json = False,
) -> None:
    """Change the plan: a sub-action's mode, goal, place or pin, or the executor."""
    fields = {
        "mode": mode, "goal": goal, "done_when": done_when, "trigger": trigger, "max_steps": max_steps, "rename": rename
    }  # fmt: skip
    said = {key: value for key, value in fields.items() if value is not None}
    edits = _edits(sub_action, said, add=add, remove=remove, position=position, pin=pin)
    if executor is not None:
        edits.append({"op": "executor", "value": executor})
    if not edits:
        raise Failure("say what to change, for example --sub-action NAME --mode rl.", Exit.USAGE)
    send_command(session, "override", {"edits": edits, "apply": apply}, json, revision)


def edit(
    session: Session,
    file: Annotated[Path, typer.Argument(help="The source; - reads standard input.")],
    sub_action: Annotated[str | None, typer.Option(help="The sub-action whose code it is.")] = None,
    reward: Annotated[bool, typer.Option("--reward", help="It is `def reward(before, view)` for PPO.")] = False,
    weight: Annotated[float, typer.Option(help="Of the reward beside the others.")] = 1.0,
    apply: Apply = "now",
    json: Json = False,
) -> None:
    """Put your own source in place of a coded action, or beside the rewards; it is admitted like the agent's."""
    if reward == (sub_action is not None):
        raise Failure("say --sub-action NAME for a coded action, or --reward.", Exit.USAGE)
    if reward:
        said: dict[str, Any] = {"weight": weight, "apply": apply}
    else:
        said = {"sub_action": sub_action, "apply": apply}
    send_command(session, "edit_reward" if reward else "edit_code", said, json, source=file)


def _source(file: Path) -> str:
    """No more is read than a source may have: a device, or what is piped in, may never end."""
    try:
        if str(file) == "-":
            source = sys.stdin.read(LONGEST + 1)
        else:
            with file.open() as opened:
                source = opened.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Failure(f"{file} cannot be read: {reason}", Exit.USAGE) from error
    if len(source) > LONGEST:
        raise Failure(f"{file} has more than {LONGEST} characters, the most that a source may have.", Exit.USAGE)
    return source


def advise(
    session: Session,
    text: Text,
    agent: Annotated[str, typer.Option(help="planner, slow, fast or critic.")] = "slow",
    json: Json = False,
) -> None:
    """Write advice into the next prompt of an agent."""
    if not text.strip():
        raise Failure("the advice is empty.", Exit.USAGE)
    send_command(session, "advise", {"agent": agent, "text": text}, json)


def verdict(
    session: Session,
    cause: Annotated[str, typer.Option(help="Why, in a sentence.")],
    success: Annotated[bool, typer.Option("--success", help="It does what it should.")] = False,
    failure: Annotated[bool, typer.Option("--failure", help="It does not: say one of the two.")] = False,
    sub_action: Annotated[str | None, typer.Option(help="The sub-action; the iteration if left out.")] = None,
    advice_slow: Annotated[str, typer.Option(help="For the slow agent.")] = "",
    advice_fast: Annotated[str, typer.Option(help="For the fast agent.")] = "",
    json: Json = False,
) -> None:
    """Be the critic of a sub-action's trial or of an iteration."""
    if success == failure:
        raise Failure("say --success or --failure, one of the two.", Exit.USAGE)
    payload = {"success": success, "cause": cause, "advice_slow": advice_slow, "advice_fast": advice_fast}
    send_command(session, "verdict", payload | ({"sub_action": sub_action} if sub_action else {}), json)


def budget(
    session: Session,
    name: Annotated[str, typer.Argument(help="env_steps, cost, tokens or hours.")],
    value: Annotated[str, typer.Argument(help="The new limit over the whole session, or none.")],
    json: Json = False,
) -> None:
    """Change a budget of a running session."""
    limit = _limit(value)
    if name in ("env_steps", "tokens") and isinstance(limit, float):
        raise typer.BadParameter(f"a limit of {name} is a whole number, not {value!r}.")
    send_command(session, "budget", {"name": name, "value": limit}, json)


def _limit(word: str) -> float | int | None:
    """Raises BadParameter for what is no number."""
    if word == "none":
        return None
    with contextlib.suppress(ValueError):
        limit = float(word if re.fullmatch(r"[-+.0-9eE]+", word) else "")  # Python reads 1_000 and Arabic digits
        if math.isfinite(limit):
            return int(limit) if limit.is_integer() else limit
    raise typer.BadParameter(f"a limit is a number, or `none`, not {word!r}.")


def stop_training(session: Session, json: Json = False) -> None:
    """End the PPO run in progress early; what it learnt is kept and evaluated."""
    send_command(session, "stop_training", {}, json)


def cancel_call(session: Session, json: Json = False) -> None:
    """End the call to a model that is under way; it is asked once more, and then done without."""
    send_command(session, "cancel_call", {}, json)


def _edits(
    name: str | None, fields: dict[str, Any], *, add: bool, remove: bool, position: int | None, pin: bool | None
) -> list[dict[str, Any]]:
    """What the options say of one sub-action, in the order in which it is applied. Raises Failure for options of which
    one would be without effect."""
    others = fields or position is not None or pin is not None
    if name is None:
        if others or add or remove:
            raise Failure("say which sub-action with --sub-action NAME.", Exit.USAGE)
        return []
    if remove and (others or add):
        raise Failure("--remove takes the sub-action away: nothing else can be said of it.", Exit.USAGE)
    if add and "rename" in fields:
        raise Failure("--add takes the name from --sub-action: leave --rename out.", Exit.USAGE)
    if remove:
        return [{"op": "remove", "name": name}]
    edits: list[dict[str, Any]] = []
    if add:
        place = {} if position is None else {"position": position}
        edits.append({"op": "add", "name": name, **fields, **place})
    elif fields:
        edits.append({"op": "set", "name": name, **fields})
    last_name = fields.get("rename", name)
    if position is not None and not add:
        edits.append({"op": "move", "name": last_name, "position": position})
    if pin is not None:
        edits.append({"op": "pin" if pin else "unpin", "name": last_name})
    return edits


def send_command(
    session: str,
    kind: str,
    payload: dict[str, Any],
    json: bool,
    revision: int | None = None,
    *,
    until_end: bool = False,
    source: Path | None = None,
) -> None:
    """Send a command, wait a little for its state, and print it. A refused command is a Failure with the worker's
    reason. `source`: the file of a source that it carries, read only if the session can take the command."""
    with reached(session) as folder, Reader(folder) as reader:
        history = _begun(reader)
        alive = reader.alive()
        if history.status == "ended" and alive and history.result not in ENDED_WELL:
            raise Failure(f"session {folder.id} is being resumed: its worker is not up yet; try again in a moment.")
        if history.status == "ended":
            raise Failure(f"session {folder.id} has ended ({history.result}): {history.reason}")
        if not alive and not unstarted(reader):
            raise Failure(f"the worker of {folder.id} is dead; `rlgpt resume {folder.id}` starts it again.")
        if source is not None:
            payload = payload | {"source": _source(source)}
        if "apply" in payload and revision is None:  # a worker tells by it which iteration is the next
            revision = history.revision or None
        name = inbox.send(folder, parse_command(kind, payload), revision)
        enough = ("seen",) if payload.get("apply") == "next" else ()
        state, reason = _fate(folder, reader, name, until_end, enough) if alive else ("queued", "")
    if json:
        document = {"session": folder.id, "command": name, "kind": kind, "state": state, "reason": reason}
        output.document(document)
    elif state not in ("refused", "expired"):
        waits = f"its worker: rlgpt resume {folder.id}"
        if alive:
            waits = _the_next(history) if payload.get("apply") == "next" else "the worker's next safe point"
        what = f"{state}, it waits for {waits}" if state in ("queued", "seen") else state
        output.say(f"{kind} {what}{': ' + reason if reason else ''}")
    if state in ("refused", "expired"):
        if json:
            raise typer.Exit(Exit.REFUSED)
        raise Failure(f"{kind} was {state}: {reason}", Exit.REFUSED)


def _the_next(history: History) -> str:
    """What a command that does not apply now waits for."""
    most = history.session.get("settings", {}).get("loop", {}).get("iterations")
    if history.iteration is None or most is None or history.iteration.number < most:
        return "the next iteration"
    return "the next iteration, and expires if none comes: this is the last of its task"


def _begun(reader: Reader) -> History:
    """The session's history, when a worker that resumes an ended session has said so: it takes seconds to start."""
    until = time.monotonic() + PATIENCE
    history = reader.history_at()
    while history.status == "ended" and reader.alive() and time.monotonic() < until:
        time.sleep(0.05)
        history = reader.history_at()
    return history


def _fate(
    folder: SessionFolder, reader: Reader, name: str, until_end: bool, enough: tuple[str, ...]
) -> tuple[str, str]:
    """(state, reason) of a command, as far as it is known within PATIENCE, or as soon as it is in a state `enough`."""
    until = time.monotonic() + PATIENCE
    state, reason = "queued", ""
    while time.monotonic() < until:
        history = reader.history_at()
        if name in history.commands:
            state, reason = history.commands[name].state, history.commands[name].reason
        if why := refusal(folder.path, name):
            return "refused", why
        if history.status == "ended":
            return ("applied" if state == "applied" else "expired"), reason or history.reason
        if state in enough or (state in FINAL and not (until_end and state == "applied")):
            return state, reason
        time.sleep(0.05)
    if until_end and state == "applied":
        phase = reader.history_at().phase
        reason = f"it ends when this is done: {' '.join(str(v) for v in payload_of(phase).values())}"
    return state, reason


def _kill(folder: SessionFolder) -> None:
    """End the supervisor's process group, with the worker and its hosts, and then whatever carries the session's mark:
    a world's games may lead sessions of their own. Raises Failure while one is left."""
    who = owner(folder.path)
    if who is None or who.pid <= 1:
        raise Failure(f"session {folder.id} does not say which process runs it.", Exit.REFUSED)
    if who.host != socket.gethostname():
        raise Failure(f"session {folder.id} runs on {who.host}: stop it there.", Exit.REFUSED)
    with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
        os.killpg(os.getpgid(who.pid), signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while Lease.held(folder.path) and time.monotonic() < until:
        time.sleep(0.02)
    _, left = processes.end_marked(processes.SESSION, processes.session_value(folder.path))
    reason = f"ended at once by {inbox.whoami()}"
    with Lease.acquire(folder.path):
        if not ended_at(folder.path):  # it may have ended by itself just now
            append_stop(folder.path, reason)
    if left:
        pids = ", ".join(map(str, left))
        raise Failure(f"session {folder.id} is stopped, but killed processes of it are still there: {pids}.")


def _end_on_cluster(folder: SessionFolder) -> None:
    """By who follows it; from here where nobody does. Raises Failure."""
    who = inbox.whoami()
    if Lease.held(folder.path):
        ask_to_end(folder.path, who)
        until = time.monotonic() + ENDING
        while Lease.held(folder.path):
            if time.monotonic() >= until:
                raise Failure(f"the cluster of session {folder.id} does not answer; it ends there when that does.")
            time.sleep(0.05)
        return
    children.ask("cluster_end", {"on": placed_on(folder.path), "session": folder.id})
    with Lease.acquire(folder.path):
        append_stop(folder.path, f"ended at once by {who}")
