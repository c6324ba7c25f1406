"""Every figure in a pane comes from a row or from the fold: all panes of three real sessions, at several cursors.

The rows are read here by SQL and added up again, so that a figure which a view makes up, or takes from a later row,
is found.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlgpt.console.feed import Feed
from rlgpt.console.view import code, episodes, funnel, logs, options, plan, status, system, verdicts, why
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.text import Entry, Line, plain
from rlgpt.store.bundle import viewed
from rlgpt.store.intervals import wilson

ROOT = Path(__file__).parents[2]
SESSIONS = (
    ROOT / "tests" / "sessions" / "0004-finished.rlgpt",
    ROOT / "evidence" / "llm-diamond" / "collect_diamond-1.rlgpt",
    ROOT / "evidence" / "arms-score" / "crafter_score-rlgpt-0.rlgpt",
)
SHARE = re.compile(r"(?<![\d./$])(\d+)/(\d+)(?![\d/kM])")
COUNTED = re.compile(r"(\d\.\d\d) \[(\d\.\d\d), (\d\.\d\d)\] n=(\d+)")


class Rows:
    """A session's tables up to a row, as SQLite has them."""

    def __init__(self, base: sqlite3.Connection, upto: int) -> None:
        self._base, self.upto = base, upto

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        return self._base.execute(sql.replace("{upto}", f"seq <= {self.upto}")).fetchall()


@pytest.fixture(scope="module", params=SESSIONS, ids=lambda path: path.stem)
def session(request: pytest.FixtureRequest) -> Iterator[tuple[Feed, sqlite3.Connection]]:
    with viewed(request.param) as folder:
        feed = Feed(folder.path)
        feed.open()
        while feed.read_mappings():
            pass
        copy = feed._reader._base  # the copy in the schema of today, if the session has an older one
        yield feed, copy
        feed.close()


@pytest.fixture(params=[1.0, 0.75, 0.4, 0.1])
def both(request: pytest.FixtureRequest, session: tuple[Feed, sqlite3.Connection]) -> tuple[Moment, Rows]:
    feed, base = session
    upto = int(feed.end_seq * request.param)
    return feed.moment(upto), Rows(base, upto)


def text_of(found: list[Entry] | list[Line]) -> str:
    lines = [line for part in found for line in (part.lines if isinstance(part, Entry) else (part,))]
    return "\n".join(plain(line) for line in lines)


def panes(m: Moment) -> dict[str, str]:
    every = frozenset(
        [f"item:{p.revision}:{i.name}" for p in m.history.plans.values() for i in p.items]
        + [f"attempt:{a.sub_action}:{a.version}" for a in m.history.attempts]
    )
    shown = [(a, code.chosen(m.history, code.Choice(a.sub_action, a.version))[1]) for a in m.history.attempts]
    return {
        "plan": text_of(plan.entries(m, 100, every)),
        "code": "\n".join(text_of(code.facts(m.history, a, before, 100)) for a, before in shown),
        "verdicts": text_of(verdicts.entries(m, 100, frozenset())),
        "log": text_of(logs.log_entries(m, 160)),
        "calls": text_of(logs.call_entries(m, 100)),
        "system": text_of(system.entries(m, 100)),
        "status": plain(status.title(m, 160)),
        "funnel": text_of(funnel.entries(funnel.funnel(m), 60)) + text_of(funnel.entries(funnel.funnel(m), 120)),
        "episodes": text_of(episodes.entries(episodes.episodes(m), "", 100)),
        "options": text_of(options.entries(options.tables(m), 100)),
        "why": text_of(why.entries(why.findings(m), {}, 100)),
    }


def test_every_share_in_a_pane_is_one_that_rows_tell(both: tuple[Moment, Rows]) -> None:
    """`18/20` is so many episodes of some trial or evaluation, calls of an option, or verdicts."""
    m, rows = both
    known = set(rows("SELECT successes, episodes FROM trial WHERE {upto}"))
    known |= set(rows("SELECT successes, prefixes FROM trial WHERE {upto}"))
    evaluations = rows("SELECT revision, run, split, variant, episodes, successes, funnel, dead_loops, option_usage, "
                       "option_done FROM evaluation WHERE {upto}")  # fmt: skip
    pooled: dict[tuple[Any, ...], Counter[str]] = {}
    for revision, run, split, variant, count, won, reached, loops, usage, done in evaluations:
        sums = pooled.setdefault((revision, run, split, variant), Counter())
        sums.update({"": won, "of": count, "loops": loops})
        sums.update({f"reached {k}": v for k, v in json.loads(reached).items()})
        sums.update({f"uses {k}": v for k, v in json.loads(usage).items()})
        sums.update({f"done {k}": v for k, v in json.loads(done or "{}").items()})
        known |= {(won, count), (loops, count)} | {(v, count) for v in json.loads(reached).values()}
    for sums in pooled.values():
        known |= {(sums[k], sums["of"]) for k in sums if not k.startswith(("uses", "done", "of"))}
        known |= {(sums["loops"], sums["of"]), (sums[""], sums["of"])}
        known |= {(sums[f"done {k[5:]}"], sums[k]) for k in sums if k.startswith("uses ")}
    counted = dict(rows("SELECT owner, count(*) FROM episode WHERE split != 'train' AND {upto} GROUP BY owner"))
    ended = rows("SELECT owner, count(*) FROM episode WHERE split != 'train' AND {upto} GROUP BY owner, end, cause")
    known |= {(count, counted[owner]) for owner, count in ended}
    # a moment may lie between an evaluation and its episodes, which are written after it
    for count, failures in rows("SELECT episodes, failures FROM evaluation WHERE failures IS NOT NULL AND {upto}"):
        known |= {(some, count) for some in (json.loads(failures).get("ends") or {}).values()}
    judged = rows("SELECT success = measured FROM verdict WHERE author = 'critic' AND measured IS NOT NULL AND {upto}")
    for name, shown in panes(m).items():
        if name in ("log", "calls", "status", "system"):
            continue  # words of others, and counters beside their limits
        mine = known | ({(sum(bool(x) for (x,) in judged), len(judged))} if name == "verdicts" else set())
        told = {(int(a), int(b)) for a, b in SHARE.findall(shown)}
        if name == "verdicts":  # a later verdict on the same trial stands in the place of the one before
            told = {pair for pair in told if pair[1] > len(judged) or pair in mine}
        assert told <= mine, f"{name}: {sorted(told - mine)}"


