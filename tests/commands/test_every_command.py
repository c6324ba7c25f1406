"""Every command of `rlgpt --help`, on a finished, a running, a damaged and an empty home, and what it prints.

What a command should print is in the tests of that command; here each one ends with a documented code, says something,
and never shows a traceback.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import typer

from rlgpt.console import cli
from rlgpt.console.commands import operate
from rlgpt.console.commands.failure import Exit
from rlgpt.console.commands.tree import build
from rlgpt.store import bundle, events
from rlgpt.store.catalog import find
from rlgpt.store.folder import SessionFolder, sessions
from rlgpt.store.lease import Lease
from rlgpt.store.writer import Writer

from .conftest import Answer

KEPT = Path(__file__).parent.parent / "sessions" / "0001-finished.rlgpt"
STATES = ("finished", "running", "damaged", "empty")

WORDS: dict[str, Sequence[str]] = {
    "run": ["no_such_task"],
    "demo": ["--json"],
    "sessions": [],
    "show": ["last"],
    "attach": ["last"],
    "replay": ["last"],
    "serve": ["no-such-session"],
    "wait": ["last"],
    "logs": ["last"],
    "calls": ["last"],
    "funnel": ["last"],
    "episodes": ["last", "--failed"],
    "why": ["last"],
    "options": ["last"],
    "plan": ["last", "--diff"],
    "report": ["last", "-o", "report.html"],
    "tree": [],
    "leaderboard": ["collect_wood"],
    "inbox": [],
    "pause": ["last"],
    "resume": ["last"],
    "stop": ["last"],
    "approve": ["last", "--revision", "99"],
    "reject": ["last", "no", "--revision", "99"],
    "override": ["last", "--revision", "99", "--sub-action", "chop_tree", "--pin"],
    "edit": ["last", "action.py", "--sub-action", "chop_tree"],
    "advise": ["last", "Look behind you."],
    "verdict": ["last", "--success", "--cause", "it works"],
    "budget": ["last", "cost", "2"],
    "stop-training": ["last"],
    "cancel-call": ["last"],
    "fork": ["last", "--no-start", "--at", "60"],
    "compare": ["last"],
    "experiment": ["arms", "collect_wood", "--dry-run"],
    "export": ["last", "--format", "jsonl", "-o", "x.jsonl"],
    "import": ["kept.rlgpt"],
    "tasks": [],
    "try": ["action.py"],
    "tag": ["last", "paper"],
    "doctor": [],
    "skills list": [],
    "skills show": ["no-such-skill"],
    "skills export": ["skills.json"],
    "skills import": ["no-such-file.json"],
    "skills retire": ["no-such-skill"],
    "skills restore": ["no-such-skill"],
    "world list": [],
    "world check": ["no_such_world"],
    "store size": [],
    "store check": [],
    "store repair": ["last"],
    "store prune": [],
    "store backup": ["copies"],
    "store delete": ["last", "--yes"],
    "store init": ["postgresql:///no_such_store?host=/nowhere"],
    "store upgrade": ["postgresql:///no_such_store?host=/nowhere"],
    "store push": ["last", "--to", "elsewhere"],
    "store pull": ["no-such-session", "--from", "elsewhere"],
    "store move": ["last", "--to", "elsewhere"],
    "minedojo install": [],
}
"""The words behind each command. Where a whole run would follow, a word that ends it early."""
ENDLESS = {
    ("running", "wait"),
    *((state, "demo") for state in STATES),
    *((state, "minedojo install") for state in STATES),
}
"""These go on for as long as a session, or download a game."""
OWN_PROCESS = ("doctor", "try", "tasks", "world list", "world check", "experiment", "run")
"""They start a process that imports a world; what they do does not depend on the sessions: one home is enough."""
LOOKS = (
    "sessions",
    "show",
    "logs",
    "plan",
    "tree",
    "inbox",
    "compare",
    "export",
    "store size",
    "store prune",
    "store backup",
    "store repair",
    "fork",
    "tag",
)
"""On a sound finished session these succeed and print something."""


def commands() -> list[str]:
    def walk(command: object, path: tuple[str, ...]) -> Iterator[str]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield " ".join(path)
        for name, child in (inner or {}).items():
            yield from walk(child, (*path, name))

    return list(walk(typer.main.get_command(build()), ()))


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the session of a bundle, made once."""
    home = tmp_path_factory.mktemp("kept") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLGPT_HOME", str(home))
        bundle.import_bundle(KEPT)
    return home


