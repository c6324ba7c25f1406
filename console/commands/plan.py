"""`plan`: the revisions of a session's plan, with author, reason and what each changed."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.insight import At, check_row
from rlgpt.console.commands.sessions import looked_at
from rlgpt.console.commands.words import Json, Session
from rlgpt.console.view import revisions as view
from rlgpt.console.view.text import plain
from rlgpt.store.reader import Reader


def register(app: typer.Typer) -> None:
    app.command()(plan)


def plan(
    session: Session,
    revision: Annotated[int | None, typer.Option(min=1, help="Only this revision.", show_default="all")] = None,
    at: At = None,
    diff: Annotated[bool, typer.Option("--diff", help="With what each changed against the one before.")] = False,
    json: Json = False,
) -> None:
    """List the revisions of the plan: who wrote each, and why."""
    with looked_at(session) as folder, Reader(folder) as reader:
        check_row(folder.id, reader.last_seq(), at)
        history = reader.history_at(at)
    shown = [r for r in view.revisions(history) if revision in (None, r.plan.revision)]
    if revision is not None and not shown:
        raise Failure(f"there is no plan {revision}; the session has {len(history.plans)} revisions.", Exit.NOT_FOUND)
    if json:
        output.document({"active": history.revision or None, "revisions": [view.tree(r) for r in shown]})
        return
    width = min(shutil.get_terminal_size().columns, 120)
    for r in shown:
        lines = [view.head(r.plan, width), *view.because(r.plan, width, most=0)]
        if diff:
            lines += view.difference(r, width)
        for line in lines:
            output.say(plain(line).rstrip())
    if not shown:
        output.say("the slow agent has not planned yet")
