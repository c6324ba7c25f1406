"""What keeps this machine from a Ray cluster is one sentence, and does not take minutes."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys

import pytest

from rlgpt.store.errors import MissingExtra
from rlgpt.training.cluster import connect
from rlgpt.training.cluster.connect import NoCluster
from rlgpt.training.service.__main__ import answer
from tests.ray_cluster import Machines

RAY = importlib.util.find_spec("ray") is not None


def test_without_the_extra_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'rlgpt\[ray\]'"):
        connect.connect("auto")


@pytest.mark.parametrize(
    "address", ["", "host", "host:", "host:0", "host:65536", "host:port", "http://host:1", "ray://", "a b:1", "u@h:1"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(NoCluster, match="is no address of a Ray cluster"):
        connect.checked(address)


@pytest.mark.parametrize("address", ["auto", "host:6379", "ray://host:10001", "10.0.0.1:6379", "[::1]:6379"])
def test_addresses_that_ray_knows_are_taken(address: str) -> None:
    assert connect.checked(address) == address


def test_the_console_is_told_before_a_session_is_made() -> None:
    told = answer(json.dumps({"ask": "cluster_reached", "on": "nowhere", "settings": {}}))
    sentence = "is no address of a Ray cluster" if RAY else "pip install 'rlgpt[ray]'"
    assert sentence in told["error"] and told["exit_code"]


@pytest.mark.ray
@pytest.mark.skipif(not RAY, reason="Ray is not installed (rlgpt[ray])")
@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nothing_answers_is_told(address: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening
        address = address.format(free.getsockname()[1])
        with pytest.raises(NoCluster, match=f"no Ray cluster answers at {address}"):
            connect.connect(address)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.skipif(not RAY, reason="Ray is not installed (rlgpt[ray])")
def test_a_lacking_token_is_told(machines: Machines) -> None:
    """In a process of its own: Ray reads its token once."""
    code = f"from rlgpt.training.cluster.connect import connect; connect({machines.address!r})"
    words = ["env", "-u", "RAY_AUTH_TOKEN", "HOME=/nowhere", "RAY_AUTH_MODE=token", sys.executable, "-P", "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode and "asks for a token: set RAY_AUTH_TOKEN" in done.stderr, done.stderr


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(not RAY, reason="Ray is not installed (rlgpt[ray])")
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_somebody_else_behind_the_port_is_told(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"{scheme}127.0.0.1:{other.getsockname()[1]}"
        code = f"from rlgpt.training.cluster.connect import connect; connect('{address}')"
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode and "something answers at" in done.stderr, done.stderr
