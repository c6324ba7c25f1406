"""Plays scripts of the book in process: what `follow_plan` does, without a host."""

from __future__ import annotations

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.crafter import host_side

MAX_OPTION_STEPS = 16


def load(source):
    """The action of a source: its last generator whose first parameter is `view`."""
    scope = dict(host_side.LIBRARY)
    exec(compile(source, "script", "exec"), scope)
    return [value for value in scope.values() if getattr(value, "__module__", 0) is None or _is_action(value)][-1]


def _is_action(value):
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename == "script" and code.co_flags & 0x20 and code.co_argcount == 1


def plan_of(world, *names, rung=-1):
    """(done_when, action) of scripts by name."""
    book = {script.name: script for script in world.scripts("crafter_score")}
    return [(compile(book[name].done_when, "done_when", "eval"), load(book[name].sources[rung])) for name in names]


def play(env, plan, seed, keep=False):
    """One episode of `follow_plan`; True on success. With `keep` returns the commands as well."""
    env.reset(seed)
    decoder = host_side.decoder()
    start = view = decoder.view(env.view(True))
    commands, over = [], False
    while not over:
        scope = {**host_side.LIBRARY, "start": start, "view": view}
        call = next((action(view) for done, action in plan if not eval(done, scope)), None)
        taken = 0
        try:
            yielded = next(call) if call else "noop"
            while True:
                command = host_side.encode(yielded)
                commands.append(command[0])
                over = env.step(command).terminated
                view = decoder.view(env.view(False))
                taken += 1
                if over or taken >= MAX_OPTION_STEPS or env.interrupt() or not call:
                    break
                yielded = call.send(view)
        except StopIteration:
            if not taken:
                over = env.step((0,)).terminated
                commands.append(0)
                view = decoder.view(env.view(False))
    return (env.succeeded(), commands) if keep else env.succeeded()


def world():
    return registry.get("crafter")
