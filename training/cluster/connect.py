"""The connection of this process to a Ray cluster, and what keeps it from one as a sentence.

`ray.init` waits for minutes for an address where nothing answers, and says of a wrong token only that it failed to
connect, so an address is looked at before Ray is asked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from rlgpt.store.errors import MissingExtra, StoreError

Ray = Any
"""The module `ray`, of which mypy knows nothing, because the package is optional."""
EXTRA = "a Ray cluster needs the package ray: install it with `pip install 'rlgpt[ray]'`"
NAMESPACE = "rlgpt"
"""Of all our named actors."""
PATIENCE = 5.0
"""Seconds to wait for somebody to answer at an address."""
GREETING = 20.0
"""Seconds to wait for its first word: a busy head may be slow."""
TOKEN = Path("~/.ray/auth_token")
_ADDRESS = re.compile(r"(?P<client>ray://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@]+):(?P<port>\d{1,5})\Z")


class NoCluster(StoreError):
    """No cluster can be used from here; `str(error)` is one clear sentence."""


class Node(NamedTuple):
    id: str
    host: str
    resources: dict[str, float]
    """CPU, GPU, memory (bytes) and those that `ray start --resources` named."""


def need_extra() -> None:
    """Raises MissingExtra."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra(EXTRA)


def checked(address: str) -> str:
    """`auto`, HOST:PORT or ray://HOST:PORT. Raises NoCluster for anything else."""
    match = _ADDRESS.match(address)
    if address != "auto" and not (match and 0 < int(match["port"]) < 65536):
        raise NoCluster(
            f"{address!r:.200} is no address of a Ray cluster: write auto (on a machine of the cluster), HOST:PORT as "
            "`ray start --head` says it, or ray://HOST:10001"
        )
    return address


def connect(address: str) -> Ray:
    """The module `ray`, connected; a process has one connection, so a second call with any address returns it. SIGTERM
    is Ray's afterwards: set handlers of your own behind this call. Raises MissingExtra, NoCluster."""
    need_extra()
    checked(address)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else a warning; a seat wants no GPU by accident
    if "RAY_AUTH_MODE" not in os.environ and _has_token():
        os.environ["RAY_AUTH_MODE"] = "token"  # a cluster that asks for none takes it too
    import ray

    if ray.is_initialized():
        return ray
    where = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    _need_answer(where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=where, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as error:
        raise NoCluster(_why(where, error)) from error
    return ray


def nodes(ray: Ray) -> list[Node]:
    """Those that live now."""
    return [
        Node(node["NodeID"], node["NodeManagerHostname"], dict(node["Resources"]))
        for node in ray.nodes()
        if node["Alive"]
    ]


def _has_token() -> bool:
    return any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")) or TOKEN.expanduser().exists()


def _need_answer(address: str) -> None:
    match = _ADDRESS.match(address)
    if not match:
        return
    host, port = match["host"].strip("[]"), int(match["port"])
    try:
        speaks = _speaks_grpc(host, port)
    except OSError as error:
        raise NoCluster(
            f"no Ray cluster answers at {address} ({error}): start one with `ray start --head --port=6379`, and look "
            "whether a firewall lets this machine through"
        ) from error
    if not speaks:
        raise NoCluster(
            f"something answers at {address}, but it is no Ray cluster: look whether another port is meant, 6379 for "
            "HOST:PORT, 10001 for ray://HOST:PORT"
        )


def _speaks_grpc(host: str, port: int) -> bool:
    """Whether a server of HTTP/2 greets back (RFC 9113, 3.4), as every Ray head does: of anybody else's port `ray.init`
    says nothing for over ten minutes. Raises OSError where nobody answers."""
    with socket.create_connection((host, port), PATIENCE) as line:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):  # it greets nobody before the handshake
            return True
        try:
            line.settimeout(GREETING)
            line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            return line.recv(9)[3:4] == b"\4"  # a frame of settings
        except OSError:
            return False


def _why(address: str, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = " ".join(lines)[:300].rstrip(".:") if lines else type(error).__name__
    kind = type(error).__name__
    if kind == "AuthenticationError":
        return (
            f"the Ray cluster at {address} asks for a token: set RAY_AUTH_TOKEN, or put the token of its head "
            f"into {TOKEN} ({message})"
        )
    if address == "auto" and kind == "ConnectionError":
        return (
            "no Ray cluster runs on this machine: start one with `ray start --head --port=6379`, join one with "
            "`ray start --address=HOST:6379`, or name its address instead of auto"
        )
    if kind == "ConnectionError":
        return (
            f"something answers at {address}, but it does not let this process into a Ray cluster ({message}). "
            "Either the cluster asks for a token: set RAY_AUTH_MODE=token, and put the token of its head into "
            f"RAY_AUTH_TOKEN or {TOKEN}. Or another port is meant: 6379 for HOST:PORT, 10001 for ray://HOST:PORT"
        )
    return f"the Ray cluster at {address} cannot be used: {message}"
