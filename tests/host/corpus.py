"""Attempts to hurt, and where each must end. Run as a program it prints {attempt: [expected, got, seconds]}.

`expected` is `refused RULE`, or how a call that was admitted ends: `return`, `error`, `bad_yield`, `budget`,
`killed`; alternatives are separated by a bar where the machine decides which comes first.
While they run, an innocent call is open in another lane; it must go on as if nothing had happened.
"""

from __future__ import annotations

import json
import sys
import time
from typing import NamedTuple, get_args

from rlgpt.training.host.api import Action, Ask, Kind, Mode, Programs
from rlgpt.training.host.client.open_host import open_host
from rlgpt.training.host.sandbox.lane import STEPS_CAP
from tests.host.world import WORLD, packed


class Attempt(NamedTuple):
    name: str
    expected: str
    source: str
    kind: Kind = "action"


def body(name: str, expected: str, *lines: str) -> Attempt:
    """An action whose first yield is harmless, so that the dry run of one view admits it; then `lines`."""
    return Attempt(
        name, expected, "\n".join(["def act(view):", '    view = yield "stay"', *("    " + x for x in lines)])
    )


def first(name: str, expected: str, *lines: str) -> Attempt:
    """An action that misbehaves before its first yield."""
    return Attempt(name, expected, "\n".join(["def act(view):", *("    " + x for x in lines), '    yield "stay"']))


