"""What an imported session may do of itself: nothing that reaches a key of the operator's, or leaves the walls."""

from __future__ import annotations

from typing import Any

import pytest

from rlgpt.store import foreign
from rlgpt.store.settings import settle


@pytest.mark.parametrize(
    ("changes", "reach"),
    [
        ({}, ""),
        ({"llm": {"kind": "openai", "base_url": "http://10.0.0.9/v1"}}, ""),
        (
            {"llm": {"kind": "openai", "base_url": "http://10.0.0.9/v1", "api_key_env": "AWS_SECRET"}},
            "send the value of AWS_SECRET to http://10.0.0.9/v1",
        ),
        (
            {"llm": {"kind": "openai", "roles": {"critic": {"api_key_env": "MINE", "base_url": "https://there/v1"}}}},
            "send the value of MINE to https://there/v1",
        ),
        ({"host_mode": "trusted"}, "run generated code in the mode trusted"),
        ({"world": "os:abort"}, "call os:abort as its world"),
        ({"world": "rlgpt.training.worlds.kitchen.world:make_first_try"}, ""),
    ],
)
def test_what_settings_reach_is_named(changes: dict[str, Any], reach: str) -> None:
    assert foreign.reach_of(settle({"task": "collect_wood", **changes}).model_dump(mode="json")) == reach
