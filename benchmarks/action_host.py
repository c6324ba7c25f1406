"""Microseconds per env step through the action host, against calling the same generators in process.

    .venv/bin/python -P benchmarks/action_host.py [--rounds 40] [--json]

Prints for each figure the median of the rounds (at least 5) and their least, quartiles and greatest.

World crafter with its full view: whole when a call opens, what changed on each of its 16 env steps. Four ways run
the same calls in turns, so that a busy machine disturbs all alike: `direct` decodes the view and resumes the
generator (no host), `trusted` is the host's engine in process, `process` a host process, `locked` a locked one.
The share is that of the host in a tick that also steps and observes the worlds. Medians of the rounds. The calls
read the senses; the map memory is sent to them as to any call, but worked out only for code that asks for it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from rlgpt.training.host.api import Action, Ask, Host, Mode, Programs
from rlgpt.training.host.client.open_host import hello, open_host
from rlgpt.training.host.client.process import HostProcess
from rlgpt.training.host.sandbox.program import Language, Program
from rlgpt.training.host.sandbox.runtime import Meter
from rlgpt.training.worlds import registry
from rlgpt.training.worlds.protocol import World

STEPS = 16
LANES = (1, 4, 16)
SOURCE = """
def forage(view):
    while True:
        if view.drink < 3 and view.front == "water":
            view = yield "do"
        elif view.front == "tree" and view.inventory["wood"] < 9:
            view = yield "do"
        elif view.daylight > 0.5 and view.steps % 3:
            view = yield "move_left"
        else:
            view = yield "move_up"
"""
Tick = Callable[[list[list[bytes]], int], None]


def recorded(world: World, lanes: int) -> list[list[bytes]]:
    """Packed views of one call in each lane."""
    sequences = []
    for lane in range(lanes):
        env = world.make(next(iter(world.tasks)))
        env.reset(lane)
        views = [env.view(True)]
        for step in range(STEPS - 1):
            env.step(world.native_action([1 + (step + lane) % 4]))
            views.append(env.view(False))
        sequences.append(views)
        env.close()
    return sequences


def hosted(world: World, mode: Mode) -> tuple[Host, Tick]:
    host = open_host(world, lanes=max(LANES), mode=mode, seed=0, allow_process=True)
    admission = host.admit("action", SOURCE, recorded(world, 1))
    assert admission.admitted, admission
    host.load(Programs(actions=(Action(admission.source_hash),)))

    def tick(views: list[list[bytes]], step: int) -> None:
        opens = 0 if step == 0 else None
        asks = [
            Ask(lane, packed[step], open=opens, resume=step > 0, episode_start=step == 0)
            for lane, packed in enumerate(views)
        ]
        assert all(answer.command for answer in host.tick(asks))

    return host, tick


def direct(world: World) -> Tick:
    """Decode, resume, encode: what any way must do."""
    side = importlib.import_module(world.host_module)
    language = Language(side, Meter())
    program = Program(language.check("action", SOURCE), language)
    decoders: dict[int, Any] = {}
    calls: dict[int, Any] = {}

    def tick(views: list[list[bytes]], step: int) -> None:
        for lane, packed in enumerate(views):
            if step == 0:
                decoders[lane] = side.decoder()
                calls[lane] = program.open(decoders[lane].view(packed[0]), {})
                side.encode(next(calls[lane]))
            else:
                side.encode(calls[lane].send(decoders[lane].view(packed[step])))
            language.meter.refill()

    return tick


def seconds(tick: Tick, views: list[list[bytes]]) -> float:
    """Of one call of STEPS env steps in every lane."""
    began = time.perf_counter()
    for step in range(STEPS):
        tick(views, step)
    return time.perf_counter() - began


def world_step(world: World) -> float:
    """Seconds of one env step with its observation and view."""
    env = world.make(next(iter(world.tasks)))
    env.reset(0)
    taken = []
    for step in range(300):
        began = time.perf_counter()
        over = env.step(world.native_action([1 + step % 4])).terminated
        env.observe()
        env.view(False)
        taken.append(time.perf_counter() - began)
        if over:
            env.reset(step)
    env.close()
    return statistics.median(taken)


def spread(taken: list[float]) -> dict[str, float]:
    """Median, least, quartiles and greatest."""
    low, median, high = statistics.quantiles(taken, n=4, method="inclusive")
    return {"median": median, "min": min(taken), "q1": low, "q3": high, "max": max(taken)}


def shown(figures: dict[str, float]) -> str:
    least, low, high, most = (figures[name] for name in ("min", "q1", "q3", "max"))
    return f"{figures['median']:8.1f}  ({least:.1f} | {low:.1f} {high:.1f} | {most:.1f})"


def spawn(world: World, rounds: int) -> list[float]:
    """Seconds from spawn to ready and locked, of each round."""
    greeting = hello(world, max(LANES), "locked", 0)
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        process = HostProcess(greeting)
        process.ready()
        taken.append(time.perf_counter() - began)
        process.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    world = registry.get("crafter")
    modes: tuple[Mode, ...] = ("trusted", "process", "locked")
    hosts = {mode: hosted(world, mode) for mode in modes}
    ways: dict[str, Tick] = {"direct": direct(world), **{mode: tick for mode, (_, tick) in hosts.items()}}
    step = world_step(world)
    table: dict[str, dict[str, dict[str, float]]] = {}
    rounds = max(5, words.rounds)
    for lanes in LANES:
        views = recorded(world, lanes)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, tick in ways.items():
                taken[name].append(seconds(tick, views) / STEPS / lanes * 1e6)
        table[str(lanes)] = {name: spread(each) for name, each in taken.items()}
    ready = spread([each * 1e3 for each in spawn(world, min(rounds, 20))])
    for host, _ in hosts.values():
        host.close()
    if words.json:
        print(json.dumps({"us_per_env_step": table, "world_step_us": step * 1e6, "spawn_to_ready_ms": ready}))
        return
    print(f"us per env step: median of {rounds} rounds (least | quartiles | greatest)")
    for lanes, row in table.items():
        share = row["locked"]["median"] / (row["locked"]["median"] + step * 1e6)
        print(f"{lanes} open options; the locked host's share of a tick {share:.1%}")
        for name, figures in row.items():
            print(f"  {name:>8} {shown(figures)}")
    print(f"spawn to ready, ms: {shown(ready)}")
    print(f"a crafter step with observation and view: {step * 1e6:.0f} us")


if __name__ == "__main__":
    main()
