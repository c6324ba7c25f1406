"""What there is to do: `tasks`, and `world check` for those who write a world."""

from __future__ import annotations

from typing import Annotated

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit
from rlgpt.console.commands.words import Json


def register(app: typer.Typer) -> None:
    app.command()(tasks)
    world = typer.Typer(help="Worlds: list them, check one.", no_args_is_help=True)
    world.command("list")(worlds)
    world.command("check")(check)
    app.add_typer(world, name="world")


def tasks(
    world: Annotated[str, typer.Option(help="crafter, or any world that is installed.")] = "crafter",
    search: Annotated[str, typer.Argument(help="Only tasks whose id or prompt holds this.")] = "",
    json: Json = False,
) -> None:
    """List the tasks of a world."""
    answer = children.ask("training.tool", "tasks", "--world", world)
    answer["tasks"] = [t for t in answer["tasks"] if search in t["id"] or search in t["prompt"]]
    if json:
        output.document(answer)
    else:
        rows = [(t["id"], t["horizon"], t["kind"], t["prompt"]) for t in answer["tasks"]]
        output.table(("task", "env steps", "kind", "prompt"), rows)


def worlds(json: Json = False) -> None:
    """List the worlds that are installed."""
    answer = children.ask("training.tool", "worlds")
    if json:
        output.document(answer)
    else:
        for name in answer["worlds"]:
            output.say(name)


def check(name: Annotated[str, typer.Argument(help="The world.")], json: Json = False) -> None:
    """Run the conformance check: does the world keep every promise of the protocol?"""
    answer = children.ask("training.tool", "world-check", "--world", name)
    if json:
        output.document(answer)
    else:
        for finding in answer["findings"]:
            why = f": {finding['why']}" if finding["why"] else ""
            output.say(f"{'ok  ' if finding['ok'] else 'FAIL'}  {finding['what']}{why}")
    if not answer["ok"]:
        raise typer.Exit(Exit.DIFFERENT)
