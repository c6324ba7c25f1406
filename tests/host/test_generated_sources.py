"""Whatever a source is and does, it is admitted or refused in words; a host lives on, or blames the right source.

An innocent call runs beside each source from its admission to its end, and must not lose or double a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rlgpt.training.host.api import Action, Admission, Ask, Host, Kind, PlanItem, Programs, source_hash
from rlgpt.training.host.client.open_host import open_host
from tests.host import hostile
from tests.host.driving import COUNT, WHOLE, counted
from tests.host.world import WORLD, packed

VIEWS = [[WHOLE, *(packed(at % 10, at % 3) for at in range(1, 8))]] * 2
INNOCENT, GUILTY = 0, 1
STEPS = 6
KINDS = st.sampled_from(("action", "done_when", "reward"))


@pytest.fixture(scope="module")
def court() -> Iterator[Host]:
    host = open_host(WORLD, lanes=2, mode="locked", seed=1)
    host.admit("action", COUNT, [[WHOLE]])
    yield host
    host.close()


def told_truly(admission: Admission, source: str) -> None:
    """A refusal has a rule, a line of the source, and words that fit into a row."""
    if admission.admitted:
        assert (admission.rule, admission.line, admission.message) == ("", 0, "") and admission.name
        return
    assert re.fullmatch("[a-z][a-z _-]+", admission.rule), admission
    assert 0 <= admission.line <= source.count("\n") + source.count("\r") + source.count("\f") + 2, admission
    assert 3 < len(admission.message) < 2_000, admission
    admission.message.encode()


def blamed(host: Host, admission: Admission) -> int:
    """Deaths since the last look, each of which is the source's."""
    deaths = host.take_deaths()
    assert {death.source_hash for death in deaths} <= {admission.source_hash}, deaths
    return len(deaths)


def programs_of(kind: Kind, source: str, admission: Admission) -> Programs:
    count = Action(source_hash(COUNT))
    arguments = tuple((name, values[-1]) for name, values in admission.arguments.items())
    if kind == "action":
        own = Action(admission.source_hash, arguments)
        return Programs(actions=(count, own))
    if kind == "done_when":
        return Programs(actions=(count, count), plan=(PlanItem(source, count),), predicates=(source,))
    return Programs(actions=(count, count), rewards=(admission.source_hash,))


def tried(host: Host, kind: Kind, source: str) -> None:
    """Admission beside a running call, then calls, questions and another load."""
    host.load(Programs(actions=(Action(source_hash(COUNT)),)))
    first = host.tick([Ask(INNOCENT, WHOLE, open=0, episode_start=True)])
    assert first[0].command == counted(1)
    admission = host.admit(kind, source, VIEWS)
    told_truly(admission, source)
    deaths = blamed(host, admission)
    assert deaths == (admission.rule == "killed"), admission
    assert host.tick([Ask(INNOCENT, packed(1), resume=True)])[0].command == counted(2)
    if not admission.admitted:
        return
    host.load(programs_of(kind, source, admission))
    asked: dict[str, Any] = {"predicates": True, "available": True, "reward": True}
    asks = [Ask(INNOCENT, WHOLE, open=0, episode_start=True), Ask(GUILTY, WHOLE, open=1, episode_start=True, **asked)]
    for step in range(1, STEPS + 1):
        innocent, guilty = host.tick(asks)
        assert innocent.command == counted(step) and not innocent.message, innocent
        assert guilty.command is not None or guilty.end is not None, guilty
        assert -1.0 <= guilty.reward <= 1.0 and len(guilty.message) < 2_500
        assert guilty.message or guilty.end in (None, "return"), guilty
        again = guilty.end is not None
        views = packed(step % 10, step), packed(step % 10, step, whole=again)
        asks = [
            Ask(INNOCENT, views[0], resume=True),
            Ask(GUILTY, views[1], open=1 if again else None, resume=not again, step=step, **asked),
        ]
    blamed(host, admission)


FEW = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.target],
)
MANY = settings(FEW, max_examples=4_000, derandomize=False, phases=[Phase.generate, Phase.target, Phase.shrink])


def any_source(data: st.DataObject) -> tuple[Kind, str]:
    kind = data.draw(KINDS)
    return kind, data.draw(hostile.sources(kind))  # type: ignore[return-value]


@FEW
@given(data=st.data())
def test_a_few_hundred_sources_are_admitted_or_refused_in_words(court: Host, data: st.DataObject) -> None:
    tried(court, *any_source(data))


@pytest.mark.slow
@MANY
@given(data=st.data())
def test_thousands_of_sources_are_admitted_or_refused_in_words(court: Host, data: st.DataObject) -> None:
    tried(court, *any_source(data))


def test_the_search_makes_sources_that_get_far_enough_to_be_called(court: Host) -> None:
    """Else it would show nothing about calls."""
    found: set[str] = set()

    @settings(FEW, max_examples=150)
    @given(data=st.data())
    def look(data: st.DataObject) -> None:
        kind, source = any_source(data)
        admission = court.admit(kind, source, VIEWS)
        found.add(f"{kind} admitted" if admission.admitted else admission.rule)

    look()
    assert {"action admitted", "done_when admitted", "reward admitted", "syntax", "dry run", "name"} <= found
