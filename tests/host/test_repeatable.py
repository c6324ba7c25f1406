"""Two executions of any admitted source from the same view and seed are equal, whatever ran before, in whichever host,
lane, order and process. Sources are generated to break this: they try to keep something between calls, and to let
hashes, addresses, caches, the stack or the random numbers of others decide what they yield."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rlgpt.training.host.api import FOLLOW_PLAN, Action, Answer, Ask, Host, PlanItem, Programs
from rlgpt.training.host.client.open_host import open_host
from tests.host.world import WORLD, packed

LANES = 8
Hosts = tuple[Host, Host, Host]
Told = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Two locked processes and the trainer's own, one seed, used by all examples: much has run in them before."""
    made = [open_host(WORLD, lanes=LANES, mode=mode, seed=1) for mode in ("locked", "locked", "trusted")]
    yield made[0], made[1], made[2]
    for host in made:
        host.close()


NUMBERS = st.integers(-2, 5).map(str)
ATOMS = st.one_of(NUMBERS, st.sampled_from(["'a'", "'b'", "None", "True", "2.5"]))
LITERALS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.lists(inner, max_size=3).map(lambda parts: f"({''.join(part + ', ' for part in parts)})"),
        st.lists(ATOMS, min_size=1, max_size=3).map(lambda parts: f"{{{', '.join(parts)}}}"),
        st.lists(st.tuples(ATOMS, inner), max_size=2).map(
            lambda parts: f"{{{', '.join(f'{key}: {value}' for key, value in parts)}}}"
        ),
    ),
    max_leaves=5,
)
FROZEN = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"({''.join(part + ', ' for part in parts)})")
)
DEFAULTS = st.one_of(FROZEN, FROZEN, FROZEN, FROZEN, FROZEN, FROZEN, LITERALS)
CONSTANTS = ("distance", "END", "len", "sorted", "rng", "note")
"""Names of the source's own, of the library, of builtins and of what else a namespace holds."""
PLACES = st.sampled_from(
    (
        "A", "B", "A[0]", "B[-1]", "A[0][0]", "distance", "END", "len", "rng", "memo", "memo[0]", "kept", "kept[0]",
        "note", "act", "view", "view.seen", "inner", "inner()", "local", "(lambda x=A: x)()", "[x for x in A][0]",
    )
)  # fmt: skip
OBJECTS = st.sampled_from(
    (
        "act", "note", "inner", "distance", "view", "view.seen", "None", "int", "len", "(lambda: 0)", "(x for x in ())",
        "range(0)", "range(3)", "ValueError", "ValueError(1)", "(act, 1)", "view.seen.count", "'a'", "1", "rng.random",
    )
)  # fmt: skip
MANY = st.lists(OBJECTS, min_size=2, max_size=6, unique=True).map(", ".join)
UNORDERED = st.one_of(
    st.builds("{{{}}}".format, MANY),
    st.builds("set([{}])".format, MANY),
    st.builds("frozenset(({}))".format, MANY),
    st.builds("{{x for x in ({})}}".format, MANY),
    st.builds("{{x: 1 for x in ({})}}.keys() - {{1}}".format, MANY),
    st.builds("{{x: 1 for x in ({})}}.items() | set()".format, MANY),
    st.builds("dict.keys({{x: 1 for x in ({})}}) | {{2}}".format, MANY),
    st.builds("{{{}}} {} {{{}}}".format, MANY, st.sampled_from("|&-^"), MANY),
    st.builds("set([{}]).union([{}])".format, MANY, MANY),
    st.builds("set([{}]).symmetric_difference([{}])".format, MANY, MANY),
)
CHANGES = st.sampled_from(
    (
        "{place}.append({value})", "{place}.add({value})", "{place}.update({{{value}: 1}})", "{place}[0] = {value}",
        "{place}[{value}] = 1", "{place}.clear()", "{place}.pop()", "{place}.extend([{value}])", "del {place}[0]",
        "list.append({place}, {value})", "dict.update({place}, {{{value}: 1}})", "set.add({place}, {value})",
        "set.update({place}, [{value}])", "dict.setdefault({place}, {value}, 1)", "rng.shuffle({place})",
        "{place}.sort()", "{place}.insert(0, {value})", "{place}.discard({value})", "next({place})",
    )
)  # fmt: skip
SEEN = st.one_of(
    st.builds("n += len({})".format, PLACES),
    st.builds("n += len(f'{{{}}}')".format, PLACES),
    st.builds("n += sum([x for x in {} if isinstance(x, int)])".format, PLACES),
    st.builds("n += list({})[0]".format, PLACES),
    st.builds("n += {}[0]".format, PLACES),
    st.builds("n += next({})".format, PLACES),
    st.builds("for i, x in enumerate({}):\n    n += (i + 1) * ([{}].index(x) + 1)".format, UNORDERED, MANY),
    st.builds("n += [{0}].index(list({1})[0])".format, MANY, UNORDERED),
    st.builds("n += [{0}].index(({1}).pop())".format, MANY, UNORDERED),
    st.builds("for x in {}:\n    n = n * 2 + (x in [{}])".format, UNORDERED, MANY),
    st.builds("n += 1 if {} == {} else 2".format, PLACES, OBJECTS),
    st.builds("n += 1 if {} is {} else 2".format, PLACES, OBJECTS),
    st.builds("n += 1 if {} is None else 2".format, PLACES),
    st.builds("n += 1 if {} in ({},) else 2".format, OBJECTS, PLACES),
    st.builds("n += sorted([{}], key=lambda x: 0).index({})".format, MANY, OBJECTS),
    st.just("n += rng.randint(0, 8)"),
    st.just("n += deep(0)"),
    st.just("n += int(distance(n, 1))"),
    st.just("n += [1, 2].index(act)"),
    st.builds("raise ValueError({})".format, OBJECTS),
)
TRIED = st.builds(
    "try:\n{}\nexcept Exception:\n    n += 1".format, SEEN.map(lambda text: "    " + text.replace("\n", "\n    "))
)
CHANGED = st.builds(
    lambda change, place, value: f"try:\n    {change.format(place=place, value=value)}\nexcept Exception:\n    n += 2",
    CHANGES, PLACES, OBJECTS,
)  # fmt: skip
LATE = SEEN.map(lambda text: "if view.coins == 7:\n    " + text.replace("\n", "\n    "))
"""Fails where the dry run has not been."""
STATEMENTS = st.one_of(CHANGED, TRIED, TRIED, LATE)