@pytest.fixture(params=STATES)
def state(
    request: pytest.FixtureRequest, home: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setattr(operate, "PATIENCE", 0.2)  # the worker of these sessions answers nothing
    shutil.copyfile(KEPT, tmp_path / "kept.rlgpt")
    (tmp_path / "action.py").write_text("def chop_tree(view):\n    while not view.has('wood'):\n        yield 'do'\n")
    if request.param == "empty":
        yield request.param
        return
    shutil.copytree(kept, home)
    (session,) = sessions()
    if request.param == "running":
        with Lease.acquire(session.path), Writer(session) as writer:
            writer.event(events.Resumed(from_seq=writer.history.seq))
            yield request.param
        return
    if request.param == "damaged":
        _damage(session)
    yield request.param


def _damage(session: SessionFolder) -> None:
    rng = random.Random(5)
    body = bytearray(session.database.read_bytes())
    for _ in range(64):
        body[rng.randrange(100, len(body))] ^= rng.randint(1, 255)
    session.database.write_bytes(bytes(body))


def test_no_command_is_forgotten_here() -> None:
    assert sorted(WORDS) == sorted(commands())


@pytest.mark.parametrize("family", sorted({command.split()[0] for command in WORDS if " " in command}))
def test_a_family_without_its_command_says_where_they_are_listed(
    family: str, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([family]) == Exit.USAGE
    assert capfd.readouterr() == ("", f"rlgpt: Missing command. `rlgpt {family} --help` says what there is.\n")


@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("command", [c for c in WORDS if c not in OWN_PROCESS])
def test_every_command_ends_with_a_sentence_and_a_documented_code(
    command: str, json: bool, state: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if (state, command) in ENDLESS:
        pytest.skip("goes on as long as a session does")
    if json and command in ("attach", "replay", "serve"):
        pytest.skip("opens the console")
    before = find("last").database.read_bytes() if state == "damaged" else b""
    code = cli.run([*command.split(), *WORDS[command], *(["--json"] if json else [])])
    out, err = capfd.readouterr()
    assert code in tuple(Exit) and code != Exit.ERROR
    assert "Traceback" not in out + err
    assert (out + err).strip(), "nothing was printed"
    if code not in (Exit.OK, Exit.DIFFERENT, Exit.FAILED, Exit.STOPPED, Exit.BUDGET):
        last = err.strip().splitlines()[-1]
        assert (len(last) > 20 and last.rstrip().endswith((".", ")", "it", "sound", "is"))) or " " in last
    if state == "finished" and command in LOOKS:
        assert code == Exit.OK and out.strip(), err
    if state == "damaged":
        assert command == "store delete" or find(sessions()[0].id).database.read_bytes() == before
        reading = (
            "show",
            "logs",
            "compare",
            "export",
            "fork",
            "store size",
            "store backup",
            "advise",
            "pause",
            "resume",
        )
        if command in reading:
            assert code == Exit.UNAVAILABLE and "is damaged" in err
        if command == "store check":
            assert code == Exit.DIFFERENT and "damage" in out
        if command == "sessions":
            assert code == Exit.OK and "damaged" in out
    if state == "empty" and "last" in WORDS[command]:
        assert code == Exit.NOT_FOUND and "there is no session" in err


@pytest.mark.parametrize("command", OWN_PROCESS)
def test_commands_that_need_a_world_end_with_a_sentence_and_a_documented_code(command: str, home: Path) -> None:
    (Path.cwd() / "action.py").write_text("def chop_tree(view):\n    yield 'do'\n")
    words = [sys.executable, "-P", "-m", "rlgpt.console.cli", *command.split(), *WORDS[command]]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode in (Exit.OK, Exit.USAGE, Exit.NOT_FOUND, Exit.DIFFERENT, Exit.UNAVAILABLE)
    assert "Traceback" not in done.stdout + done.stderr
    assert (done.stdout if done.returncode == 0 else done.stderr or done.stdout).strip()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["experiment"], "Missing argument 'kind'. Choose from: arms, blind, "),
        (["session"], "No such command 'session'. Did you mean 'sessions'? `rlgpt --help` says what there is."),
        (["run", "x", "--nothing"], "No such option: --nothing (Possible options: --on). `rlgpt run --help`"),
    ],
)
def test_wrong_words_are_answered_in_one_line(rlgpt: Callable[..., Answer], words: list[str], sentence: str) -> None:
    answer = rlgpt(*words)
    assert answer.code == 2 and sentence in answer.err and "␊" not in answer.err and answer.err.count("\n") == 1