def test_every_rate_with_its_interval_is_that_of_some_episodes(both: tuple[Moment, Rows]) -> None:
    m, rows = both
    sums: dict[tuple[Any, ...], list[int]] = {}
    for revision, run, split, variant, count in rows(
        "SELECT revision, run, split, variant, episodes FROM evaluation WHERE {upto}"
    ):
        sums.setdefault((revision, run, split, variant), [0])[0] += count
    sizes = {total for (total,) in sums.values()} | {n for (n,) in rows("SELECT episodes FROM evaluation WHERE {upto}")}
    for name in ("verdicts", "funnel", "why"):
        for value, low, high, n in COUNTED.findall(panes(m)[name]):
            assert int(n) in sizes, name
            hits = round(float(value) * int(n))
            assert any(
                (f"{k / int(n):.2f}", *(f"{edge:.2f}" for edge in wilson(k, int(n)))) == (value, low, high)
                for k in range(max(hits - 1, 0), min(hits + 1, int(n)) + 1)
            ), (name, value, n)


def test_the_funnel_is_the_sum_of_its_evaluations_and_its_losses_those_of_the_episodes(
    both: tuple[Moment, Rows],
) -> None:
    m, rows = both
    found = funnel.funnel(m)
    if found.dev is None:
        assert rows("SELECT count(*) FROM evaluation WHERE split = 'dev' AND {upto}") == [(0,)]
        return
    numbers = ", ".join(map(str, found.dev.numbers))
    summed: Counter[str] = Counter()
    count = 0
    for reached, episodes_, won in rows(
        f"SELECT funnel, episodes, successes FROM evaluation WHERE number IN ({numbers}) AND {{upto}}"
    ):
        summed.update(json.loads(reached) | {funnel.TASK: won})
        count += episodes_
    for step in found.steps:
        assert step.dev == (summed[step.name], count)
    told = rows(f"SELECT success, reached FROM episode WHERE split = 'dev' AND owner IN ({numbers}) AND {{upto}}")
    assert len(told) == count
    if found.recorded:
        names = {step.name for step in found.steps if step.name != funnel.TASK}
        done = [m.history.scored and names <= set(json.loads(reached)) for _, reached in told]  # lost nowhere
        lost = sum(not success and not every for (success, _), every in zip(told, done, strict=True))
        assert sum(step.lost for step in found.steps) == lost == sum(n for s in found.steps for _, n in s.causes)


def test_the_episodes_are_the_rows_and_those_of_every_trial(both: tuple[Moment, Rows]) -> None:
    m, rows = both
    found = episodes.episodes(m)
    evaluated = Counter(e.place.source for e in found if e.place.source in ("dev", "test"))
    assert evaluated == dict(
        rows("SELECT split, count(*) FROM episode WHERE split IN ('dev', 'test') AND {upto} GROUP BY split")
    )
    tried = [json.loads(body) for (body,) in rows("SELECT trials FROM trial WHERE {upto} ORDER BY seq")]
    mine = sorted((e for e in found if e.place.source == "trial"), key=lambda e: (e.place.owner, e.place.episode))
    assert sorted((number, t["seed"], t["env_steps"]) for number, each in enumerate(tried, 1) for t in each) == [
        (*e.place[1:], e.env_steps) for e in mine
    ]
    films = {(s, o, e): seq for s, o, e, seq in rows(
        "SELECT source, owner, episode, max(seq) AS seq FROM frame GROUP BY source, owner, episode HAVING {upto}"
    )}  # fmt: skip
    assert all(e.film == films.get(tuple(e.place)) for e in found)


def test_the_option_table_is_the_sum_of_its_rows(both: tuple[Moment, Rows]) -> None:
    m, rows = both
    for table in options.tables(m):
        summed: Counter[str] = Counter()
        if table.title.startswith("PPO"):
            run = max(m.history.runs)
            hidden = " ".join(f"AND NOT (seq > {a} AND seq < {b})" for a, b in m.history.runs[run].hidden)
            told = rows(f"SELECT option_usage FROM metric WHERE run = {run} AND {{upto}} {hidden}")
        else:
            parts = funnel.funnel(m).dev
            assert parts is not None
            numbers = ", ".join(map(str, parts.numbers))
            told = rows(f"SELECT option_usage FROM evaluation WHERE number IN ({numbers}) AND {{upto}}")
        for (usage,) in told:
            summed.update(json.loads(usage))
        assert {use.name: use.uses for use in table.uses} == dict(summed)


def test_what_the_header_says_was_spent_is_the_sum_of_the_rows(both: tuple[Moment, Rows]) -> None:
    m, rows = both
    (tokens,) = rows("SELECT coalesce(sum(tokens_in + tokens_out), 0) FROM llm_call WHERE state != 'sent' AND {upto}")[
        0
    ]
    (sent,) = rows("SELECT count(*) FROM llm_call WHERE state = 'sent' AND {upto}")[0]
    assert (m.history.spent.tokens, m.history.spent.calls) == (tokens, sent)
    assert f"{sent:,} call" in text_of(logs.call_entries(m, 100))
