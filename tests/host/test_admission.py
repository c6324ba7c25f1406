"""What is admitted, what is refused, and that a refusal tells its author the rule, the line and the cure."""

from __future__ import annotations

import pytest

from rlgpt.training.host.sandbox.admission import Checked, Vocabulary, check
from rlgpt.training.host.sandbox.parsing import Refused

WORLD = Vocabulary({"nearest", "TREE"}, {"at", "wood", "known"}, methods={"known"})


def action(*lines: str) -> Checked:
    return check("action", "\n".join(["def act(view):", *("    " + line for line in lines)]), WORLD)


def refused(kind: str, source: str) -> Refused:
    with pytest.raises(Refused) as caught:
        check(kind, source, WORLD)
    return caught.value


def test_an_ordinary_action_is_admitted_with_its_arguments() -> None:
    source = '''
"""Walk to things."""
STEPS: int = 4
NAMES = {"oak": ("tree", 1), "rock": ("stone", -1)}
ignore_alarm = True

def available(view, what):
    return view.at[0] > 0 and NAMES[what] is not None

def towards(view: "View", what: str) -> "View":
    """A helper."""
    for _ in range(STEPS):
        view = yield f"go_{what}"
    return view

def walk(view, what: Literal["oak", "rock"] = "oak", far: Literal[True, False, -3] = False):
    seen: list = [(x, y) for x, y in view.at if x % 2 == 0]
    total = sum(x for x, _ in seen) or 1
    best = min(seen, key=lambda cell: abs(cell[0] - total), default=None)
    try:
        view = yield from towards(view, what)
    except (KeyError, ValueError) as error:
        raise ValueError(f"lost at {total}") from error
    while not (yield "noop").wood:
        del seen[0]
    return best
'''
    checked = check("action", source, WORLD)
    assert checked.name == "walk"
    assert checked.arguments == {"what": ("oak", "rock"), "far": (True, False, -3)}
    assert (checked.has_available, checked.uninterruptible, checked.uses_rng) == (True, True, False)


def test_the_last_generator_of_a_view_is_the_action() -> None:
    source = "def step(view):\n    yield 'a'\ndef act(view):\n    yield from step(view)\ndef help(x):\n    yield x"
    assert check("action", source, WORLD).name == "act"


