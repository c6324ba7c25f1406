"""`run` and `demo`: make a session, start its worker, and stay with it in one of three ways."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.follow import follow
from rlgpt.console.commands.limits import MOST_SESSIONS
from rlgpt.console.commands.open import open_console
from rlgpt.console.commands.words import GamesOn, Json, On, complete_task
from rlgpt.store import catalog
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.lease import Lease
from rlgpt.store.placing import place
from rlgpt.store.providers import NAMES

DEMO_NAME = "demo"
DEMO = {
    "task": "crafter_score", "name": DEMO_NAME, "llm": {"kind": "rules"}, "skills": "none",
    "budget": {"env_steps": 600_000}, "loop": {"iterations": 1},
}  # fmt: skip
"""A task on which code alone leaves much to learn: it reaches about half of the milestones in the first iteration, and
no episode reaches all."""

Role = StrEnum("Role", ["planner", "slow", "fast", "critic"])
Tree = dict[str, Any]


def register(app: typer.Typer) -> None:
    app.command()(run)
    app.command()(demo)


def run(
    task: Annotated[
        str, typer.Argument(help="A task of the world; `rlgpt tasks` lists them.", autocompletion=complete_task)
    ],
    world: Annotated[
        str | None, typer.Option(help="crafter, or any world that is installed.", show_default="crafter")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="How to call the session.", show_default="the task and the seed")
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            help="rules (the rule-based model), openai, or replay:ID of a past session.", show_default="rules"
        ),
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(help=f"A preset of URL and key: {', '.join(NAMES)}; or ROLE=PROVIDER.", show_default="none"),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model, or ROLE=MODEL (planner, slow, fast, critic).", show_default="gpt-5-mini"),
    ] = None,
    base_url: Annotated[
        list[str] | None,
        typer.Option(help="Any server that speaks Chat Completions, or ROLE=URL.", show_default="api.openai.com"),
    ] = None,
    key_env: Annotated[
        list[str] | None,
        typer.Option(help="The variable that holds the key, or ROLE=VARIABLE.", show_default="the one of the provider"),
    ] = None,
    effort: Annotated[
        list[str] | None,
        typer.Option(help="Reasoning effort (low, medium, high ...), or ROLE=EFFORT.", show_default="the model's own"),
    ] = None,
    silence: Annotated[
        list[str] | None,
        typer.Option("--timeout", help="Seconds of silence that end a try, or ROLE=SECONDS.", show_default="300"),
    ] = None,
    most_per_call: Annotated[
        list[str] | None,
        typer.Option("--max-tokens-per-call", help="Cap on one reply, or ROLE=TOKENS.", show_default="16000"),
    ] = None,
    parallel: Annotated[
        list[str] | None,
        typer.Option(help="Calls at once, or ROLE=CALLS.", show_default="8; 1 for a server on this machine"),
    ] = None,
    probes: Annotated[
        int | None,
        typer.Option(
            help="Tools that a model may call before it answers about code; 0 for none.",
            show_default="6 where the provider has them",
        ),
    ] = None,
    price_in: Annotated[
        list[str] | None,
        typer.Option(
            help="USD per million prompt tokens, or ROLE=PRICE; 0 for a server of your own.", show_default="as listed"
        ),
    ] = None,
    price_out: Annotated[
        list[str] | None,
        typer.Option(help="USD per million reply tokens, or ROLE=PRICE.", show_default="as listed"),
    ] = None,
    iterations: Annotated[int | None, typer.Option(help="Refinements after iteration 0.", show_default="3")] = None,
    candidates: Annotated[
        int | None,
        typer.Option(help="Drafts of a sub-action's code that are tried, to keep the best.", show_default="1"),
    ] = None,
    env_steps: Annotated[
        int | None, typer.Option(help="Budget of env steps (trials and training).", show_default="1000000")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Budget for language models in USD.", show_default="5")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Budget of language-model tokens.", show_default="2000000")
    ] = None,
    max_hours: Annotated[float | None, typer.Option(help="Budget of active hours.", show_default="no limit")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything in the session.", show_default="0")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="So many sessions, with the seed and those after it; with --detach.", show_default="1"),
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.", show_default="auto")] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="eager, or compiled: faster updates after half a minute, once.", show_default="eager"),
    ] = None,
    observation: Annotated[str | None, typer.Option(help="symbolic or pixels.", show_default="symbolic")] = None,
    skills: Annotated[
        str | None, typer.Option(help="none, all, or the hash of a snapshot.", show_default="all")
    ] = None,
    critic: Annotated[str | None, typer.Option(help="model, human or none.", show_default="model")] = None,
    host_mode: Annotated[str | None, typer.Option(help="locked, process or trusted.", show_default="locked")] = None,
    review: Annotated[bool, typer.Option("--review", help="Every plan waits for your approval.")] = False,
    headless: Annotated[bool, typer.Option("--headless", help="Progress lines until the end.")] = False,
    games_on: GamesOn = "",
    on: On = "",
    detach: Annotated[bool, typer.Option("--detach", help="Return at once; the session goes on.")] = False,
    json: Json = False,
) -> None:
    """Start a session on TASK and open the console on it."""
    if headless and detach:
        raise Failure("--headless waits for the session and --detach does not: choose one.", Exit.USAGE)
    children.play_games_on(games_on, on)
    number = 1 if seeds is None else seeds
    if not 1 <= number <= MOST_SESSIONS:
        raise Failure(f"--seeds is a number of sessions from 1 to {MOST_SESSIONS}.", Exit.USAGE)
    if number > 1 and not detach:
        raise Failure("several sessions at once are started with --detach; `rlgpt leaderboard` ranks them.", Exit.USAGE)
    flags = {
        "task": task,
        "world": world,
        "name": name,
        "seed": seed,
        "device": device,
        "kernel": kernel,
        "observation": observation,
        "skills": skills,
        "critic": critic,
        "host_mode": host_mode,
        "review": review or None,
        "llm": {
            "kind": model_kind(llm) or ("openai" if provider or base_url or model else None),
            "probes": probes,
            **_per_role(
                provider=provider,
                model=model,
                base_url=base_url,
                api_key_env=key_env,
                reasoning_effort=effort,
                timeout=silence,
                max_tokens=most_per_call,
                parallel=parallel,
                price_in=price_in,
                price_out=price_out,
            ),
        },
        "loop": {"iterations": iterations, "candidates": candidates},
        "budget": {"env_steps": env_steps, "cost": max_cost, "tokens": max_tokens, "hours": max_hours},
    }
    if on:
        children.ask("cluster_reached", {"on": on, "settings": _without_unset(flags)})
    if number > 1:
        names = [None if name is None else f"{name}-{n + 1}" for n in range(number)]
        started = [start(flags | {"seed": (seed or 0) + n, "name": names[n]}, on) for n in range(number)]
        _say_all_started(started, json)
        return
    session = start(flags, on)
    if detach:
        _say_started(session, json)
    elif headless or json or not interactive():
        raise typer.Exit(follow(session, json=json))
    else:
        raise typer.Exit(open_console(session))


def demo(
    headless: Annotated[bool, typer.Option("--headless", help="Progress lines until the end.")] = False,
    json: Json = False,
) -> None:
    """Open the console on a live session of the embedded world with the rule-based model.

    Attaches to the demo session that is running, if one is; without a terminal it prints progress lines.
    """
    demos = [s for s in sessions() if s.name == DEMO_NAME]
    running = [s for s in demos if Lease.held(s.path)]
    seed = len(demos) + 1
    if headless or json or not interactive():
        if not running:
            output.note("starting a session in the embedded world")
        raise typer.Exit(follow(running[-1] if running else start(DEMO | {"seed": seed}), json=json))
    if running:
        raise typer.Exit(open_console(running[-1]))
    raise typer.Exit(open_console(begin=lambda: start(DEMO | {"seed": seed}).id))


def start(flags: Tree, on: str = "") -> SessionFolder:
    """Make a session from a tree of settings (None: not given) and start its worker, here or on a Ray cluster."""
    children.check_start()
    answer = children.ask("create", {"settings": _without_unset(flags), "elsewhere": bool(on)})
    session = SessionFolder(Path(answer["folder"]))
    if on:
        place(session.path, on)
    children.start_worker(session.path)
    return session


def interactive() -> bool:
    """Whether the console can be opened; Textual draws it on standard error."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _started(session: SessionFolder) -> Tree:
    return {"id": session.id, "name": session.name, "status": "started"}