ESCAPES = (
    first("import", "refused syntax element", "import os"),
    first("import from", "refused syntax element", "from os import system"),
    Attempt("import at the top", "refused top level", "import os\ndef act(view):\n    yield 'stay'"),
    first("__import__", "refused attribute", "__import__('os').system('true')"),
    first("builtins by name", "refused underscore", "x = __builtins__"),
    first("open", "refused name", "open('/etc/passwd')"),
    first("eval", "refused name", "eval('1')"),
    first("exec", "refused name", "exec('x = 1')"),
    first("compile", "refused name", "compile('1', '', 'eval')"),
    first("getattr", "refused name", "getattr(view, 'at')"),
    first("globals", "refused name", "globals()"),
    first("breakpoint", "refused name", "breakpoint()"),
    first("input", "refused name", "input()"),
    first("type", "refused name", "type(view)"),
    first("object classes", "refused underscore", "().__class__.__base__.__subclasses__()"),
    first("function globals", "refused underscore", "distance.__globals__"),
    first("generator frame", "refused attribute", "(x for x in ()).gi_frame.f_back"),
    first("generator code", "refused attribute", "(x for x in ()).gi_code"),
    first(
        "traceback frame", "refused underscore", "try:", "    1 / 0", "except Exception as e:", "    e.__traceback__"
    ),
    first("with_traceback", "refused attribute", "try:", "    1 / 0", "except Exception as e:", "    e.with_traceback"),
    first("error object", "refused attribute", "try:", "    view.gone", "except AttributeError as e:", "    e.obj"),
    first("str.format", "refused attribute", "'{0.__class__}'.format(view)"),
    first("format_map", "refused attribute", "'{x}'.format_map({'x': view})"),
    first("format as value", "refused attribute", "f = 'x'.format"),
    first("f-string conversion", "refused f-string", "x = f'{view!r}'"),
    first("f-string spec", "refused f-string", "x = f'{1:>9999999}'"),
    first("full-width underscore name", "refused underscore|refused name|refused syntax", "x = ＿＿import＿＿"),
    first("full-width attribute", "refused underscore|refused attribute", "x = ().__ｃlass__"),
    Attempt("class", "refused top level", "class A:\n    pass\ndef act(view):\n    yield 'stay'"),
    first("inner class", "refused syntax element", "class A:", "    x = 1"),
    first("decorator", "refused decorator", "@act", "def f():", "    pass"),
    first("with", "refused syntax element", "with view:", "    pass"),
    first("match class pattern", "refused syntax element", "match view:", "    case str():", "        pass"),
    Attempt("async action", "refused top level", "async def act(view):\n    yield 'stay'"),
    first("global", "refused syntax element", "global x", "x = 1"),
    first("mro", "refused attribute", "int.mro()"),
    first("bytes methods", "refused attribute", "x = int.from_bytes"),
    first("metaclass call", "refused name", "type('A', (), {})"),
    first("star import by name", "refused syntax", "from math import *"),
    Attempt("code in done_when", "refused name", "open('/etc/passwd')", "done_when"),
    Attempt("statement in done_when", "refused syntax", "import os", "done_when"),
    Attempt("closing bracket in done_when", "refused syntax", "True) or (lambda: 0)(", "done_when"),
    Attempt(
        "attribute in reward", "refused underscore", "def reward(before, view):\n    return view.__class__", "reward"
    ),
    first("print", "refused name", "print(1)"),
)
LEAKS = (
    first("hash", "refused name", "hash(view)"),
    first("id", "refused name", "id(view)"),
    first("repr", "refused name", "repr(act)"),
    first("address by str", "refused dry run", "x = str(act)"),
    first("address by f-string", "refused dry run", "x = f'{act}'"),
    first("address by percent", "refused dry run", "t = '%s'", "x = t % act"),
    first("address by percent of a tuple", "refused dry run", "t = '%s %s'", "x = t % (act, act)"),
    first("address in an error", "refused dry run", "raise ValueError(act)"),
    first("time", "refused name", "time()"),
    first("environment", "refused name", "environ['PATH']"),
    first("random module", "refused name", "random.random()"),
)
CORRUPTION = (
    first("set a view's attribute", "refused attribute", "view.at = 9"),
    first("delete a view's attribute", "refused attribute", "del view.at"),
    first("set a library function's attribute", "refused attribute", "distance.x = 1"),
    first("item of a view's tuple", "refused dry run", "view.seen[0] = 1"),
    first("tuple concatenation in place", "return", "s = view.seen", "s += (1,)"),
    Attempt(
        "append to a constant", "refused dry run", "MEMORY = []\ndef act(view):\n    MEMORY.append(1)\n    yield 'stay'"
    ),
    Attempt(
        "set an item of a constant", "refused dry run", "M = {'a': 1}\ndef act(view):\n    M['a'] = 2\n    yield 'stay'"
    ),
    Attempt("mutable default", "refused default", "def act(view):\n    yield 'stay'\ndef f(x=[]):\n    return x"),
    Attempt("computed default", "refused default", "def act(view):\n    yield 'stay'\ndef f(x=act):\n    return x"),
    Attempt("attribute of a function", "refused attribute", "def act(view):\n    act.count = 1\n    yield 'stay'"),
    first("replace a builtin", "return", "len = 3"),
    first(
        "finally outlives", "refused finally", "try:", "    yield 'stay'", "finally:", "    while True:", "        pass"
    ),
    first("bare except", "refused bare except", "try:", "    yield 'stay'", "except:", "    pass"),
    first("catch GeneratorExit", "refused except", "try:", "    yield 'stay'", "except GeneratorExit:", "    pass"),
    first("catch BaseException", "refused except", "try:", "    yield 'stay'", "except BaseException:", "    pass"),
    first(
        "catch a computed class",
        "refused except",
        "try:",
        "    yield 'stay'",
        "except (lambda: Exception)():",
        "    pass",
    ),
    first("except star", "refused syntax element", "try:", "    yield 'stay'", "except* ValueError:", "    pass"),
)
YIELDS = (
    first("yield a function", "refused dry run", "yield act"),
    first("yield True for 1", "refused dry run", "yield True"),
    first("yield a float", "refused dry run", "yield 1.0"),
    first("yield nothing", "refused dry run", "yield"),
    first("yield an unknown name", "refused dry run", "yield 'fly'"),
    first("yield the view", "refused dry run", "yield view"),
    first("yield a nest", "refused dry run", "x = ()", "for i in range(900):", "    x = (x,)", "yield x"),
    body("yield a wrong thing later", "bad_yield", "yield 17"),
    Attempt("return instead of yield", "refused no action", "def act(view):\n    return 'stay'"),
    Attempt(
        "reward that is not finite", "refused dry run", "def reward(before, view):\n    return float('nan')", "reward"
    ),
    Attempt("reward that is a text", "refused dry run", "def reward(before, view):\n    return 'much'", "reward"),
    Attempt("reward that yields", "refused yield", "def reward(before, view):\n    yield 1", "reward"),
)
TIME = (
    body("endless loop", "budget", "while True:", "    pass"),
    body(
        "endless loop around except",
        "budget",
        "while True:",
        "    try:",
        "        1 / 0",
        "    except Exception:",
        "        pass",
    ),
    body("list that grows while it is read", "budget", "xs = [1]", "for x in xs:", "    xs.append(x)"),
    body("comprehension that grows", "budget", "xs = [1]", "ys = [xs.append(x) for x in xs]"),
    body("generator that grows", "budget", "xs = [1]", "xs.extend(x for x in xs)"),
    body("maximum of an endless generator", "budget", "def g():", "    while True:", "        yield 1", "max(g())"),
    body("endless recursion", "error", "def f(n):", "    return f(n + 1)", "f(0)"),
    body("endless recursion by lambda", "error", "f = lambda f: f(f)", "f(f)"),
    body("recursion that doubles", "budget", "def f(n):", "    return f(n - 1) + f(n - 1) if n else 1", "f(60)"),
    body("recursive generators", "error|budget", "def g():", "    yield from g()", "yield from g()"),
    body("power by multiplication", "killed", "x = 3", "for i in range(60):", "    x = x * x"),
    body("rounding to huge powers", "killed|error", "round(7, -1000000000)"),
    body("colliding keys", "killed|budget", "d = {}", "for i in range(49000):", "    d[i * 2305843009213693951] = i"),
    body("quadratic joining", "killed|error|return", "x = sum([[0] * 1000] * 20000, [])"),
    body("huge range", "error", "for i in range(99999999999):", "    pass"),
    body("huge range in one call", "error", "sum(range(99999999999))"),
    body("maximum that feeds itself", "killed|error", "xs = [1]", "max(xs, key=xs.append)"),
    body(
        "repeated sorting",
        "killed|budget",
        "xs = list(range(1000000))",
        "while True:",
        "    xs = sorted(xs, reverse=True)",
    ),
    Attempt("endless done_when", "refused dry run", "[x for x in [1] for y in range(1000000)]", "done_when"),
    Attempt("endless reward", "refused dry run", "def reward(before, view):\n    while True:\n        pass", "reward"),
    first("killed in the dry run", "refused killed", "x = 3", "for i in range(60):", "    x = x * x"),
    body("more steps than allowed", "budget", "while True:", "    yield 'stay'"),
)
MEMORY = (
    body("huge text", "error|killed", "x = 'ab' * 5000000000"),
    body("huge tuple", "error|killed", "x = (1,) * 5000000000"),
    body("list that doubles", "error|killed", "x = [1]", "for i in range(60):", "    x = x + x"),
    body("text that doubles", "error|killed", "x = 'x'", "for i in range(60):", "    x = x + x"),
    body("many large lists", "error|killed", "xs = [[i] * 10000 for i in range(40000)]"),
    body("large texts as keys", "error|killed", "d = {('x' * 1000000) + f'{i}': i for i in range(40000)}"),
    body(
        "memory error swallowed",
        "error|killed|budget|return",
        "xs = []",
        "while True:",
        "    try:",
        "        xs.append('x' * 10000000)",
        "    except Exception:",
        "        break",
    ),
    first("integer of many digits", "refused number", "x = 1" + "0" * 900),
    first("digits to integer", "refused dry run", "x = int('9' * 5000)"),
)
CRASHES = (
    body(
        "deeply nested list, compared",
        "error|killed|return",
        "a = []",
        "b = []",
        "for i in range(40000):",
        "    a = [a]",
        "    b = [b]",
        "x = a == b",
    ),
    body(
        "deeply nested tuple, hashed",
        "error|killed|return",
        "a = ()",
        "for i in range(40000):",
        "    a = (a,)",
        "x = {a: 1}",
    ),
    body(
        "deeply nested tuple, freed", "return|killed", "a = ()", "for i in range(40000):", "    a = (a, a)", "a = None"
    ),
    body(
        "deep chain of generators",
        "error|killed|return",
        "g = (x for x in [1])",
        "for i in range(40000):",
        "    g = (x for x in g)",
        "x = next(g)",
    ),
    body(
        "isinstance of a nest",
        "error|killed",
        "a = int",
        "for i in range(40000):",
        "    a = (a, a)",
        "isinstance(1, a)",
    ),
    body("dictionary changed while it is read", "error", "d = {1: 1}", "for k in d:", "    d[k + 1] = 1"),
    body("list changed while it is sorted", "error", "xs = [3, 2, 1]", "xs.sort(key=lambda x: xs.append(x) or x)"),
    body("generator that resumes itself", "error", "def g():", "    yield next(h)", "h = g()", "next(h)"),
    body("raise what is no exception", "error", "raise 7"),
    body("raise StopIteration", "error", "raise StopIteration(7)"),
    body(
        "exception with a nest inside",
        "error|killed",
        "a = []",
        "for i in range(40000):",
        "    a = [a]",
        "raise ValueError(a)",
    ),
    first("deep nest of brackets", "return", "x = " + "(" * 150 + ")" * 150),
    first("deep nest of lists", "refused too deep|refused syntax", "x = " + "[" * 60 + "]" * 60),
    first("deep chain of nots", "refused too deep|refused syntax", "x = " + "not " * 3000 + "1"),
    first("deep chain of attributes", "refused too deep|refused syntax", "x = view" + ".at" * 3000),
    first("deep chain of minus", "refused too deep|refused syntax", "x = " + "-" * 9000 + "1"),
    first("long sum", "refused too deep|refused syntax|refused too long", "x = " + "1+" * 6000 + "1"),
    first("null byte", "refused syntax", "x = '\0'"),
    first("lone surrogate", "refused syntax", "x = '\ud800'"),
    Attempt("too long", "refused too long", "#" * 70_000 + "\ndef act(view):\n    yield 'stay'"),
    Attempt("empty", "refused empty", " \n"),
    first("coding cookie", "return", "# -*- coding: utf-7 -*-", "x = '+AGE-'"),
)
LIBRARY = (
    body("library with wrong types", "error", "distance('a', [])"),
    body("library with huge numbers", "return", "x = distance(4611686018427387903, -4611686018427387903)"),
    body("rng with a huge range", "error", "rng.randint(0, 4611686018427387903)"),
    body("rng with an empty choice", "error", "rng.choice([])"),
    body("shuffle a tuple", "error", "rng.shuffle(view.seen + (1, 2))"),
    body("rng as a way out", "error", "rng.choice(rng)"),
)
CORPUS = (*ESCAPES, *LEAKS, *CORRUPTION, *YIELDS, *TIME, *MEMORY, *CRASHES, *LIBRARY)

