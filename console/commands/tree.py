"""All commands in one tree, built only when a command was typed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from rlgpt.console.commands import (
    calls,
    compare,
    doctor,
    experiment,
    export_import,
    fork,
    insight,
    operate,
    overview,
    plan,
    report,
    resume,
    sessions,
    skills,
    store,
    worlds,
)
from rlgpt.console.commands import run as run_family
from rlgpt.console.commands.failure import Exit, Failure

FAMILIES = (
    run_family,
    sessions,
    overview,
    calls,
    insight,
    plan,
    report,
    operate,
    resume,
    fork,
    compare,
    experiment,
    export_import,
    skills,
    worlds,
    store,
    doctor,
)


def build() -> typer.Typer:
    app = typer.Typer(
        name="rlgpt",
        help="A terminal operator console for RL-GPT. Without a command it opens the console.",
        epilog="Sessions are named by id, a prefix of it, their name, or `last`.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for family in FAMILIES:
        family.register(app)
    return app


def run(words: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Raises Failure for words that mean nothing."""
    command = typer.main.get_command(build())
    try:
        code = command.main(args=list(words), prog_name="rlgpt", standalone_mode=False)
    except TyperException as error:
        sentence = " ".join(getattr(error, "format_message", error.__str__)().split())
        sentence = sentence.rstrip("., ").replace("Value error, ", "").replace(": ,", ":")
        option = str(getattr(error, "option_name", ""))
        if re.fullmatch(r"-[0-9.]+(e[-+]?[0-9]+)?", option):
            sentence = f"{option}: no number here may be negative"
        sentence += "" if sentence.endswith("?") else "."
        raise Failure(f"{sentence} `rlgpt {_place(error)}--help` says what there is.", Exit.USAGE) from error
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # Typer leaves with 1 where `| head` has read enough
            return Exit.OK
        raise
    return int(code or Exit.OK)


def _place(error: TyperException) -> str:
    """The command whose help answers the mistake, with a trailing blank; empty for the top."""
    path = getattr(getattr(error, "ctx", None), "command_path", "rlgpt")
    inner = str(path).split(" ", 1)[1:]
    return f"{inner[0]} " if inner else ""
