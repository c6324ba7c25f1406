"""`rlgpt store` with a database that a team shares."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from rlgpt.console.commands import elsewhere, operate
from rlgpt.store import catalog, events, folder, upkeep
from rlgpt.store.address import source_of
from rlgpt.store.folder import SessionFolder
from rlgpt.store.folder_peer import FolderPeer
from rlgpt.store.lease import Lease, Owner
from rlgpt.store.peers import RemoteWorker, digest, sync
from rlgpt.store.reach import reached
from rlgpt.store.writer import Writer
from rlgpt.training.session.inbox import Inbox
from tests.commands.conftest import Answer, make
from tests.patience import PATIENCE
from tests.store.keeping import Keeper, until
from tests.store.postgres import NEEDS_SERVER, Server

pytestmark = NEEDS_SERVER
Rlgpt = Callable[..., Answer]


@pytest.fixture
def address(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    made = server.new_database()
    monkeypatch.setenv("RLGPT_STORE", made)
    return made


def test_a_team_makes_a_store_and_moves_sessions_through_it(
    rlgpt: Rlgpt, finished: SessionFolder, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "`rlgpt store init" in rlgpt("store", "push").err
    assert rlgpt("store", "init").code == 0
    assert "is a store already" in rlgpt("store", "init").err
    assert "the newest there is" in rlgpt("store", "upgrade").out
    catalog.set_tags(finished, ["good"])
    kept = digest(FolderPeer(finished.path))
    moved = rlgpt("store", "move")
    assert moved.code == 0 and f"{finished.id}: moved" in moved.out and not finished.path.exists()
    size = rlgpt("store", "size", "--in", address)
    assert size.code == 0 and finished.id in size.out and "1 session," in size.out
    assert "1 session checked, no problems" in rlgpt("store", "check", "--in", address).out
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    assert rlgpt("store", "pull", "wood").code == 0
    there = SessionFolder(tmp_path / "colleague" / "sessions" / finished.id)
    assert digest(FolderPeer(there.path)) == kept and catalog.tags(there) == ("good",)
    assert "cannot be undone" in rlgpt("store", "delete", "wood", "--in", address).err
    assert rlgpt("store", "delete", "wood", "--in", address, "--yes").code == 0
    assert "there is no session 'wood' in postgresql:///" in rlgpt("store", "pull", "wood").err
    assert there.path.exists()


def test_many_sessions_move_at_once(rlgpt: Rlgpt, address: str) -> None:
    rlgpt("store", "init")
    sessions = [make(f"session {number}") for number in range(20)]
    answer = rlgpt("store", "move", "--json").document
    assert [one["id"] for one in answer["sessions"]] == sorted(session.id for session in sessions)
    assert not any(one["error"] for one in answer["sessions"]) and not catalog.summaries()


def after_each_removal(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """What happens to the store after each session that was moved; it is asked again at once."""
    remove = upkeep.remove

    def remove_first(session: SessionFolder) -> None:
        remove(session)
        happens()

    monkeypatch.setattr(upkeep, "remove", remove_first)
    monkeypatch.setattr(elsewhere, "AGAIN", 0.01)


def test_a_move_goes_on_over_a_network_that_drops(
    rlgpt: Rlgpt, server: Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection is lost after each session; what a killed command left half removed goes too."""
    rlgpt("store", "init")
    ids = sorted(make(f"session {number}").id for number in range(4))
    (folder.root() / f".gone-{ids[0]}" / "artifacts").mkdir(parents=True)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rlgpt'"
    after_each_removal(monkeypatch, lambda: server.sql(cut))
    answer = rlgpt("store", "move")
    assert (answer.code, answer.err) == (0, "") and [ident for ident in ids if f"{ident}: moved" in answer.out] == ids
    assert not list(folder.root().iterdir())


