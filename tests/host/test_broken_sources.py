"""Sources as language models and tired people send them: each is refused with the rule, the line and what happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlgpt.training.host.api import Host
from rlgpt.training.host.sandbox.runtime import PARTS_CAP, describe_value, is_plain, sentence
from rlgpt.training.service.__main__ import answer
from tests.host.driving import WHOLE, source
from tests.host.world import packed

VIEWS = [[WHOLE, *(packed(at) for at in range(1, 6))]]

SYNTAX = {
    "missing colon": ("def run(view)\n    yield 'noop'\n", 1, "expected ':'"),
    "unbalanced bracket": ("def run(view):\n    x = (1, 2\n    yield 'noop'\n", 2, "'(' was never closed"),
    "bracket too many": ("def run(view):\n    x = 1)\n    yield 'noop'\n", 2, "unmatched ')'"),
    "bad indentation": ("def run(view):\n  x = 1\n    yield 'noop'\n", 3, "unexpected indent"),
    "no body": ("def run(view):\nyield 'noop'\n", 2, "expected an indented block"),
    "tabs and spaces": ("def run(view):\n        x = 1\n\ty = 2\n    yield x", 3, "inconsistent use of tabs"),
    "= =": ("def run(view):\n    if view.at = = 3:\n        yield 'noop'\n", 2, "invalid syntax"),
    "= for ==": ("def run(view):\n    if view.at = 3:\n        yield 'noop'\n", 2, "Maybe you meant '=='"),
    "open string": ("def run(view):\n    yield 'noop\n", 2, "unterminated string literal"),
    "prose": ("Sure! Here is an action that walks to the tree.\n", 1, "invalid syntax"),
    "fenced": ("```python\ndef run(view):\n    yield 'noop'\n```", 1, "send the code alone, without the ```"),
    "prose and fence": ("Here it is:\n```\ndef run(view):\n    yield 'noop'\n```", 1, "without the ```"),
    "escaped newlines": ("def run(view):\\n    yield 'noop'\\n", 1, "send real line breaks"),
    "nonlocal at the top": ("nonlocal x\ndef run(view):\n    yield 'noop'", 1, "not allowed at module level"),
    "break outside a loop": ("def run(view):\n    yield 'noop'\n    break", 3, "'break' outside loop"),
    "await": ("def run(view):\n    await view\n    yield 'noop'", 2, "'await' outside async function"),
    "async for": ("def run(view):\n    async for x in view:\n        yield x", 2, "'async for' outside async function"),
    "return outside": ("return 3\ndef run(view):\n    yield 'noop'", 1, "'return' outside function"),
    "argument twice": ("def run(view, view):\n    yield 'noop'", 1, "duplicate argument 'view'"),
    "byte order mark": ("\ufeffdef run(view)\n    yield 'noop'\n", 1, ""),
    "NUL": ("def run(view):\n    yield 'no\0op'\n", 2, "null bytes"),
    "5,000 digits": ("def run(view):\n    yield " + "9" * 5000, 2, "limit (4300 digits)"),
}
"""Name -> source, line, words of the sentence."""


@pytest.mark.parametrize("name", SYNTAX)
def test_try_tells_pythons_own_words_and_the_line(name: str, tmp_path: Path) -> None:
    text, line, words = SYNTAX[name]
    file = tmp_path / "action.py"
    file.write_bytes(text.encode())
    asked = {"ask": "try_action", "file": str(file), "world": "tests.worlds.corridor:make_world"}
    told = answer(json.dumps(asked))["ok"]
    assert (told["rule"], told["line"], told["host_deaths"]) == ("syntax", line, 0), told
    assert words in told["message"]


RUNS = {
    "memory at once": (("a = [0] * 100000000",), 3, "MemoryError: more memory than an action may use"),
    "memory in a text": (("a = 'x' * 999999999",), 3, "MemoryError"),
    "a long message": (("raise ValueError('x' * 5000)",), 3, "ValueError: " + "x" * 300 + "..."),
    "padding": (('"%999999999d" % 5',), 3, "`%` on a text is not available"),
    "padding by a name": (("wide = '%999999999d'", "wide % 5"), 4, "`%` on a text is not available"),
    "a huge number": (("x = 3", "for _ in range(14):", "    x = x * x", "raise ValueError(x)"), 6, "25969 bits"),
    "a huge index": (("x = 3", "for _ in range(14):", "    x = x * x", "raise KeyError((x, [x]))"), 6, "KeyError"),
    "no plain value": (("raise ValueError(view)",), 3, "ValueError: a value of type View"),
    "next without a default": (("x = next(y for y in [])",), 3, "StopIteration: `next` found nothing"),
    "a generator": (("def f():", "    yield 'stay'", "yield f()"), 5, "write `view = yield from ...`"),
    "nothing to choose": (("rng.choice([])",), 3, "ValueError: rng.choice has nothing to choose from"),
    "a default changed": (("def f(x=(1,)):", "    x[0] = 2", "f()"), 4, "take list(x)"),
    "nested values": (("raise ValueError([[1, 2, (3, 4)]] * 50)",), 3, "ValueError: [[1, 2, (3, 4)], "),
    "recursion": (("def f(x):", "    return f(x)", "f(1)"), 5, "RecursionError"),
    "endless": (("while True:", "    pass",), 3, "too much work without a yield"),
    "weird yield": (("yield [[[[view]]]]",), 3, "yield a primitive, not a list"),
    "surrogates": (("yield '\\ud800'",), 3, "there is no primitive `?`"),
    "itself": (("x = []", "x.append(x)", "yield x"), 5, "yield a primitive, not a list"),
    "wide": (("x = [0] * 256", "x = [x] * 256", "x = [x] * 256", "yield [x] * 256"), 6, "yield a primitive, not a l"),
}  # fmt: skip
"""Name -> body after the first yield, line, words of the sentence."""


@pytest.mark.parametrize("name", RUNS)
def test_what_fails_in_the_dry_run_is_told_and_the_host_lives(name: str, host: Host) -> None:
    body, line, words = RUNS[name]
    if host.mode == "trusted" and "memory" in name:
        pytest.skip("the trainer's own process has no such limit")
    told = host.admit("action", source('view = yield "stay"', *body), VIEWS)
    assert (told.admitted, told.rule, told.line) == (False, "dry run", line), told
    assert words in told.message
    assert host.deaths == 0


DIES = {
    "CPU": (("x = 3", "for _ in range(60):", "    x = x * x"), 5, "1000 ms of CPU time while it ran line 5"),
    "the C stack": (
        ("x = ()", "while True:", "    for _ in range(9000):", "        x = ((x,),)", '    yield "stay"', "    {x: 1}"),
        8,
        "died with SIGSEGV while it ran line 8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIES)
def test_a_host_that_dies_in_the_dry_run_blames_the_source(name: str, locked_host: Host) -> None:
    body, line, words = DIES[name]
    guilty = source('view = yield "stay"', *body)
    told = locked_host.admit("action", guilty, [[WHOLE, *(packed(at % 9) for at in range(12))]])
    assert (told.admitted, told.rule, told.line) == (False, "killed", line) and words in told.message, told
    assert [death.source_hash for death in locked_host.take_deaths()] == [told.source_hash]
    assert locked_host.admit("action", source('yield "stay"'), VIEWS).admitted


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("def act(view):\n    yield 'stay'\nact = 3", "dry run"),
        ("def available(view):\n    return True\ndef act(view):\n    yield 'stay'\navailable = 3", "dry run"),
        (f"def {'a' * 3000}(view):\n    yield 'stay'", "name"),
        (f"def act(view, what: Literal['{'a' * 3000}']):\n    yield 'stay'", "argument"),
        ("def act(view, what: Literal['\\ud800', '\\udfff']):\n    yield 'stay'", "argument"),
        ("def act(view):\n    yield '\ud800'", "syntax"),
        ("(" * 3000 + ")" * 3000, "syntax"),
        ("def act(view):\n    yield " + "-" * 9000 + "1", "too deep"),
        ("def act(view):\n    yield " + "[" * 150 + "]" * 150, "too deep"),
    ],
)  # fmt: skip
def test_what_no_answer_could_carry_is_refused_in_words(text: str, rule: str, host: Host) -> None:
    told = host.admit("action", text, VIEWS)
    assert (told.admitted, told.rule, host.deaths) == (False, rule, 0), told
    assert told.message


def test_a_sentence_can_be_made_of_any_error() -> None:
    deep: list[object] = []
    deep.append(deep)
    for payload in ("x" * 10**6, 10**5000, -(10**5000), [10**5000] * 9, deep, object(), {1: 2}, b"x", 1e400, None, ()):
        assert len(sentence(ValueError(payload))) < 400
        assert len(describe_value(payload)) < 400


def test_looking_at_a_value_ends() -> None:
    wide: object = 0
    for _ in range(4):
        wide = [wide] * 256
    empty: object = []
    for _ in range(3):
        empty = [empty] * 256
    assert not is_plain(wide) and not is_plain(empty) and is_plain([0] * (PARTS_CAP - 1))
