"""The operator as the critic, and the library of skills that a session leaves behind."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.conftest import Make
from tests.end_to_end.consoles import (
    CTRL_S,
    CTRL_U,
    DOWN,
    ENTER,
    attached,
    console,
    filtered,
)  # fmt: skip


def test_the_operator_is_the_critic_and_what_was_accepted_becomes_a_skill(make: Make, tmp_path: Path) -> None:
    session = make("make_wood_pickaxe", start=False, critic="human", skills="all", loop={"iterations": 0})
    with attached(session) as t:
        t.until("not started")
        t.keys("R")
        t.until("You are the critic of the iteration: look at code and world, then press v.", 90)
        assert b"\x07" in t.raw and b"\x1b]9;" in t.raw, "nobody who looks elsewhere was told"
        t.keys("v")
        t.until("Your verdict")
        t.keys(CTRL_S)
        t.until("Say whether it failed or succeeded.")
        t.keys(ENTER, DOWN, DOWN, ENTER, CTRL_S)
        t.until("Say why: the agents read it.")
        t.keys("I saw it.", CTRL_S)
        t.until("verdict: applied")
        t.until(" END ", 60)
    (iteration,) = session.history().iterations
    assert iteration.verdict is not None
    assert (iteration.verdict.author, iteration.verdict.success) == ("operator", True)
    assert iteration.verdict.cause == "I saw it."
    skills(session.environment["RLGPT_HOME"], tmp_path)


def skills(home: str, place: Path) -> None:
    with console(home, size=(120, 40)) as t:
        t.until("1 session")
        t.keys("K")
        t.until("3 in use, 0 retired")
        filtered(t, "place_table")
        t.until(lambda text: "place_table" in text and "def place_table" in text)
        t.keys("t")
        t.until("tried now from fresh episodes: accepted", 60)
        t.keys("e")
        t.until("File to write:")
        t.keys(CTRL_U, str(place / "table.json"), ENTER)
        t.until("written to")
        t.keys("r")
        t.until(lambda text: "2 in use, 1 retired" in text)
        filtered(t, "")
        t.until(lambda text: "Retired" in text)
        t.keys("G")
        t.until(lambda text: "Retired" in text and "def place_table" in text)
        t.keys("r")
        t.until("3 in use, 0 retired")
        t.keys("q")
        t.until("1 session")
    with console(place / "another home") as t:
        t.until("No sessions yet")
        t.keys("K")
        t.until("No skills yet")
        t.keys("i")
        t.until("File to read")
        t.keys(str(place / "table.json"), ENTER)
        t.until(lambda text: "1 in use, 0 retired" in text and "def place_table" in text)
