"""The recorded sessions with a language model can still be played again, whatever has become of the requests since."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlgpt.store.bundle import import_bundle, viewed
from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from rlgpt.store.settings import stored
from tests.end_to_end.conftest import Make

BUNDLES = sorted((Path(__file__).parents[2] / "evidence").glob("llm-*/*.rlgpt"))


def steps(reader: Reader) -> list[str]:
    return [row["step"] for row in reader.rows("llm_call") if row["state"] == "answered"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_a_recorded_session_is_played_again_without_a_network(
    bundle: Path, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLGPT_HOME", str(tmp_path / "home"))
    with viewed(bundle) as folder, Reader(folder) as reader:
        tree = stored(reader.history_at().session["settings"]).model_dump(mode="json")
        asked, before = set(steps(reader)), reader.history_at()
    recorded: SessionFolder = import_bundle(bundle)
    tree["llm"] = tree["llm"] | {"kind": f"replay:{recorded.id}"}
    session = make(tree.pop("task"), loop=tree.pop("loop") | {"test_episodes": 1}, **tree)
    history = session.finish(1000)
    assert history.result == before.result, history.reason
    first, again = (h.iterations[0].evaluations[0] for h in (before, history))
    assert (again.successes, again.episodes, again.funnel) == (first.successes, first.episodes, first.funnel)
    with Reader(session.folder) as reader:
        assert set(steps(reader)) <= asked, "what was never asked cannot have been answered"
        repairs = [row for row in reader.rows("llm_call") if row["state"] == "answered" and _repairs(row["step"])]
        texts = [json.loads(reader.text(row["request_hash"]))["messages"][-1]["content"] for row in repairs]
    assert bool(texts) == any(map(_repairs, asked))
    assert all(re.search(r'text lost_|"refused": |"error": "[^"]', text) for text in texts)


def _repairs(step: str) -> bool:
    ask, *_, version = step.split("/")
    return ask == "write" and int(version) > 1
