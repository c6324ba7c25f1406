"""One locked host for the tests that leave it as they found it, one of its own for those that do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlgpt.training.host.api import Host
from rlgpt.training.host.client.open_host import open_host
from tests.host.world import WORLD


@pytest.fixture(scope="session")
def shared_host() -> Iterator[Host]:
    host = open_host(WORLD, lanes=16, mode="locked", seed=1)
    yield host
    host.close()


@pytest.fixture(params=["locked", "trusted"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """The same promises hold in the process and in the trainer."""
    host = open_host(WORLD, lanes=16, mode=request.param, seed=1)
    yield host
    host.close()


@pytest.fixture
def locked_host() -> Iterator[Host]:
    host = open_host(WORLD, lanes=16, mode="locked", seed=1)
    yield host
    host.close()
