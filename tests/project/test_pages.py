"""The links of README and docs/ lead somewhere, and README tells the figures of the sections that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FIGURE = re.compile(r"(?<![\d.])[01]\.\d\d+(?: \[[^]]+\])?")
"""A share with its interval, or without one, as results are told."""
COMPARED = re.compile(r"(evidence/[\w-]+)")
ASIDE = {
    "the-same-in-the-order-of-todays-plan": ("0.113", "0.10"),
    "coverage": ("0.97", "1.00", "0.00"),
}
"""Figures of claims that no arm of a table has: a difference, what was claimed, single seeds."""
SECTION = re.compile(r"\((docs/[a-z-]+\.md)#([a-z0-9_-]+)\)")


def _headings(text: str) -> list[tuple[str, int, str]]:
    """(anchor as GitHub makes it, level, what stands below the heading down to the next of its level) of a page."""
    without_code = re.sub(r"```.*?```", lambda block: " " * len(block[0]), text, flags=re.DOTALL)
    found = list(re.finditer(r"^(#+) (.+)$", without_code, re.MULTILINE))
    headings = []
    for index, match in enumerate(found):
        level = len(match[1])
        end = next((later.start() for later in found[index + 1 :] if len(later[1]) <= level), len(text))
        anchor = re.sub(r"[^\w -]", "", match[2].lower()).replace(" ", "-")
        headings.append((anchor, level, text[match.start() : end]))
    return headings


def _links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if not target.startswith(("http://", "https://", "mailto:")):
                yield page, target


@pytest.mark.parametrize(("page", "target"), [pytest.param(p, t, id=f"{p.name}-{t}") for p, t in sorted(set(_links()))])
def test_a_link_leads_somewhere(page: Path, target: str) -> None:
    name, _, anchor = target.partition("#")
    linked = (page.parent / name).resolve() if name else page
    assert linked.exists()
    if anchor:
        assert anchor in {heading for heading, _, _ in _headings(linked.read_text())}


def _claims() -> list[tuple[str, str, str]]:
    """(claim, page, anchor) of each row of README's table of claims whose figures stand in a section of docs/."""
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    return [(row, *match.groups()) for row in rows if (match := SECTION.search(row)) and FIGURE.search(row)]


@pytest.mark.parametrize(("claim", "page", "anchor"), [pytest.param(*claim, id=claim[2]) for claim in _claims()])
def test_each_figure_of_a_claim_stands_in_the_section_that_it_names(claim: str, page: str, anchor: str) -> None:
    """With its interval, where it has one. That of an experiment stands in its table, where there is one."""
    [section] = [text for heading, _, text in _headings((ROOT / page).read_text()) if heading == anchor]
    told = " ".join(section.replace("+", "").split())
    tables = [table for name in COMPARED.findall(claim) for table in _tables(section, name)]
    for figure in FIGURE.findall(claim):
        source = " ".join(tables) if tables and figure.partition(" ")[0] not in ASIDE.get(anchor, ()) else told
        found = re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", source)
        assert found, f"{figure} of README does not stand in {page}#{anchor}"


def _tables(section: str, experiment: str) -> list[str]:
    """The successes of all arms, as `rlgpt compare` prints them."""
    printed = re.findall(rf"\$ rlgpt compare {experiment}\n(.*?)(?:paired by seed|```)", section, re.DOTALL)
    return [found for table in printed for found in re.findall(r"  +\d+  +\d+  (\d\.\d\d(?: \[[^]]+\])?)", table)]
