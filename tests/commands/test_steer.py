from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rlgpt.store import events, tables
from rlgpt.store.folder import SessionFolder
from rlgpt.store.writer import Queued, Writer

from .conftest import Answer, make, write_plan

Cli = Callable[..., Answer]
Running = tuple[SessionFolder, Writer]


@contextmanager
def worker(writer: Writer, decide: Callable[[Queued], tuple[str, str]]) -> Iterator[list[Queued]]:
    """A thread that takes commands as a worker does: seen, then `decide(command)` -> (state, reason)."""
    taken: list[Queued] = []
    stop = threading.Event()

    def work() -> None:
        cursor = 0
        while not stop.wait(0.02):
            for command in writer.commands_after(cursor):
                cursor = command.rowid
                taken.append(command)
                state, reason = decide(command)
                for now, why in (("seen", ""), (state, reason)):
                    fields = {k: getattr(command, k) for k in ("id", "kind", "author", "revision", "payload")}
                    writer.event(events.Command(**fields, state=now, reason=why))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield taken
    finally:
        stop.set()
        thread.join()


def applied(command: Queued) -> tuple[str, str]:
    return "applied", ""


def sent(rlgpt: Cli, running: Running, *words: object) -> tuple[str, dict[str, Any], int | None]:
    """(kind, payload, revision) of the command that a command line puts into the inbox."""
    session, writer = running
    with worker(writer, applied) as taken:
        answer = rlgpt(words[0], session.id, *words[1:], "--json")
    assert answer.code == 0, answer.err
    assert answer.document["state"] == "applied"
    return taken[-1].kind, taken[-1].payload, taken[-1].revision


def test_a_mode_is_toggled_by_one_edit_on_the_revision_the_operator_saw(rlgpt: Cli, running: Running) -> None:
    words = ("override", "--sub-action", "strike", "--mode", "code", "--revision", 1, "--apply", "next")
    kind, payload, revision = sent(rlgpt, running, *words)
    assert (kind, revision) == ("override", 1)
    assert payload == {"edits": [{"op": "set", "name": "strike", "mode": "code"}], "apply": "next"}


@pytest.mark.parametrize(("iteration", "told"), [(1, "next iteration\n"), (3, "this is the last of its task\n")])
def test_what_waits_for_the_next_iteration_says_whether_there_may_be_none(
    rlgpt: Cli, running: Running, iteration: int, told: str
) -> None:
    session, writer = running
    with writer.transaction() as tx:
        tx.add(tables.Iteration(sub_task=0, number=iteration))
    words = ("--sub-action", "strike", "--mode", "code", "--revision", 1, "--apply", "next")
    with worker(writer, lambda command: ("seen", "")):
        answer = rlgpt("override", session.id, *words)
    assert answer.code == 0 and "override seen, it waits for the next iteration" in answer.out
    assert answer.out.endswith(told)


def test_one_override_may_hold_several_edits(rlgpt: Cli, running: Running) -> None:
    words = (
        "override",
        "--sub-action",
        "strike",
        "--rename",
        "hit",
        "--pin",
        "--executor",
        "sequence",
        "--revision",
        1,
    )
    _, payload, _ = sent(rlgpt, running, *words)
    assert [e["op"] for e in payload["edits"]] == ["set", "pin", "executor"]
    assert payload["edits"][1]["name"] == "hit"


def test_a_sub_action_is_added_at_a_position(rlgpt: Cli, running: Running) -> None:
    words = (
        "override",
        "--add",
        "--sub-action",
        "look",
        "--mode",
        "code",
        "--goal",
        "g",
        "--done-when",
        "True",
    )
    _, payload, _ = sent(rlgpt, running, *words, "--position", 0, "--revision", 1)
    assert payload["edits"][0] | {"op": "add", "position": 0} == payload["edits"][0]


