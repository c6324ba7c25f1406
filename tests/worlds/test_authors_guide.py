"""The example of docs/worlds.md is a world: what the page says can be done with it is done."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "worlds.md"
WORLD = "line_world:make_world"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("line")
    for name, source in re.findall(r"^```python file=(\S+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        (place / name).write_text(source)
    return place


def rlgpt(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(folder), "RLGPT_HOME": str(folder / "home")}
    command = [sys.executable, "-P", "-m", "rlgpt.console.cli", *words, "--json"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_example_keeps_every_promise(folder):
    answer = rlgpt(folder, "world", "check", WORLD)
    assert answer["ok"] and len(answer["findings"]) > 12


def test_a_coded_action_walks_in_the_example(folder):
    answer = rlgpt(folder, "try", "walk.py", "--world", WORLD)
    assert answer["outcome"] == "episode" and set(answer["yields"]) == {"right"}


def test_every_optional_part_is_in_the_table():
    source = (PAGE.parents[1] / "training" / "worlds" / "optional_parts.py").read_text()
    optional = re.findall(r"class (\w+)\(Protocol\):", source)
    assert len(optional) > 6 and [name for name in optional if f"`{name}`" not in PAGE.read_text()] == []
