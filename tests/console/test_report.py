"""The report: one page that says what the panes say, and interprets nothing of what a model wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from driving import console, screen_text, until
from hostile import CORPUS
from moments import moment
from sample_sessions import whole
from test_views_hostile import poisoned

from rlgpt.console.app import ConsoleApp
from rlgpt.console.commands import report
from rlgpt.console.commands.failure import Failure
from rlgpt.console.report.document import page
from rlgpt.console.screens.dialogs import Ask
from rlgpt.console.view.funnel import funnel
from rlgpt.console.view.numbers import measured

INJECTED = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</style><style>*{display:none}",
    "</pre></td></table><h1>owned</h1>",
    '" onmouseover="alert(1)',
    "{{ h.session }} {% for x in (1).__class__.__mro__ %}",
    "javascript:alert(1)",
)
VOID = ("meta", "path", "circle", "img", "br")


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles |= {value or "" for name, value in attrs if name == "style"}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("text", (*CORPUS, *INJECTED), ids=range(len(CORPUS) + len(INJECTED)))
def test_nothing_that_anybody_wrote_is_interpreted(text: str) -> None:
    told = page(moment(poisoned(text)))
    told.encode("utf-8")
    found = Tags(told)
    assert found.open == []
    assert not found.tags & {"script", "img", "link", "iframe", "a", "object", "form"}
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "href")}
    assert all(re.fullmatch(r"(width:[\d.]+%|[a-z-]+: ?[#\w -]+;? ?)+", style) for style in found.styles)
    assert told.count("<style>") == told.count("</style>") == 1 and told.count("<h1>") == 1
    assert not {c for c in told if ord(c) < 32 and c not in "\n\t"} and "\u202e" not in told
    assert "default-src 'none'" in told and len(told) < 3_000_000


def test_the_page_says_what_the_panes_say() -> None:
    m = moment(whole())
    h = m.history
    told = unescape(page(m))
    assert "<p class=goal>Make a stone pickaxe.</p>" in told
    assert "RL-GPT loop, scripted planner" in told and "LLM" not in told
    best = h.incumbent
    assert best is not None and f"<b>{measured(h.pooled(best, 'test', 'full'))}</b>" in told
    worst = funnel(m).worst
    assert worst is not None and f"Most episodes are lost at <b>{worst.name}</b> ({worst.lost}" in told
    for plan in h.plans.values():
        assert f"Plan {plan.revision} ·" in told
    assert "mode: <del>code</del> → <ins>rl</ins>" in told
    for attempt in h.attempts:
        assert f"{attempt.sub_action} version {attempt.version}" in told
    for iteration in h.iterations:
        assert iteration.verdict is not None and iteration.verdict.cause in told
        for e in iteration.evaluations:
            assert measured(h.pooled(iteration, e.split, e.variant)) in told
    assert told.count("<svg") >= 10


def test_a_page_of_a_moment_in_the_past_knows_nothing_later() -> None:
    s = whole()
    seq = next(a.seq for a in moment(s).history.attempts if a.version == 2)
    told = page(moment(s, seq))
    assert "iteration 1" not in told.lower() and "Plan 4" not in told
    assert page(moment(s, 1)), "also before the first plan"


def test_a_failing_episode_with_frames_is_a_strip() -> None:
    m = moment(whole())
    told = page(m)
    strips = told[told.index("Failing episodes") : told.index("<h2>Code</h2>")]
    assert "<figure>" in strips and "at collect_stone" in unescape(strips)


def test_the_command_writes_the_page_once_and_says_where(
    home: Path, store: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store("261121-010000-aa")
    target = tmp_path / "deep" / "page.html"
    report.report("261121-010000-aa", target)
    assert capsys.readouterr().out.strip() == str(target)
    assert target.read_text().startswith("<!doctype html>") and target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Failure, match="is already there"):
        report.report("261121-010000-aa", target)
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="cannot be written"):
        report.report("261121-010000-aa", tmp_path / "file" / "page.html")


def test_every_field_of_the_template_is_given() -> None:
    """A name that is missing is an error (StrictUndefined), in every branch that a whole session takes."""
    for more in ({}, {"llm": "openai"}, {"ended": False}):
        arguments: dict[str, Any] = more
        assert "</html>" in page(moment(whole(**arguments)))


async def test_the_console_writes_the_page_of_the_moment_at_the_cursor_and_overwrites_nothing(
    home: Path, store: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store("261121-010000-aa")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    monkeypatch.setattr(ConsoleApp, "tell", lambda app, sentence, *more, **other: said.append(sentence))
    written = tmp_path / "261121-010000-aa-report.html"
    async with console(home, "261121-010000-aa") as (app, pilot):
        await pilot.press("H")
        await until(pilot, lambda: "row 1 of" in screen_text(app))
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("enter")
        await until(pilot, lambda: said[-1:] == [f"written to {written}"])
        text = written.read_text()
        assert "Make a stone pickaxe." in unescape(text) and "place_table" not in text
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press("enter")
        await until(pilot, lambda: said[-1:] == [f"{written} is already there."])
    assert written.read_text() == text


def test_dead_loops_are_those_of_the_episodes_beside_them() -> None:
    """An edit made a new plan after policies of the old one had been evaluated."""
    s = whole(ended=False)
    iteration = s.history.iterations[-1]
    played = [(4, 3, "full"), (4, 3, "greedy"), (5, None, "full")]
    for number, (revision, run, variant) in enumerate(played, 101):
        s.add(
            "evaluation", 1.0, sub_task=iteration.sub_task, iteration=iteration.number, revision=revision,
            number=number, split="dev", variant=variant, first=0, episodes=20, successes=2, ci_low=0.0, ci_high=1.0,
            return_mean=0.0, length_mean=9.0, dead_loops=15, env_steps=180, run=run, policy="ppo" if run else "plan",
        )  # fmt: skip
    table = page(moment(s)).partition("<h2>Evaluations</h2>")[2].partition("</table>")[0]
    loops = re.findall(r"<td>(\d+)</td></tr>", table)
    assert loops.count("15") == 1 and "30" not in loops
