"""The command inbox: shapes, and the way of a command from a console to its fate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgpt.store import events
from rlgpt.store.commands import KINDS, check_revision, parse_command
from rlgpt.store.errors import BadCommand
from rlgpt.store.folder import SessionFolder
from rlgpt.store.inbox import send
from rlgpt.store.reader import Reader
from rlgpt.store.writer import Writer

GOOD: list[tuple[str, dict[str, Any], int | None]] = [
    ("override", {"edits": [{"op": "set", "name": "wood", "mode": "rl"}], "apply": "now"}, 3),
    ("override", {"edits": [{"op": "executor", "value": "policy"}, {"op": "pin", "name": "wood"}]}, 3),
    ("approve", {}, 1),
    ("reject", {"text": "too long"}, 1),
    ("advise", {"agent": "fast", "text": "mind the water"}, None),
    ("verdict", {"success": True, "cause": "it stands there", "sub_action": "table"}, None),
    ("edit_code", {"sub_action": "wood", "source": "def wood(view):\n    yield 'noop'\n"}, None),
    ("edit_reward", {"source": "def reward(before, view): return 0.0", "weight": -2}, None),
    ("stop_training", {}, None),
    ("cancel_call", {}, None),
    ("pause", {}, None),
    ("resume", {}, None),
    ("stop", {"now": True}, None),
    ("budget", {"name": "cost", "value": None}, None),
]
BAD: list[tuple[str, Any, int | None, str]] = [
    ("dance", {}, None, "there is no command 'dance'"),
    ("pause", {"for": 3}, None, "pause takes no 'for'"),
    ("pause", [], None, "must be an object"),
    ("approve", {}, None, "approve needs the plan revision"),
    ("override", {"edits": []}, 1, "edits is wrong: list should have at least 1 item"),
    ("override", {"edits": [{"op": "burn", "name": "wood"}]}, 1, "edits number 1 is wrong: input tag 'burn'"),
    ("override", {"edits": [{"op": "set"}]}, 1, "override needs edits number 1 name"),
    ("override", {"edits": [{"op": "set", "name": "wood", "mode": {"rl": 1}}]}, 1, "edits number 1 mode is wrong"),
    ("override", {"edits": [{"op": "pin", "name": "wood"}], "apply": "later"}, 1,
     "apply is wrong: input should be 'now' or 'next', not 'later'"),
    ("advise", {"agent": "boss", "text": "x"}, None, "agent is wrong: .* 'critic', not 'boss'"),
    ("advise", {"agent": "slow"}, None, "advise needs text"),
    ("advise", {"agent": "slow", "text": "x" * 20_001}, None,
     "text is wrong: string should have at most 20000 characters"),
    ("verdict", {"success": 1, "cause": ""}, None, "success is wrong: input should be a valid boolean, not 1"),
    ("verdict", {"success": True, "cause": "", "confidence": 2}, None,
     "confidence is wrong: input should be less than or equal to 1"),
    ("budget", {"name": "patience", "value": 1}, None, "name is wrong: input should be 'env_steps'"),
    ("budget", {"name": "cost", "value": -1}, None, "value is wrong: input should be greater than or equal to 0"),
    ("budget", {"name": "cost", "value": float("nan")}, None, "value is wrong: input should be"),
    ("stop", {"now": "yes"}, None, "now is wrong: input should be a valid boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "payload", "revision"), GOOD)
def test_a_proper_command_passes_and_again_as_it_was_taken(kind: str, payload: dict[str, Any], revision: int) -> None:
    command = parse_command(kind, payload)
    check_revision(command, revision)
    assert command.payload().items() >= payload.items()
    assert parse_command(kind, json.loads(json.dumps(command.payload()))) == command


@pytest.mark.parametrize(("kind", "payload", "revision", "sentence"), BAD)
def test_a_bad_command_is_one_sentence(kind: str, payload: Any, revision: int | None, sentence: str) -> None:
    with pytest.raises(BadCommand, match=sentence.replace("'", ".")) as caught:
        check_revision(parse_command(kind, payload), revision)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


FIELDS = (
    "edits", "apply", "text", "agent", "success", "cause", "sub_action", "source", "weight", "now", "name", "value",
    "confidence", "kind", "extra",
)  # fmt: skip
TEXT = st.text("ab\x00é\U0001f600", max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([*KINDS, "other"]), st.data())
def test_any_payload_is_either_taken_whole_or_refused_with_a_sentence(kind: str, data: st.DataObject) -> None:
    names = st.sampled_from(FIELDS)
    payload = data.draw(st.dictionaries(names, JSON | TEXT, max_size=4))
    revision = data.draw(st.none() | st.integers() | st.booleans())
    try:
        command = parse_command(kind, payload)
        check_revision(command, revision)
    except BadCommand as error:
        assert str(error) and "\n" not in str(error)
        return
    assert parse_command(kind, json.loads(json.dumps(command.payload()))) == command


def test_a_command_goes_from_queued_over_seen_to_its_fate(session: SessionFolder) -> None:
    name = send(session, parse_command("budget", {"name": "cost", "value": 2.0}), author="ann@box")
    with Reader(session) as reader:
        assert [c["id"] for c in reader.commands()] == [name] and name not in reader.history_at().commands
        with Writer(session) as writer:
            (queued,) = writer.commands_after(0)
            fate = {"id": name, "kind": queued.kind, "payload": queued.payload, "author": queued.author}
            writer.event(events.Command(**fate, revision=None, state="seen", reason=""))
            assert reader.history_at().commands[name].state == "seen"
            with writer.transaction(durable=True) as tx:
                tx.event(events.Budget(author=queued.author, **queued.payload))
                tx.event(events.Command(**fate, revision=None, state="applied", reason=""))
        after = reader.history_at()
        assert after.commands[name].state == "applied" and after.commands[name].author == "ann@box"
        assert after.budgets == {"cost": 2.0}


def test_a_command_sent_to_a_dead_session_waits_for_its_next_worker(session: SessionFolder) -> None:
    with Writer(session) as writer:
        writer.event(events.Started())
    name = send(session, parse_command("pause"))
    with Writer(session) as writer:
        assert [c.id for c in writer.commands_after(0)] == [name]


def test_a_refused_shape_never_reaches_the_inbox(session: SessionFolder) -> None:
    with pytest.raises(BadCommand):
        send(session, parse_command("advise", {"agent": "slow", "text": 3}))
    with Reader(session) as reader:
        assert reader.commands() == []