@st.composite
def sources(draw: st.DrawFn) -> str:
    """An action with constants, defaults, a helper and an inner function."""
    constants = draw(st.lists(st.tuples(st.sampled_from(CONSTANTS), LITERALS), max_size=2))
    constants += [("A", draw(LITERALS)), ("B", draw(LITERALS))]
    lines = [f"{name} = {value}" for name, value in constants]
    memo, kept = draw(DEFAULTS), draw(DEFAULTS)
    lines += ["def deep(n):", "    try:", "        return deep(n + 1)", "    except Exception:", "        return n"]
    lines += [f"def note(view, memo={memo}, *, kept={kept}):", "    n = 0"]
    lines += [*_indented(draw(st.lists(STATEMENTS, max_size=2)), 1), "    return n"]
    if draw(st.booleans()):
        lines += ["def available(view):", "    n = 0", *_indented(draw(st.lists(TRIED, max_size=1)), 1)]
        lines += ["    return n % 2 == 0"]
    kept_in = draw(PLACES)
    pair = _tried(f"{draw(CHANGES).format(place=kept_in, value=draw(OBJECTS))}"), _tried(f"n += len({kept_in})")
    shape = "n = n * 2 + (x in [act, distance, 'a', 1, view])"
    order = f"try:\n    for x in {draw(UNORDERED)}:\n        {shape}\nexcept Exception:\n    n += 1"
    lines += ["def act(view):", "    n = 0", "    local = []", "    memo = kept = local"]
    lines += [f"    def inner(memo={draw(st.sampled_from(['A', 'local', 'view', '0']))}):", "        return memo"]
    lines += ["    while True:", *_indented(draw(st.lists(STATEMENTS, max_size=3)), 2), *_indented([*pair, order], 2)]
    lines += ["        try:", "            n += note(view)", "        except Exception:", "            n += 1"]
    lines += ["        view = yield ('stay', 'left', 'right')[int(n) % 3]"]
    return "\n".join(lines)


