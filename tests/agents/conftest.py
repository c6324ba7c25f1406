from __future__ import annotations

import pytest

from rlgpt.agents.client import Client, make_client
from tests.agents.toys import Ledger


@pytest.fixture(scope="module")
def client() -> Client:
    """Of the rule-based model."""
    return make_client({"kind": "rules"}, Ledger(), {})