def test_a_move_whose_store_stays_away_stops_and_goes_on_by_the_same_command(
    rlgpt: Rlgpt, server: Server, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the store once, and not again for every session."""
    rlgpt("store", "init")
    ids = sorted(make(f"session {number}").id for number in range(4))
    with monkeypatch.context() as during:
        after_each_removal(during, lambda: server.stop("immediate"))
        try:
            answer = rlgpt("store", "move")
        finally:
            server.start()
    assert answer.code != 0 and answer.out == f"{ids[0]}: moved, 1 new row\n"
    (sentence,) = answer.err.splitlines()
    assert "cannot be reached" in sentence and "3 of 4 sessions left: the same command goes on" in sentence
    again = rlgpt("store", "move", "--json").document["sessions"]
    assert [(one["id"], one["error"]) for one in again] == [(ident, None) for ident in ids[1:]]
    assert not folder.sessions()


def test_a_colleague_sees_and_steers_a_session_that_runs_elsewhere(
    rlgpt: Rlgpt, running: tuple[SessionFolder, Writer], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rlgpt("store", "init")
    session, writer = running
    keeper = Keeper(session.path, address)
    assert keeper.ready() == 1
    until(lambda: rlgpt("store", "size", "--in", address).out.startswith("id") and _pushed(rlgpt, session))
    inbox = Inbox(writer)
    inbox.start()
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    mirror = tmp_path / "colleague" / "sessions" / session.id
    (listed,) = rlgpt("sessions", "--json").document["sessions"]
    assert (listed["id"], listed["name"], listed["alive"]) == (session.id, "wood", True)
    assert listed["store"].startswith("postgresql:///") and not mirror.exists()
    assert rlgpt("show", "wood").code == 0
    monkeypatch.setattr(operate, "PATIENCE", 20.0)
    advised = rlgpt("advise", "wood", "use the axe")
    assert advised.code == 0 and "advise seen" in advised.out, advised.err
    (command,) = writer.history.commands.values()
    assert command.state == "seen" and command.author.startswith("postgres (")
    refused = rlgpt("stop", "wood", "--now")
    assert refused.code == 4 and "stop it there" in refused.err
    inbox.close()
    writer.event(events.Ended("finished", "all is done"))
    assert keeper.end() == (0, "")
    (listed,) = rlgpt("sessions", "--json").document["sessions"]
    assert (listed["status"], listed["alive"]) == ("finished", False)
    assert "has ended" in rlgpt("advise", "wood", "too late").err
    assert rlgpt("show", "wood").code == 0
    assert source_of(mirror) == "" and digest(FolderPeer(mirror)) == digest(FolderPeer(session.path))


def unfinished(name: str) -> SessionFolder:
    session = make(name)
    with Writer(session) as writer:
        writer.event(events.Started())
    return session


def run_elsewhere(session: SessionFolder, address: str) -> Any:
    """What its keeper does, on another machine."""
    from rlgpt.store.shared.store import SharedStore

    store = SharedStore(address)
    peer = store.remote(session.id)
    peer.claim()
    sync(FolderPeer(session.path), peer)
    peer.tell(RemoteWorker(Owner(1, "elsewhere", 1.0), {}))
    store.describe(session)
    return peer


def cut(server: Server, peer: Any) -> None:
    """Every connection to the store but that of the session's keeper."""
    keeper = peer._base.info.backend_pid
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE application_name = 'rlgpt' AND pid <> {keeper} AND backend_type = 'client backend'"
    )