def test_a_renamed_sub_action_is_moved_and_pinned_by_its_new_name(rlgpt: Cli, running: Running) -> None:
    words = ("override", "--sub-action", "strike", "--rename", "hit", "--position", 0, "--pin", "--revision", 1)
    edits = sent(rlgpt, running, *words)[1]["edits"]
    assert [(e["op"], e["name"]) for e in edits] == [("set", "strike"), ("move", "hit"), ("pin", "hit")]


def test_a_sub_action_is_removed(rlgpt: Cli, running: Running) -> None:
    words = ("override", "--sub-action", "strike", "--remove", "--executor", "policy", "--revision", 1)
    edits = sent(rlgpt, running, *words)[1]["edits"]
    assert edits == [{"op": "remove", "name": "strike"}, {"op": "executor", "value": "policy"}]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sub-action", "strike", "--remove", "--add"), "nothing else can be said of it"),
        (("--sub-action", "strike", "--remove", "--mode", "rl"), "nothing else can be said of it"),
        (("--sub-action", "strike", "--remove", "--pin"), "nothing else can be said of it"),
        (("--sub-action", "strike", "--remove", "--position", 0), "nothing else can be said of it"),
        (("--sub-action", "look", "--add", "--rename", "see"), "leave --rename out"),
        (("--position", 2), "say which sub-action"),
        (("--pin",), "say which sub-action"),
        (("--remove",), "say which sub-action"),
        ((), "say what to change"),
    ],
)
def test_options_that_contradict_each_other_send_nothing(
    rlgpt: Cli, running: Running, words: tuple[object, ...], sentence: str
) -> None:
    answer = rlgpt("override", running[0].id, *words, "--revision", 1)
    assert answer.code == 2 and sentence in answer.err
    assert not running[1].commands_after(0)


def test_empty_advice_is_refused_where_it_is_written(rlgpt: Cli, running: Running) -> None:
    answer = rlgpt("advise", running[0].id, " \n ")
    assert answer.code == 2 and "the advice is empty" in answer.err
    assert not running[1].commands_after(0)


def test_each_action_of_an_operator_is_one_command(rlgpt: Cli, running: Running) -> None:
    assert sent(rlgpt, running, "pause")[:2] == ("pause", {})
    assert sent(rlgpt, running, "advise", "go left", "--agent", "fast")[1] == {
        "agent": "fast",
        "text": "go left",
    }
    assert sent(rlgpt, running, "approve", "--revision", 1)[2] == 1
    assert sent(rlgpt, running, "budget", "env_steps", 5000)[1] == {"name": "env_steps", "value": 5000}
    assert sent(rlgpt, running, "budget", "hours", "1.5")[1] == {"name": "hours", "value": 1.5}
    assert sent(rlgpt, running, "budget", "env_steps", "none")[1] == {"name": "env_steps", "value": None}
    assert sent(rlgpt, running, "stop-training")[0] == "stop_training"
    assert sent(rlgpt, running, "cancel-call")[:2] == ("cancel_call", {})
    verdict = sent(rlgpt, running, "verdict", "--failure", "--cause", "too slow", "--sub-action", "strike")[1]
    assert (verdict["success"], verdict["cause"], verdict["sub_action"]) == (False, "too slow", "strike")


@pytest.mark.parametrize("limit", ["inf", "nan", "1e400", "much", ""])
@pytest.mark.parametrize("name", ["env_steps", "tokens", "cost", "hours"])
def test_a_limit_that_is_no_number_is_a_sentence(rlgpt: Cli, running: Running, name: str, limit: str) -> None:
    answer = rlgpt("budget", running[0].id, name, limit, "--json")
    assert answer.code == 2 and "a limit is a number, or `none`" in answer.document["error"]


def test_a_budget_of_what_is_counted_is_a_whole_number(rlgpt: Cli, running: Running) -> None:
    answer = rlgpt("budget", running[0].id, "env_steps", "1.5")
    assert answer.code == 2 and "a limit of env_steps is a whole number" in answer.err


