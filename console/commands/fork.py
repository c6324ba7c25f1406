"""`fork`: a new session from a point of an old one, with another decision."""

from __future__ import annotations

import json as json_
from typing import Annotated, Any

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.follow import follow
from rlgpt.console.commands.insight import check_row
from rlgpt.console.commands.open import open_console
from rlgpt.console.commands.run import interactive, model_kind
from rlgpt.console.commands.words import Json, Session
from rlgpt.store.catalog import find
from rlgpt.store.reader import Reader


def register(app: typer.Typer) -> None:
    app.command()(fork)


def fork(
    session: Session,
    at: Annotated[int | None, typer.Option(min=1, help="Row (seq) to fork at; the end if left out.")] = None,
    iteration: Annotated[int | None, typer.Option(min=0, help="Fork after this iteration's verdict.")] = None,
    name: Annotated[str | None, typer.Option(help="How to call the new session.")] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE of a setting, such as loop.iterations=5.")
    ] = None,
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="Without a worker it waits for your commands.")
    ] = True,
    headless: Annotated[bool, typer.Option("--headless", help="Progress lines until the end.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return at once; the session goes on.")] = False,
    json: Json = False,
) -> None:
    """Start a new session from the last complete step at a point of an old one."""
    from rlgpt.store.fork import fork as make
    from rlgpt.store.fork import settings_of

    if at is not None and iteration is not None:
        raise Failure("say --at or --iteration, not both.", Exit.USAGE)
    if headless and (detach or not start):
        other = "--detach" if detach else "--no-start"
        raise Failure(f"--headless waits for the session and {other} does not: choose one.", Exit.USAGE)
    parent = find(session)
    if at is not None:
        with Reader(parent) as reader:
            check_row(parent.id, reader.last_seq(), at)
    if iteration is not None:
        at = _end_of(parent, iteration)
    changes = _tree(change or [])
    name = _name(name, changes)
    llm = changes.get("llm")
    if isinstance(llm, dict) and "kind" in llm:
        llm["kind"] = model_kind(str(llm["kind"]))  # a recorded session by its whole id
    with Reader(parent) as reader:
        old = reader.history_at(1).session["settings"]
    method = changes.get("method")
    rl_fields = method.get("rl") if isinstance(method, dict) else None
    if start or isinstance(rl_fields, dict):
        children.need_trust(parent.path, settings_of(old, changes).model_dump(mode="json"))
    if isinstance(rl_fields, dict):
        children.ask("rl_fields", {"fields": rl_fields, "world": old["world"], "task": old["task"]})
    if start:
        children.check_start()
    if start or llm:  # or the session would be made and fail at once
        settings = settings_of(old, changes)
        model_kind(settings.llm.kind)  # the session that the parent replayed may be gone
        children.ask("models", {"settings": settings.model_dump(mode="json", exclude_unset=True)})
        if start:
            children.ask("task", {"world": settings.world, "task": settings.task})
    child = make(parent, at, name=name, changes=changes)
    if start:
        children.start_worker(child.path)
    if detach or not start:
        with Reader(child) as reader:
            seq = reader.history_at().session["parent_seq"]
        if json:
            state = "started" if start else "created"
            output.document({"id": child.id, "name": child.name, "parent": parent.id, "seq": seq, "status": state})
        else:
            hint = "" if start else f"; `rlgpt resume {child.id}` starts its worker"
            output.say(f"{child.id} ({child.name}) forked from {parent.id} after row {seq}{hint}")
    elif headless or json or not interactive():
        raise typer.Exit(follow(child, json=json))
    else:
        raise typer.Exit(open_console(child))


def _name(name: str | None, changes: dict[str, Any]) -> str | None:
    """How to call the new session: as --name says, or --set name=. The setting itself is taken out of the changes."""
    if "name" not in changes:
        return name
    called = str(changes.pop("name"))
    if name is not None and name != called:
        raise Failure(f"--name says {name!r:.60} and --set name= says {called!r:.60}: say one.", Exit.USAGE)
    return called


def _end_of(parent: Any, number: int) -> int:
    with Reader(parent) as reader:
        closed = [i for i in reader.history_at().iterations if i.number == number and i.verdict is not None]
    if not closed or closed[-1].verdict is None:
        raise Failure(f"session {parent.id} has no iteration {number} with a verdict.", Exit.NOT_FOUND)
    return closed[-1].verdict.seq


def _tree(words: list[str]) -> dict[str, Any]:
    """`a.b=1` as {a: {b: 1}}; a value is JSON where it can be, else text."""
    tree: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise Failure(f"A setting is written KEY=VALUE, not {word!r}.", Exit.USAGE)
        try:
            value = json_.loads(text)
        except ValueError:
            value = text
        *outer, last = key.split(".")
        place = tree
        for part in outer:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise Failure(f"The setting {word}: {part} was set to a value of its own before.", Exit.USAGE)
        place[last] = value
    return tree