def test_a_lost_connection_is_no_dead_worker(
    rlgpt: Rlgpt, server: Server, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rlgpt("store", "init")
    session = unfinished("wood")
    peer = run_elsewhere(session, address)
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    with reached("wood") as mirror:
        until(lambda: Lease.held(mirror.path))
        for _ in range(2):
            cut(server, peer)
            end = time.monotonic() + 3.0
            while time.monotonic() < end:
                assert Lease.held(mirror.path), "who waits for the session was told that its worker has died"
                time.sleep(0.02)
        with Writer(session) as writer:
            writer.event(events.Phase(name="Plan"))
        sync(FolderPeer(session.path), peer)
        until(lambda: FolderPeer(mirror.path).head().seq == peer.head().seq)
        peer.release()
        until(lambda: not Lease.held(mirror.path))


def test_who_waits_is_not_told_of_a_death_when_the_console_beside_it_is_left(
    rlgpt: Rlgpt, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process keeps the mirror up for all."""
    rlgpt("store", "init")
    session = unfinished("wood")
    peer = run_elsewhere(session, address)
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    answers: list[Answer] = []
    waiting = threading.Thread(target=lambda: answers.append(rlgpt("wait", "wood")), daemon=True)
    with reached("wood") as mirror:
        until(lambda: Lease.held(mirror.path))
        waiting.start()
        time.sleep(3.0)
    with Writer(session) as writer:
        writer.event(events.Ended("finished", "all is done"))
    time.sleep(3.0)
    assert not answers
    sync(FolderPeer(session.path), peer)
    peer.release()
    waiting.join(120.0)
    assert [answer.code for answer in answers] == [0]


def test_what_several_sessions_here_may_be_called_is_not_looked_for_in_the_store(
    rlgpt: Rlgpt, address: str, tmp_path: Path
) -> None:
    """One that is run here would be taken for a mirror of its own copy, which nothing pushes or resumes."""
    rlgpt("store", "init")
    first, second = unfinished("wood"), unfinished("wood")
    peer = run_elsewhere(second, address)
    with Lease.acquire(second.path):
        answer = rlgpt("show", "wood")
        assert answer.code == 3 and "may mean 2 sessions: " in answer.err and first.id in answer.err
        assert rlgpt("store", "pull", second.id, "--follow", "--from", address).code == 4
    peer.release()
    assert source_of(second.path) == ""
    assert rlgpt("store", "push", second.id, "--to", tmp_path / "other").code == 0


@pytest.fixture
def left_alone(rlgpt: Rlgpt, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionFolder:
    """`wood`, of the team, which nobody runs now, as a colleague comes to it."""
    rlgpt("store", "init")
    session = unfinished("wood")
    run_elsewhere(session, address).release()
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    return session


def test_a_session_that_was_looked_at_while_nobody_ran_it_is_still_the_teams(
    rlgpt: Rlgpt, left_alone: SessionFolder, address: str
) -> None:
    assert not rlgpt("show", "wood", "--json").document["alive"]
    with Writer(left_alone) as writer:
        writer.event(events.Phase(name="Plan"))
    peer = run_elsewhere(left_alone, address)
    (listed,) = rlgpt("sessions", "--json").document["sessions"]
    assert (listed["alive"], listed["status"], listed["phase"]) == (True, "running", "Plan")
    assert rlgpt("show", "wood", "--json").document["alive"]
    peer.release()


def test_a_command_to_a_store_that_takes_nothing_is_refused_and_hides_nothing(
    rlgpt: Rlgpt, server: Server, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rlgpt("store", "init")
    peer = run_elsewhere(unfinished("wood"), address)
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    monkeypatch.setattr(operate, "PATIENCE", 60.0)
    database = address.partition("?")[0].rpartition("/")[2]
    server.sql(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    advised = rlgpt("advise", "wood", "use the axe")
    assert advised.code == 4 and "takes nothing now" in advised.err
    shown = rlgpt("show", "wood", "--json")
    assert shown.code == 0 and shown.document["alive"]
    peer.release()


def test_a_worker_that_nobody_can_read_of_is_there_all_the_same(
    rlgpt: Rlgpt, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write to the store may write anything there: `show` waited for ever."""
    rlgpt("store", "init")
    peer = run_elsewhere(unfinished("wood"), address)
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    for beat in (
        {"worker": [1]},
        {"worker": [10**400, "a", 2.0]},
        {"worker": [1, "a", 10**400]},
        ["x"],
        {"worker": [1, "a", 2.0], "progress": "far"},
    ):
        peer._base.execute("UPDATE head SET beat = %s", (json.dumps(beat),))
        answers: list[Answer] = []
        asking = threading.Thread(target=lambda to=answers: to.append(rlgpt("show", "wood", "--json")), daemon=True)
        asking.start()
        asking.join(60.0)
        assert [answer.code for answer in answers] == [0], beat
    peer.release()


def test_the_log_of_a_session_of_the_team_is_read_and_what_needs_a_copy_names_the_command_for_one(
    rlgpt: Rlgpt, left_alone: SessionFolder
) -> None:
    assert [one["id"] for one in rlgpt("sessions", "--json").document["sessions"]] == [left_alone.id]
    assert "here (`rlgpt store pull` brings one" in rlgpt("export", "wood").err
    log = rlgpt("logs", "wood")
    assert log.code == 0 and "started" in log.out


def test_what_looks_at_all_sessions_looks_at_those_of_the_team_too(
    rlgpt: Rlgpt, finished: SessionFolder, running: tuple[SessionFolder, Writer], address: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What they say at home is what they say where there are only those of the store."""
    rlgpt("store", "init")
    session, writer = running
    writer.event(events.Waiting("paused"))
    keeper = Keeper(session.path, address)
    keeper.ready()
    questions = (("tree",), ("leaderboard", "collect_wood"), ("inbox",))
    here = [rlgpt(*words, "--json").document for words in questions]
    assert here[2]["waiting"][0]["id"] == session.id and len(here[0]["sessions"]) == 2
    assert rlgpt("store", "push", finished.id).code == 0
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "colleague"))
    until(lambda: rlgpt("inbox", "--json").document["waiting"])
    assert [rlgpt(*words, "--json").document for words in questions] == here
    keeper.end()


def _pushed(rlgpt: Rlgpt, session: SessionFolder) -> bool:
    return any(one["id"] == session.id and one["store"] for one in _in_store(rlgpt))


def _in_store(rlgpt: Rlgpt) -> list[dict[str, object]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLGPT_HOME", "/nowhere/at/all")
        found = rlgpt("sessions", "--json").document["sessions"]
    assert isinstance(found, list)
    return found


def test_a_store_that_is_away_hides_nothing_that_is_here(
    rlgpt: Rlgpt, finished: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_STORE", "postgresql:///rlgpt?host=/nowhere")
    answer = rlgpt("sessions")
    assert answer.code == 0 and finished.id in answer.out and "cannot be reached" in answer.err
    assert rlgpt("show", "wood").code == 0
    missing = rlgpt("show", "iron")
    assert missing.code != 0 and "cannot be reached" in missing.err


def test_a_resume_of_what_another_machine_has_says_so(
    rlgpt: Rlgpt, finished: SessionFolder, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of one's own is no mirror: only the claim shows that somebody else went on with it."""
    from rlgpt.store.shared.connection import connect
    from rlgpt.store.shared.peer import SharedPeer

    rlgpt("store", "init")
    session = make("unfinished")
    with Writer(session) as writer:
        writer.event(events.Started())
    held = SharedPeer(connect(address), address, session.id)
    held.claim()
    answer = rlgpt("resume", session.id)
    assert answer.code == 4 and "is already run" in answer.err
    held.release()


def test_without_the_extra_an_address_answers_with_the_install_line(
    rlgpt: Rlgpt, finished: SessionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("rlgpt.store.shared", "psycopg"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv("RLGPT_STORE", "postgresql:///rlgpt")
    for words in (("push",), ("pull", "wood"), ("move",), ("init",), ("upgrade",)):
        answer = rlgpt("store", *words)
        assert answer.code == 5 and "pip install 'rlgpt[postgres]'" in answer.err
    assert "pip install 'rlgpt[postgres]'" in rlgpt("sessions").err


async def comes(pilot: Pilot[Any], holds: Callable[[], object]) -> None:
    for _ in range(400 * PATIENCE):
        if holds():
            return
        await pilot.pause(0.1)
    raise AssertionError("it did not come")


async def test_the_inbox_of_the_console_has_what_waits_elsewhere_and_opens_it(
    rlgpt: Rlgpt, running: tuple[SessionFolder, Writer], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlgpt.console.app import ConsoleApp
    from rlgpt.console.panes.lines import Lines
    from rlgpt.console.screens.inbox import InboxScreen
    from rlgpt.console.screens.session import SessionScreen
    from rlgpt.console.view.text import plain

    rlgpt("store", "init")
    session, writer = running
    writer.event(events.Waiting("approval of revision 2"))
    keeper = Keeper(session.path, address)
    keeper.ready()
    home = tmp_path / "colleague"
    monkeypatch.setenv("RLGPT_HOME", str(home))
    until(lambda: rlgpt("inbox", "--json").document["waiting"])
    app = ConsoleApp(home)
    async with app.run_test(size=(120, 40)) as pilot:

        def waiting() -> list[str]:
            shown = app.screen.query_one(Lines).entries if isinstance(app.screen, InboxScreen) else []
            return ["\n".join(map(plain, entry.lines)) for entry in shown if entry.key == session.id]

        await pilot.press("I")
        await comes(pilot, waiting)
        (told,) = waiting()
        assert "approve or reject plan 2" in told and "its worker is dead" not in told
        await pilot.press("enter")
        await comes(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        assert isinstance(app.screen, SessionScreen)
        assert app.screen.controller.folder.name == session.id and Lease.held(home / "sessions" / session.id)
    app.mirrors.close()
    keeper.end()


async def test_the_console_lists_and_opens_a_session_that_runs_elsewhere(
    rlgpt: Rlgpt, running: tuple[SessionFolder, Writer], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlgpt.console.app import ConsoleApp
    from rlgpt.console.screens.session import SessionScreen
    from rlgpt.console.screens.sessions import SessionsScreen

    rlgpt("store", "init")
    session, _ = running
    keeper = Keeper(session.path, address)
    keeper.ready()
    until(lambda: _pushed(rlgpt, session))
    home = tmp_path / "colleague"
    monkeypatch.setenv("RLGPT_HOME", str(home))
    app = ConsoleApp(home)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, SessionsScreen)
        await comes(pilot, lambda: screen.selected is not None and screen.selected.alive)
        assert screen.selected is not None and screen.selected.id == session.id
        app.open_session(session.id)
        # The console is left below: a screen that is still being made would find no panes.
        await comes(pilot, lambda: isinstance(app.screen, SessionScreen) and app.screen.controller.opened)
        assert Lease.held(home / "sessions" / session.id)
    app.mirrors.close()
    assert not Lease.held(home / "sessions" / session.id)
    keeper.end()