@pytest.mark.parametrize("said", [[], ["--success", "--failure"]])
def test_a_verdict_says_one_of_the_two(rlgpt: Cli, running: Running, said: list[str]) -> None:
    answer = rlgpt("verdict", running[0].id, *said, "--cause", "I saw it")
    assert answer.code == 2 and "one of the two" in answer.err


def test_an_edited_source_is_sent_from_a_file(rlgpt: Cli, running: Running, tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text("def find_tree(view):\n    yield 2\n")
    kind, payload, seen = sent(rlgpt, running, "edit", "mine.py", "--sub-action", "find_tree", "--apply", "next")
    assert (kind, payload["source"]) == ("edit_code", "def find_tree(view):\n    yield 2\n")
    assert (payload["apply"], seen) == ("next", 1), "a worker cannot tell which iteration is the next"


def test_an_edited_reward_is_sent_with_its_weight(rlgpt: Cli, running: Running, tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text("def reward(before, view):\n    return 1.0\n")
    kind, payload, _ = sent(rlgpt, running, "edit", "mine.py", "--reward", "--weight", 0.5)
    assert (kind, payload["weight"]) == ("edit_reward", 0.5)
    assert rlgpt("edit", running[0].id, "mine.py").code == 2


def test_a_source_without_end_is_not_read_to_its_end(
    rlgpt: Cli, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/zero").open() as endless:
        monkeypatch.setattr("sys.stdin", endless)
        for file in ("/dev/zero", "-"):
            answer = rlgpt("edit", running[0].id, file, "--reward")
            assert answer.code == 2 and f"{file} has more than 20000 characters" in answer.err


def test_the_state_of_the_session_is_looked_at_before_a_source(rlgpt: Cli, finished: Any) -> None:
    answer = rlgpt("edit", finished.id, "/dev/zero", "--reward")
    assert answer.code == 4 and "has ended" in answer.err


def test_a_refusal_is_the_workers_sentence_and_exit_code_4(rlgpt: Cli, running: Running) -> None:
    session, writer = running
    write_plan(writer, revision=2)
    with worker(writer, lambda c: ("refused", "you saw revision 1, by now it is revision 2")):
        answer = rlgpt("override", session.id, "--executor", "sequence", "--revision", 1)
    assert answer.code == 4 and "by now it is revision 2" in answer.err


def test_a_dead_worker_takes_no_command_and_the_cure_is_named(rlgpt: Cli) -> None:
    session = make()
    with Writer(session) as writer:
        write_plan(writer)
    answer = rlgpt("pause", session.id)
    assert answer.code == 4 and f"rlgpt resume {session.id}" in answer.err


def test_an_ended_session_takes_no_command(rlgpt: Cli, finished: SessionFolder) -> None:
    for words in (("pause",), ("stop",), ("resume",)):
        answer = rlgpt(words[0], finished.id)
        assert answer.code == 4, words


def test_a_resume_right_after_a_resume_says_the_same(rlgpt: Cli, running: Running) -> None:
    """The worker that was started for it holds the session and has not written a row yet."""
    session, writer = running
    writer.event(events.Ended(status="stopped", reason="ended at once by somebody"))
    answer = rlgpt("resume", session.id)
    assert answer.code == 0, answer.err
    assert answer.out == f"resumed {session.id}\n"


def test_a_command_right_after_a_resume_waits_for_the_worker(rlgpt: Cli, running: Running) -> None:
    """`rlgpt resume X && rlgpt pause X`: the session has not ended, though its newest row still says so."""
    writer = running[1]
    writer.event(events.Ended(status="stopped", reason="ended at once by somebody"))
    begins = threading.Timer(0.5, lambda: writer.event(events.Resumed(from_seq=1)))
    begins.start()
    try:
        assert sent(rlgpt, running, "pause")[0] == "pause"
    finally:
        begins.join()