def test_a_helper_may_stand_below_the_generator_that_calls_it() -> None:
    below = "def step(view, n):\n    yield 'a'\n    yield from step(view, n)"
    source = f"def act(view):\n    yield from step(view, 2)\n{below}"
    assert check("action", source, WORLD).name == "act"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x = math.sqrt(2)", "`math` is not available: modules"),
        ("x = math.nearest(2)", "write `nearest` alone"),
        ("x = random.uniform(0, 1)", "use `rng`"),
        ("x = rng.uniform(0, 1)", "`rng` has: choice, randint"),
    ],
)
def test_a_module_is_refused_before_what_is_taken_from_it(line: str, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        action(line, "yield 'a'")


def test_comments_docstrings_and_annotations_do_not_make_another_tree() -> None:
    plain = action("x = 1", "yield x")
    dressed = '"""Doc."""\ndef act(view) -> None:\n    """Doc."""  # why\n    x = 1\n    yield x'
    assert plain.tree_hash == check("action", dressed, WORLD).tree_hash
    assert plain.tree_hash != action("x = 2", "yield x").tree_hash


def test_the_hash_of_the_code_is_the_same_in_every_python() -> None:
    source = "def go(view):\n    for x in [1, 2]:\n        yield max(x, key=None) if x else 'a, type_params=[]'\n"
    others = source.replace(", type_params=[]", "")
    assert check("action", source, WORLD).tree_hash == "c915e8734cf70c77e007d8188c73b18c"
    assert check("action", others, WORLD).tree_hash != "c915e8734cf70c77e007d8188c73b18c"


def test_done_when_is_one_expression_over_start_and_view() -> None:
    assert check("done_when", "True", WORLD).kind == check("done_when", "view.wood", WORLD).kind == "done_when"
    assert check("done_when", "view.wood and True or not view.known('tree')", WORLD).kind == "done_when"
    assert check("done_when", "(view.wood or 3) > 2 and view.at in ('a' or 'b')", WORLD).kind == "done_when"
    assert check("done_when", " view.wood - start.wood >= 3 and any(x for x in view.at) ", WORLD).kind == "done_when"


def test_a_reward_takes_before_and_view() -> None:
    source = "def helper(x):\n    return x * 2\ndef reward(before, view):\n    return helper(view.wood - before.wood)"
    assert check("reward", source, WORLD).name == "reward"


@pytest.mark.parametrize(
    ("kind", "source", "rule", "line", "cure"),
    [
        ("action", "import os\ndef act(view):\n    yield 1", "top level", 1, "already there"),
        ("action", "def act(view):\n    x = 1\n    x = y\n    yield x", "name", 3, "available:"),
        ("action", "def act(view):\n    print(1)\n    yield 1", "name", 2, "raise ValueError"),
        ("action", "def act(view):\n    yield view.gold", "attribute", 2, "at, known, wood"),
        ("action", "def act(view):\n    yield view.at.__class__", "underscore", 2, "underscore"),
        ("action", "def act(view):\n    yield 2 ** 3", "syntax element", 2, "x * x"),
        ("action", "def act(view):\n    yield 2 << 3", "syntax element", 2, "multiply"),
        ("action", "def act(view):\n    try:\n        yield 1\n    finally:\n        x = 1", "finally", 2, "after"),
        ("action", "def act(view):\n    try:\n        yield 1\n    except:\n        x = 1", "bare except", 4, "write"),
        ("action", "def act(view, n):\n    yield n", "argument", 1, "Literal"),
        ("action", "def act(view, n: Literal[1, 2, 3, 4, 5, 6, 7]):\n    yield n", "argument", 1, "6"),
        ("action", "def act(view, n: Literal[1.5]):\n    yield n", "argument", 1, "whole numbers"),
        ("action", "def act(view, *n):\n    yield n", "signature", 1, "named parameters"),
        ("action", "x = 1\ndef act(view):\n    return 1", "no action", 2, "yield"),
        ("action", "def act(state):\n    yield 1", "no action", 1, "`view`"),
        ("action", "def available(view, z):\n    return True\ndef act(view):\n    yield 1", "signature", 1, "(view)"),
        ("action", "def available(view):\n    yield 1\ndef act(view):\n    yield 1", "yield", 1, "True or False"),
        ("action", "x = 2\nignore_alarm = 1\ndef act(view):\n    yield 1", "ignore_alarm", 2, "True"),
        ("action", "def act(view):\n    yield 1 +", "syntax", 2, "invalid syntax"),
        ("action", "def act(view):\n    yield f'{view.at:3}'", "f-string", 2, "round"),
        ("action", "def act(view):\n    view.wood = 3\n    yield 1", "attribute", 2, "immutable"),
        ("action", "def act(view):\n    x = 1\n    x %= 2\n    yield x", "remainder", 3, "x = x % y"),
        ("done_when", "view.wood > nothing", "name", 1, "start"),
        ("done_when", "rng.random() > 1", "name", 1, "rng"),
        ("done_when", "x = 1", "syntax", 1, "one expression"),
        ("done_when", "lambda start, view: view.wood >= 3", "expression", 1, "without `lambda`"),
        ("done_when", "view", "expression", 1, "`view` alone"),
        ("done_when", "len", "expression", 1, "a condition on `view`"),
        ("done_when", "'yes'", "expression", 1, "a condition on `view`"),
        ("done_when", "1", "expression", 1, "`1` alone"),
        ("done_when", "None", "expression", 1, "`None` alone"),
        ("done_when", "[]", "expression", 1, "one condition"),
        ("done_when", "view.wood >= 3,", "expression", 1, "`and` or `or`"),
        ("done_when", "(x for x in view.at)", "expression", 1, "`any(...)`"),
        ("done_when", "f'{view.wood}'", "expression", 1, "not a text"),
        ("done_when", "view.at == 'coal' or 'iron'", "expression", 1, "`x in (a, b)`"),
        ("done_when", "view.wood and not (view.wood > 3 or 5)", "expression", 1, "`5` alone"),
        ("done_when", "view.known", "expression", 1, "call it: `view.known(...)`"),
        ("done_when", "view.wood > 2 and view.known", "expression", 1, "`.known` alone is a function"),
        ("reward", "def reward(view):\n    return 1", "no reward", 0, "def reward(before, view)"),
        ("reward", "def reward(before, view):\n    return rng.random()", "name", 2, "rng"),
        ("action", "x = 1\n" * 700, "too long", 0, "600 lines"),
        ("action", "def act(view):\n    yield " + "+".join("1" * 60), "too deep", 0, "intermediate"),
        ("action", "def act(view):\n" + "    x = [1, 2, 3, 4]\n" * 550 + "    yield 1", "too long", 0, "4000"),
    ],
    ids=lambda value: value.splitlines()[-1][:30] if isinstance(value, str) and value else str(value),
)
def test_a_refusal_names_rule_line_and_cure(kind: str, source: str, rule: str, line: int, cure: str) -> None:
    found = refused(kind, source)
    assert (found.rule, found.line) == (rule, line), found.message
    assert cure in found.message


def test_the_first_offence_in_the_source_is_named() -> None:
    assert refused("action", "def act(view):\n    a = open\n    b = eval\n    yield 1").line == 2
