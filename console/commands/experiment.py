"""`experiment`: the paper's experiments and ablations as sets of sessions, paired by seed."""

from __future__ import annotations

import contextlib
import json as json_module
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from rlgpt.console.commands import children, output
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.limits import need_room
from rlgpt.console.commands.words import Json, On, complete_task, path_from
from rlgpt.console.view.numbers import count, duration, many

Kind = StrEnum(
    "Kind",
    ["arms", "blind", "iterations", "critic", "fast", "slow", "interface", "complexity", "learner", "coverage"],
)
Reward = StrEnum("Reward", ["published", "success"])
MODULE = "training.experiments"
GOES_ON = "the same command goes on with them"
Tree = dict[str, Any]


def register(app: typer.Typer) -> None:
    app.command()(experiment)


def experiment(
    kind: Annotated[Kind, typer.Argument(help="What is compared; the bill says with what.")],
    tasks: Annotated[
        list[str] | None, typer.Argument(help="Tasks; the declared ones if left out.", autocompletion=complete_task)
    ] = None,
    name: Annotated[str, typer.Option(help="How to call it; running it again goes on with it.")] = "",
    world: Annotated[str, typer.Option(help="crafter, or any world that is installed.")] = "crafter",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="How many session seeds.")] = 10,
    arm: Annotated[list[str] | None, typer.Option(help="One of its arms, all if left out; may be repeated.")] = None,
    first_seed: Annotated[int, typer.Option(min=0, max=10**9, help="The first of them; the others follow it.")] = 0,
    env_steps: Annotated[int, typer.Option(min=1, help="Budget of each session.")] = 500_000,
    iterations: Annotated[
        int, typer.Option(min=0, max=100, help="Refinements after iteration 0, where they are no arm.")
    ] = 3,
    attempts: Annotated[
        int | None, typer.Option(min=1, max=10, help="At writing each action in an iteration, where they are no arm.")
    ] = None,
    test_episodes: Annotated[int, typer.Option(min=1, max=10_000, help="Of each variant of each session.")] = 100,
    dev_episodes: Annotated[
        int,
        typer.Option(min=1, max=1000, help="Of each iteration; 30 more where they leave open what acts."),
    ] = 20,
    llm: Annotated[str, typer.Option(help="rules (the rule-based model) or openai.")] = "rules",
    model: Annotated[str | None, typer.Option(help="A model of the server.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Any server that speaks Chat Completions.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="USD for each session.")] = None,
    reward: Annotated[
        Reward | None,
        typer.Option(help="What all arms learn from: published (the world's own), success (1 when it is done)."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Sessions at once; as many as cores if left out.")] = None,
    evidence: Annotated[
        Path | None, typer.Option(parser=path_from, help="Write the finished sessions there as small bundles.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the bill and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it starts.")] = False,
    on: On = "",
    json: Json = False,
) -> None:
    """Run an experiment of the paper, or go on with it: the same tasks, seeds and budgets for every arm."""
    if llm not in ("rules", "openai"):
        raise Failure(f"there is no --llm {llm!r} for an experiment; there are rules and openai.", Exit.USAGE)
    settings: Tree = {
        "world": world,
        "llm": {"kind": llm} | _without_unset(model=model, base_url=base_url),
        "budget": {"env_steps": env_steps} | _without_unset(cost=max_cost),
        "loop": {"iterations": iterations, "test_episodes": test_episodes, "dev_first": dev_episodes}
        | _without_unset(inner=attempts),
    } | _without_unset(method={"reward": reward.value} if reward else None)
    cpus = _cpus(on, settings) if on else os.cpu_count()  # asked also where `jobs` is given: keys, worlds, versions
    request = {
        "kind": kind.value,
        "name": name,
        "tasks": tasks or [],
        "arms": arm or [],
        "seeds": list(range(first_seed, first_seed + seeds)),
        "settings": settings,
        "jobs": jobs or cpus or 1,
        "on": on,
        "to": str(evidence.absolute()) if evidence else "",
    }
    if not dry_run:
        need_room()
    bill = children.ask("experiment_bill", {"request": request})
    if json:
        output.record({"kind": "bill"} | bill)
    else:
        _tell_bill(bill)
    code = Exit.OK
    if bill["sessions"] and not dry_run:
        if not yes:
            _confirm(json)
        if evidence:
            children.ask("experiment_folder", {"request": request})
        code = _follow(request, json)
    if code == Exit.OK and not dry_run and not json:
        output.say(f"compare them: rlgpt compare {bill['name']}")
    if evidence and not dry_run:  # of what is over, also where it was stopped: all of it may take days
        answer = children.ask("experiment_bundles", {"request": request})
        if json:
            output.record({"kind": "kept"} | answer)
        else:
            missing = f", without {many(answer['missing'], 'session')} not done" if answer["missing"] else ""
            output.say(f"{many(len(answer['written']), 'bundle')} in {evidence}{missing}")
    if code != Exit.OK:
        raise typer.Exit(code)


def _cpus(on: str, settings: Tree) -> int:
    """Of the nodes on which a session can run. Raises Failure if there are none."""
    nodes = children.ask("cluster", {"on": on, "settings": settings | {"task": ""}})["nodes"]
    for node in nodes:
        if node["fault"]:
            output.note(f"{node['host']} is left out: {node['fault']}")
    cpus = sum(node["cpus"] for node in nodes if not node["fault"])
    if not cpus:
        words = f"no node of the cluster {on} can run a session; `rlgpt doctor --on {on}` says why."
        raise Failure(words, Exit.UNAVAILABLE)
    return int(cpus)


def _without_unset(**fields: Any) -> Tree:
    return {key: value for key, value in fields.items() if value is not None}


def _seeds(seeds: Sequence[int]) -> str:
    return many(len(seeds), "seed") + (f", from {seeds[0]}" if seeds[0] else "")


def _confirm(json: bool) -> None:
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("this is the bill; --yes starts it without a question.", Exit.USAGE)
    if not typer.confirm("Start?"):
        raise typer.Exit(Exit.OK)


def _follow(request: Tree, json: bool) -> Exit:
    """The child's records until it ends; its exit code. Ctrl-C and SIGTERM are handed on to the child, which stops its
    sessions cleanly.
    The child has a process group of its own, so that it gets one signal, whoever sent it: a terminal sends to the
    group, other programs to this process alone."""
    child = subprocess.Popen(
        children.command(MODULE), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(BrokenPipeError), child.stdin:  # it may have died already, which its exit code tells below
        child.stdin.write(json_module.dumps(request))
    refusal: Tree = {}
    is_over = False
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for line in child.stdout:
            if not line.endswith("\n"):  # it died while it wrote
                break
            report = json_module.loads(line)
            is_over = is_over or report.get("kind") == "done"
            if "error" in report:
                refusal = report
            elif json:
                output.record(report)
            else:
                _tell(report)
    except KeyboardInterrupt:
        output.note(_left(request) if request["on"] else f"stopping its sessions; {GOES_ON}")
        child.terminate()
        child.wait()
        return Exit.INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    code = child.wait()
    if refusal:
        raise Failure(str(refusal["error"]), Exit(refusal["exit_code"]))
    if code == Exit.INTERRUPTED:
        output.note(_left(request) if request["on"] else f"its sessions were stopped; {GOES_ON}")
        return Exit.INTERRUPTED
    if not is_over:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        raise Failure(f"the process that runs the experiment {how}; the same command goes on from here", Exit.ERROR)
    return Exit.OK if code == 0 else Exit.FAILED


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _left(request: Tree) -> str:
    return f"left: the sessions go on at {request['on']}, and the same command follows them again"


def _tell_bill(bill: Tree) -> None:
    output.say(f"{bill['name']}: {bill['about']}")
    output.say(f"tasks {_named(bill['tasks'])}; arms {_named(bill['arms'])}; {_seeds(bill['seeds'])}")
    _tell_failed(bill["failed"])
    if not bill["sessions"]:
        every, failed = bill["declared"], len(bill["failed"])
        output.say(f"{every - failed} of {every} sessions are done" if failed else f"all {every} sessions are done")
        return
    if bill["gone"]:
        output.say(f"{many(len(bill['gone']), 'session')} no longer in this store, run again: {_named(bill['gone'])}")
    output.say(
        f"{bill['sessions']} of {bill['declared']} sessions to run, {bill['jobs']} at once: at most "
        f"{count(bill['env_steps'])} env steps, and {count(bill['episodes_evaluated'])} episodes of evaluation"
    )
    output.say(
        f"about {duration(bill['hours'] * 3600)} at {bill['env_steps_per_second']:.0f} env steps/s a session "
        f"({bill['rate_from']})"
    )
    if bill["llm"] == "rules":
        output.say("rule-based model: 0 USD")
    elif bill["usd"] is None:
        most = "no limit" if bill["usd_at_most"] is None else f"{bill['usd_at_most']:.2f} USD"
        output.say(f"the price of {', '.join(bill['unpriced'])} is unknown; the budgets allow {most}")
    else:
        most = "without a limit" if bill["usd_at_most"] is None else f"never above {bill['usd_at_most']:.2f} USD"
        output.say(f"about {bill['usd']:.2f} USD for {count(bill['calls'])} calls, {most}")


def _named(words: list[str], most: int = 12) -> str:
    more = len(words) - most
    return ", ".join(words if more <= 0 else [*words[:most], f"{more} more"])


def _tell(report: Tree) -> None:
    kind = report.get("kind")
    if kind == "started":
        output.say(f"{report['session']}  {report['words']}: started")
    elif kind == "ended":
        output.say(f"{report['session']}  {report['words']}: {report['status']}, {report['reason']}")
    elif kind == "progress":
        left = "unknown" if report["seconds_left"] is None else f"about {duration(report['seconds_left'])}"
        share = report["env_steps"] / max(1, report["env_steps"] + report["env_steps_left"])
        output.say(f"{report['over']} of {report['sessions']} sessions, {share:.0%} of the env steps, left: {left}")
    elif kind == "done":
        _tell_done(report)


def _tell_done(report: Tree) -> None:
    _tell_failed(report["failed"])
    if report["complete"]:
        output.say("all sessions are done")
    if report["left"]:
        output.say(f"{many(report['left'], 'session')} not done: run it again")


def _tell_failed(failed: list[str]) -> None:
    if failed:
        output.say(f"{many(len(failed), 'session')} failed: {_named(failed)}")
        output.say("`rlgpt resume ID` goes on with one; `rlgpt store delete ID`, and the same command runs it anew")
