"""Which nodes of a cluster a session may run on, and why not on the others."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.training.cluster import nodes
from rlgpt.training.cluster.nodes import Found
from rlgpt.training.session.where import installed

HERE = Found(nodes.minor(), installed(nodes.SAME), "x86_64", 10**12, "")


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({}, ""),
        ({"cpu": "aarch64"}, ""),  # other last bits, which the session tells
        ({"python": "3.8"}, "it has Python 3.8, and here is "),
        ({"packages": HERE.packages | {"torch": "1.0"}}, "other versions: torch 1.0 (here "),
        ({"packages": HERE.packages | {"torch": None}}, "torch is missing (here "),
        ({"unlocked": "no seccomp"}, "generated code cannot be locked up there: no seccomp"),
        ({"free": 10**7}, "only 10 MB are free there"),
        ({"keyless": "a key is missing"}, "the environment of its `ray start` must have them: a key is missing"),
    ],
)
def test_a_node_that_does_not_fit_is_told(other: dict[str, Any], sentence: str) -> None:
    said = nodes.fault(HERE._replace(**other))
    assert sentence in said and bool(said) == bool(sentence)


def test_this_machine_fits_itself() -> None:
    assert nodes.fault(nodes.examine("crafter", {})) == ""


def test_what_cannot_be_made_there_is_told() -> None:
    assert "no world called" in nodes.fault(nodes.examine("nowhere", {}))


MODEL = {"kind": "openai", "model": "m", "base_url": "http://models.example/v1"}


def test_a_key_is_looked_for_in_the_environment_of_who_would_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("THEIR_KEY", "secret")
    assert "set OPENAI_API_KEY in the environment" in nodes.keyless({"kind": "openai", "model": "gpt-5-mini"})
    assert "set MISSING_KEY in the environment" in nodes.keyless(MODEL | {"api_key_env": "MISSING_KEY"})
    assert nodes.keyless(MODEL | {"api_key_env": "THEIR_KEY"}) == nodes.keyless(MODEL) == ""
    assert nodes.keyless({"kind": "rules"}) == ""