INNOCENT = """
def count(view):
    steps = 0
    while True:
        steps += 1
        view = yield "left" if steps % 3 else "right"
"""


def ends(mode: Mode) -> dict[str, tuple[str, str, float]]:
    """Attempt -> (expected, what happened, seconds of the longest single exchange)."""
    host = open_host(WORLD, lanes=2, mode=mode, seed=1, allow_process=mode == "process")
    results = {}
    innocent = Action(host.admit("action", INNOCENT, [[packed(0, whole=True)]]).source_hash)
    for attempt in CORPUS:
        longest = 0.0
        start = time.monotonic()
        admission = host.admit(attempt.kind, attempt.source, [[packed(0, whole=True)]])
        longest = time.monotonic() - start
        if not admission.admitted:
            results[attempt.name] = (attempt.expected, f"refused {admission.rule}", longest)
            assert admission.message, attempt.name
            continue
        if attempt.kind != "action":
            results[attempt.name] = (attempt.expected, "admitted", longest)
            continue
        host.load(Programs(actions=(innocent, Action(admission.source_hash))))
        whole = packed(0, whole=True)
        host.tick([Ask(0, whole, open=0, episode_start=True), Ask(1, whole, open=1, episode_start=True)])
        end, steps = None, 1
        while end is None:
            start = time.monotonic()
            there, here = host.tick([Ask(0, packed(1), resume=True), Ask(1, packed(1), resume=True)])
            longest = max(longest, time.monotonic() - start)
            end, steps = here.end, steps + 1
            expected = ((1,) if steps % 3 else (2,)) if steps <= STEPS_CAP else None
            assert there.command == expected, f"{attempt.name} disturbed another call"
        results[attempt.name] = (attempt.expected, end, longest)
    blamed = {death.source_hash for death in host.take_deaths()}
    assert innocent.source_hash not in blamed and "" not in blamed
    host.close()
    return results


if __name__ == "__main__":
    assert sys.argv[1] in get_args(Mode)
    print(json.dumps(ends(sys.argv[1])))  # type: ignore[arg-type]
