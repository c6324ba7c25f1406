"""Arguments and flags that many commands share, with their completion."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import children

_PLAIN = re.compile(r"[\w.@%+=:,/-]+", re.ASCII)


def beginning_with(incomplete: str, words: Iterable[str]) -> list[str]:
    """Those that a shell may be offered: zsh evaluates what it completes, and a name of an imported session may be
    `$(...)`. https://github.com/fastapi/typer/blob/master/typer/_completion_classes.py"""
    return [word for word in words if word.startswith(incomplete) and _PLAIN.fullmatch(word)]


def complete_session(incomplete: str) -> list[str]:
    """Ids and names that begin with what was typed."""
    from rlgpt.store.catalog import names

    return beginning_with(incomplete, (word for session in reversed(names().items()) for word in session))


def complete_compared(incomplete: str) -> list[str]:
    """As `complete_session`, and the names of experiments."""
    from rlgpt.store import experiments

    return [*complete_session(incomplete), *beginning_with(incomplete, experiments.names())]


def complete_task(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tasks of the world that was typed that begin with what was typed; asked of the world once, then remembered."""
    from rlgpt.console import answers
    from rlgpt.store.home import home

    world = str(ctx.params.get("world") or "crafter")
    file = answers.place(home(), ("tasks", world))
    remembered = answers.remembered(file)
    if remembered is None:
        remembered = children.ask("tasks", {"world": world})
        answers.remember(file, remembered)
    return beginning_with(incomplete, (task["id"] for task in remembered["tasks"]))


def _not_empty(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """Refuse an empty value: `--on "$CLUSTER"` with an unset variable must not run on this machine without notice."""
    source = ctx.get_parameter_source(str(param.name))
    if not value and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("it is empty: name a place, or leave the option out.")
    return value


def path_from(word: str) -> Path:
    """The value of a file or folder that is written. Empty, of a shell variable that is not set, it is refused: Path
    takes it for the current folder."""
    if not word:
        raise typer.BadParameter("it has no name.")
    return Path(word)


Session = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id or a prefix of it, name, or `last`.", autocompletion=complete_session),
]
Some = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="All sessions if left out.", autocompletion=complete_session),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys (docs/json.md).")]
GamesOn = Annotated[
    str,
    typer.Option(
        "--games-on",
        callback=_not_empty,
        metavar="PLACE",
        help="Games of a slow world: local (each in a process of its own), or a Ray cluster (auto, HOST:PORT ...).",
        show_default="in the worker",
    ),
]
On = Annotated[
    str,
    typer.Option(
        "--on",
        callback=_not_empty,
        metavar="CLUSTER",
        help="Run on a Ray cluster: auto, HOST:PORT or ray://HOST:10001.",
        show_default="this machine",
    ),
]
Revision = Annotated[int, typer.Option("--revision", min=1, help="The plan revision you saw; a stale one is refused.")]