def _say_all_started(folders: list[SessionFolder], json: bool) -> None:
    if json:
        output.document({"sessions": [_started(session) for session in folders]})
    else:
        for session in folders:
            _say_started(session, json)


def _say_started(session: SessionFolder, json: bool) -> None:
    if json:
        output.document(_started(session))
    else:
        output.say(f"{session.id} ({session.name}) started; `rlgpt attach {session.id}` opens it")


def _without_unset(tree: Tree) -> Tree:
    """The settings without those that were not given, so that files and the environment decide them."""
    inner = {key: _without_unset(value) if isinstance(value, dict) else value for key, value in tree.items()}
    return {key: value for key, value in inner.items() if value is not None and value != {}}


def model_kind(llm: str | None) -> str | None:
    """`replay:` names its session in full, whatever prefix was typed."""
    if llm is None or llm in ("rules", "openai"):
        return llm
    if not llm.startswith("replay:"):
        raise Failure(f"there is no --llm {llm!r}; there are rules, openai and replay:ID.", Exit.USAGE)
    return f"replay:{catalog.find(llm.removeprefix('replay:')).id}"


def _per_role(**words: list[str] | None) -> Tree:
    """`VALUE` for every role, `ROLE=VALUE` for one; a model's own name may hold `=`."""
    tree: Tree = {"roles": {}}
    for setting, setting_value in words.items():
        for word in setting_value or ():
            role, equals, value = word.partition("=")
            if equals and role in Role.__members__:
                tree["roles"].setdefault(role, {})[setting] = value
            else:
                tree[setting] = word
    return tree
