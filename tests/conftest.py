"""For all tests: examples that take long on this machine; a PostgreSQL server or a Ray cluster for those that need one.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import shaking
from tests.ray_cluster import Machines
from tests.store.postgres import Server

if shaking.asked():
    shaking.shake_processes()

# How long a generated example takes says something about the machine, nothing about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    if shaking.asked():
        shaking.shake_helpers()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.remove()


@pytest.fixture
def address(server: Server) -> str:
    """Of a store without sessions."""
    from rlgpt.store.shared import admin

    made = server.new_database()
    admin.init(made)
    return made


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """A Ray cluster without nodes that compute."""
    try:
        made = Machines()
    except Exception as error:  # too few ports, shared memory or rights for Ray's own processes
        pytest.skip(f"Ray starts no cluster on this machine: {error}")
    yield made
    made.remove()
