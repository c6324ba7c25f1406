"""The budget, the random numbers and the builtins of generated code."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgpt.training.host.sandbox.program import Language, Program
from rlgpt.training.host.sandbox.runtime import (
    Meter,
    OutOfTicks,
    Rng,
    add_up,
    bounded_range,
    frozen,
    is_instance,
    remainder,
    text,
    without_addresses,
)
from rlgpt.training.ordered_sets import FrozenSet, Items, Keys, Set
from tests.host import side


def program(source: str, ticks: int = 1000, kind: str = "done_when") -> Program:
    language = Language(side, Meter(ticks))  # type: ignore[arg-type]
    return Program(language.check(kind, source), language)


def ticks_of(expression: str) -> int:
    """The smallest budget with which an expression can be computed."""
    view = side.View(3, 0, ())
    for budget in range(200):
        made = program(expression, budget)
        try:
            made.entry(view, view)
        except OutOfTicks:
            continue
        return budget
    raise AssertionError("more than 200 ticks")


@pytest.mark.parametrize(
    ("expression", "ticks"),
    [
        ("view.at", 1),
        ("[x for x in range(10)]", 11),
        ("[x for x in range(3) for y in range(4)]", 1 + 3 + 12),
        ("{x: 1 for x in range(7)}", 8),
        ("sum(x for x in range(9))", 10),
        ("sorted(range(5), key=lambda x: -x)", 6),
        ("distance(1, 2)", 21),
    ],
)
def test_every_round_and_call_costs_one_tick(expression: str, ticks: int) -> None:
    assert ticks_of(expression) == ticks


def test_statements_are_counted_too() -> None:
    loops = ["    n = 0", "    while n < 5:", "        n += 1", "    for i in range(4):", "        n += i"]
    source = "\n".join(["def reward(before, view):", *loops, "    return 0"])
    assert program(source, 1 + 5 + 4, "reward").reward(None, None) == 0
    with pytest.raises(OutOfTicks):
        program(source, 1 + 5 + 3, "reward").reward(None, None)


def test_no_except_of_the_language_catches_the_end_of_the_budget() -> None:
    loop = ["    try:", "        while True:", "            pass", "    except Exception:", "        return 1"]
    source = "\n".join(["def reward(before, view):", *loop])
    with pytest.raises(OutOfTicks):
        program(source, 50, "reward").reward(None, None)


def test_equal_seeds_draw_equal_numbers_and_others_do_not() -> None:
    draws = [[Rng(*seeds).random() for _ in range(1)] for seeds in [(1, 2, 3), (1, 2, 3), (1, 3, 2), (0,), (1,)]]
    assert draws[0] == draws[1]
    assert len({tuple(draw) for draw in draws}) == 4


@given(st.integers(), st.integers(1, 1 << 31))
def test_rng_stays_in_range(seed: int, stop: int) -> None:
    rng = Rng(seed)
    assert 0 <= rng.randrange(stop) < stop
    assert 0.0 <= rng.random() < 1.0
    assert 5 <= rng.randint(5, 9) <= 9


def test_rng_is_uniform_enough() -> None:
    rng = Rng(7)
    counts = [0] * 10
    for _ in range(10_000):
        counts[rng.randrange(10)] += 1
    assert all(900 < count < 1100 for count in counts)


def test_a_shuffle_keeps_the_items() -> None:
    items = list(range(50))
    Rng(3).shuffle(items)
    assert items != list(range(50)) and sorted(items) == list(range(50))


def test_a_constant_is_frozen_all_the_way_down() -> None:
    made = frozen({"a": [1, {2: Set([3])}], "b": ([],)})
    assert made["a"][0] == 1 and isinstance(made["a"], tuple)
    with pytest.raises(TypeError):
        made["a"][1][2] = 0
    with pytest.raises(TypeError):
        Set.add(made["a"][1][2], 4)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        made["b"] = 1
    assert made["b"] == ((),)
    with pytest.raises(TypeError, match="function"):
        frozen([frozen])


@pytest.mark.parametrize("value", [len, object(), (len,), [object()], {1: 2}, b"x", "x" * 5000])
def test_a_text_is_made_of_plain_values_only(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        text(value)


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "x", (1, "a"), [1, [2]]])
def test_a_text_of_plain_values_is_pythons(value: Any) -> None:
    assert text(value) == str(value)


def test_percent_does_not_format() -> None:
    assert remainder(7, 3) == 1
    with pytest.raises(TypeError, match="f-string"):
        remainder("%s", object())


def test_sum_adds_from_left_to_right_in_every_python() -> None:
    assert program("sum([-0.5, 1e-17, 0.5]) == 0.0 and sum([0.1] * 10) < 1.0").holds(None, None)
    assert add_up([[1], [2]], [0]) == [0, 1, 2] and add_up(iter((True, 2))) == 3
    for texts in ((["a"], ""), (["a"], 0)):
        with pytest.raises(TypeError):
            add_up(*texts)


def test_replaced_builtins_still_work_as_types() -> None:
    assert is_instance("a", text) and is_instance(range(3), bounded_range) and is_instance(1, (text, int))
    assert not is_instance(1, text)
    with pytest.raises(ValueError, match="at most"):
        bounded_range(10**7)


MEMBERS = st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", None])), max_size=6)
OPERATORS = {
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
    "-": lambda a, b: a - b,
    "^": lambda a, b: a ^ b,
    "|=": operator.ior,
    "&=": operator.iand,
    "-=": operator.isub,
    "^=": operator.ixor,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "union": lambda a, b: a.union(b),
    "difference": lambda a, b: a.difference(b),
    "intersection": lambda a, b: a.intersection(b),
    "symmetric_difference": lambda a, b: a.symmetric_difference(b),
    "issubset": lambda a, b: a.issubset(b),
    "issuperset": lambda a, b: a.issuperset(b),
    "isdisjoint": lambda a, b: a.isdisjoint(b),
}
LIKE: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (Set, set),
    (FrozenSet, frozenset),
    (lambda values: Keys(dict.fromkeys(values)), lambda values: dict.fromkeys(values).keys()),
    (lambda values: Items(dict.fromkeys(values, 1)), lambda values: dict.fromkeys(values, 1).items()),
]


@given(st.sampled_from(LIKE), st.sampled_from(LIKE), MEMBERS, MEMBERS, st.sampled_from(sorted(OPERATORS)))
def test_sets_do_what_pythons_do(left: Any, right: Any, one: list[Any], two: list[Any], name: str) -> None:
    def result(make: int) -> Any:
        try:
            found = OPERATORS[name](left[make](one), right[make](two))
        except AttributeError:
            return "no such method"
        return found if type(found) is bool else set(found)

    if result(1) == "no such method":
        return  # windows on a dict have a few methods more than Python's
    assert result(0) == result(1)


@given(st.permutations(["a", 1, None, "b", 2.5, (1, "c")]))
def test_sets_keep_the_order_of_their_values(values: list[Any]) -> None:
    made = Set(values)
    assert list(made) == values == list(made | Set(values[:2])) == list(FrozenSet(values))
    made.discard(values[2])
    made.add(values[2])
    assert made.pop() == values[2]


def test_a_message_has_no_address() -> None:
    said = without_addresses("<function act at 0x7f00ab12> is not in list, '<generator object g at 0x7f")
    assert said == "<function act> is not in list, '<generator object g"
