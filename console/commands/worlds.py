"""What there is to do: `tasks`, and `world check` for those who write a world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit
from rlgpt.console.commands.words import GamesOn, Json, complete_task
from rlgpt.store.row_types import tell_refusal


def register(app: typer.Typer) -> None:
    app.command()(tasks)
    app.command("try")(try_)
    world = typer.Typer(help="Worlds: list them, check one.")
    world.command("list")(worlds)
    world.command("check")(check)
    app.add_typer(world, name="world")


def tasks(
    world: Annotated[str, typer.Option(help="crafter, or any world that is installed.")] = "crafter",
    search: Annotated[str, typer.Argument(help="Only tasks whose id or prompt holds this.")] = "",
    json: Json = False,
) -> None:
    """List the tasks of a world."""
    answer = children.ask("tasks", {"world": world})
    answer["tasks"] = [t for t in answer["tasks"] if search in t["id"] or search in t["prompt"]]
    if json:
        output.document(answer)
    else:
        rows = [(t["id"], t["horizon"], t["kind"], t["prompt"]) for t in answer["tasks"]]
        output.table(("task", "env steps", "kind", "prompt"), rows)


def worlds(json: Json = False) -> None:
    """List the worlds that are installed."""
    answer = children.ask("worlds")
    if json:
        output.document(answer)
    else:
        for name in answer["worlds"]:
            output.say(name)


def try_(
    file: Annotated[Path, typer.Argument(help="A Python file that defines a coded action.")],
    world: Annotated[str, typer.Option(help="crafter, or any world that is installed.")] = "crafter",
    task: Annotated[
        str | None, typer.Option(help="The task whose episodes it is tried in.", autocompletion=complete_task)
    ] = None,
    action: Annotated[str | None, typer.Option(help="The name that its action must have.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the episode.")] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Env steps at most.")] = 200,
    mode: Annotated[str, typer.Option(help="locked, process or trusted.")] = "locked",
    json: Json = False,
) -> None:
    """Run your own coded action through admission and one trial, as the fast agent's would be."""
    arguments = {"file": str(file), "world": world, "task": task or "", "action": action or "", "seed": seed}
    arguments |= {"steps": steps, "mode": mode, "allow_process": mode == "process"}
    answer = children.ask("try_action", arguments)
    if json:
        output.document(answer)
    elif not answer["admitted"]:
        output.say(f"refused, {tell_refusal(answer['rule'], answer['line'], answer['message'])}")
    else:
        why = f": {answer['message']}" if answer["message"] else ""
        output.say(f"admitted; {answer['outcome']} after {answer['env_steps']} env steps{why}")
        output.say("yields: " + ", ".join(str(one) for one in answer["yields"]))
    if not answer["admitted"]:
        raise typer.Exit(Exit.DIFFERENT)


def check(
    name: Annotated[str, typer.Argument(help="The world.")],
    games_on: GamesOn = "",
    json: Json = False,
) -> None:
    """Run the conformance check: does the world keep every promise of the protocol?"""
    answer = children.ask("check_world", {"world": name, "games_on": games_on})
    if json:
        output.document(answer)
    else:
        for finding in answer["findings"]:
            why = f": {finding['why']}" if finding["why"] else ""
            output.say(f"{'ok  ' if finding['ok'] else 'FAIL'}  {finding['what']}{why}")
    if not answer["ok"]:
        raise typer.Exit(Exit.DIFFERENT)