def _tried(statement: str) -> str:
    return f"try:\n    {statement}\nexcept Exception:\n    n += 1"


def _indented(statements: list[str], levels: int) -> list[str]:
    return ["    " * levels + line for statement in statements for line in statement.split("\n")]


VIEWS = [packed(0, 0, whole=True), packed(1, 2), packed(2, 0), packed(2, 7), packed(3, 1)]
OTHERS = [packed(9, 3, whole=True), packed(8, 2), packed(7, 2), packed(8, 1), packed(9, 0)]


def _told(answer: Answer) -> tuple[object, ...]:
    return answer.command, answer.end, answer.message


def alone(host: Host, lane: int, index: int = 0, asks: bool = False) -> Told:
    """One call along the views, perhaps with other questions in each message."""
    told: Told = []
    for step, view in enumerate(VIEWS):
        opens = index if step == 0 else None
        ask = Ask(lane, view, opens, step > 0, step == 0, asks, asks and step > 0, False, step + 4)
        answer = host.tick([ask])[0]
        told.append((answer.command, answer.end, answer.message.partition("; ")[0]))
        if answer.end:
            break
    return told


def beside(host: Host, lane: int, other: int) -> Told:
    """The same while another lane runs the same source on other views, a step ahead."""
    host.tick([Ask(other, OTHERS[0], open=0, episode_start=True, step=9)])
    told: Told = []
    for step, view in enumerate(VIEWS):
        ask = Ask(lane, view, 0 if step == 0 else None, step > 0, step == 0, step=step + 4)
        _, second = host.tick([Ask(other, OTHERS[(step + 1) % 5], resume=True), ask])
        told.append(_told(second))
        if second.end:
            break
    return told


def check(hosts: Hosts, source: str) -> None:
    said = [host.admit("action", source, [VIEWS[:3], OTHERS[:3]]) for host in hosts]
    assert {(a.admitted, a.rule, a.line, a.message) for a in said} == {
        (said[0].admitted, said[0].rule, said[0].line, said[0].message)
    }
    # What the dry run would find can no longer be written: the rules and the run time see to it.
    assert said[0].rule != "not repeatable", said[0]
    assert "0x" not in said[0].message
    assume(said[0].admitted)
    name = said[0].source_hash
    for host in hosts:
        assert host.admit("done_when", "view.at > 100").admitted
        action = Action(name)
        host.load(Programs(actions=(action,), plan=(PlanItem("view.at > 100", action),), predicates=("view.at > 100",)))
    one, two, trainer = hosts
    first = alone(one, 0)
    assert alone(one, 0) == first, "a second time"
    assert beside(one, 5, 2) == first, "in another lane, beside another call"
    assert alone(one, 2, asks=True) == first, "with other questions"
    assert beside(two, 1, 6) == first, "in another process, after another call"
    assert alone(two, 6, index=FOLLOW_PLAN) == first or first[-1][1] == "return", "as the plan's"
    assert alone(trainer, 3) == beside(trainer, 0, 1) == first, "in the trainer"
    may = {host.tick([Ask(lane, VIEWS[0], None, False, True, False, True, False, 3)])[0].available
           for host in hosts for lane in (0, 7)}  # fmt: skip
    assert len(may) == 1, "whether it may start"


BROAD = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, print_blob=True)


@settings(BROAD, max_examples=60, derandomize=True)
@given(source=sources())
def test_executions_are_equal(hosts: Hosts, source: str) -> None:
    check(hosts, source)


@pytest.mark.slow
@pytest.mark.timeout(0)
@settings(BROAD, max_examples=5_000)
@given(source=sources())
def test_executions_are_equal_at_length(hosts: Hosts, source: str) -> None:
    check(hosts, source)
