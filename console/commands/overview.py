"""Looking at all sessions at once: `tree`, `leaderboard`, `inbox`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rlgpt.console.commands import output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.listed import listed
from rlgpt.console.commands.words import Json
from rlgpt.console.view import forks, waiting
from rlgpt.console.view.numbers import duration, measured
from rlgpt.console.view.sessions import newest_result, state
from rlgpt.store.catalog import Summary

NONE = "no session yet; `rlgpt run TASK` starts one, `rlgpt tasks` lists what there is to do"


def register(app: typer.Typer) -> None:
    for command in (tree, leaderboard, inbox):
        app.command()(command)


def tree(json: Json = False) -> None:
    """Show which session was forked from which, where, and with what other settings."""
    summaries = listed()
    if json:
        output.document({"sessions": forest(summaries)})
    elif summaries:
        output.table(("name", "id", "task", "state", "result", "forked"), _rows(summaries))
    else:
        output.say(NONE)


def _rows(summaries: Sequence[Summary]) -> list[tuple[object, ...]]:
    """For people: name with its lines, id, task, state, result, where it left its parent."""
    out: list[tuple[object, ...]] = []
    for branch in forks.branches(summaries):
        s = branch.summary
        result, split = newest_result(s)
        shown = f"{measured(result)} {split}" if result.episodes else ""
        out.append((branch.stem + (s.name or s.id), s.id, s.task, state(s)[0], shown, forks.place(branch)))
    return out


def forest(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """The roots with their forks inside, for `tree --json`."""
    roots: list[dict[str, Any]] = []
    path: list[dict[str, Any]] = []
    for branch in forks.branches(summaries):
        s = branch.summary
        node: dict[str, Any] = {
            "id": s.id,
            "name": s.name,
            "task": s.task,
            "status": state(s)[0],
            "parent": {"id": s.parent_id, "seq": s.parent_seq} if s.parent_id else None,
            "changed": branch.changed or None,
            "forks": [],
        }
        del path[branch.depth :]
        (path[-1]["forks"] if path else roots).append(node)
        path.append(node)
    return roots


def leaderboard(
    task: Annotated[str, typer.Argument(help="A task that sessions of this store worked on.")],
    json: Json = False,
) -> None:
    """Rank the sessions of TASK by their held-out test episodes, seeds grouped."""
    from rlgpt.console.view import leaderboard as view

    summaries = listed()
    _need_task(summaries, task)
    if json:
        output.document(view.tree(summaries, task))
        _name_damaged(summaries)
        return
    ranked = [view.cells(rank, row) for rank, row in enumerate(view.rows(summaries, task), 1)]
    if ranked:
        output.table(view.TITLES, ranked)
    if left := view.untested(summaries, task):
        output.note(f"without test episodes and not ranked: {left}")
    _name_damaged(summaries)


def _name_damaged(summaries: Sequence[Summary]) -> None:
    """Of what they cannot read, lists do not even know the task."""
    for broken in summaries:
        if broken.fault:
            output.note(f"left out: {broken.fault if broken.id in broken.fault else f'{broken.id}: {broken.fault}'}")


def _need_task(summaries: list[Summary], task: str) -> None:
    tasks = sorted({s.task for s in summaries if s.task})
    if task not in tasks:
        known_tasks = f"there are {', '.join(tasks)}" if tasks else NONE
        raise Failure(f"no session of this store has the task {task!r}; {known_tasks}.", Exit.NOT_FOUND)


def inbox(json: Json = False) -> None:
    """List the sessions in which nothing goes on until you do something."""
    summaries = listed()
    if json:
        output.document({"waiting": waiting.tree(summaries)})
        return
    for need in waiting.needs(summaries):
        ago = duration(max(time.time() - need.since, 0.0))
        output.say(f"{need.summary.id} ({need.summary.name}): {need.what}, since {ago}")
    if not waiting.needs(summaries):
        output.say("no session waits for you")
