"""A device or kernel that the machine does not have: refused before a session is made; a session that comes to such a
machine from another stops before it trains, and can go on elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlgpt.training.ppo.machine import MachineLacks, check_compiler
from rlgpt.training.session import creation
from tests.end_to_end.conftest import Make, Running
from tests.end_to_end.typed import rlgpt


def test_what_no_policy_could_be_trained_with_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for settings, sentence in (
        ({"device": "cuda"}, "torch sees no CUDA device"),
        ({"kernel": "compiled"}, r"needs a C\+\+ compiler"),
    ):
        with pytest.raises(creation.CannotCreate, match=sentence) as refused:
            creation.create({"task": "collect_wood", **settings})
        assert refused.value.code == creation.UNAVAILABLE
        assert creation.create({"task": "collect_wood", **settings}, elsewhere=True)["id"]


def test_the_compiler_is_the_one_that_torch_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch._inductor.config.cpp.cxx`: on Linux g++, or what CXX names."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("CXX", raising=False)
    for name in ("clang++", "c++"):
        (tmp_path / name).touch(0o755)
    with pytest.raises(MachineLacks, match=r"no g\+\+; the variable CXX names another"):
        check_compiler()
    monkeypatch.setenv("CXX", "clang++")
    check_compiler()
    monkeypatch.setenv("CXX", "/nowhere/g++")
    with pytest.raises(MachineLacks, match=r"no /nowhere/g\+\+"):
        check_compiler()


def test_a_session_that_comes_to_such_a_machine_stops_before_it_trains(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "c++")  # the machine that it was made on
    made = make("collect_wood", start=False, kernel="compiled", method={"arm": "rl"}, budget={"env_steps": 8000})
    bare = {name: value for name, value in made.environment.items() if name != "CXX"} | {"PATH": ""}
    for _ in range(2):  # a resume finds nothing changed
        session = Running(made.folder, bare).start()
        history = session.finish()
        assert (history.status, history.result) == ("ended", "stopped")
        assert "needs a C++ compiler" in history.reason and not history.runs
    assert "needs a C++ compiler" in rlgpt(tmp_path / "home", "show", made.folder.id).out
