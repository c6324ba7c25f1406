"""What other people's servers do beside refusing: caps, keys in escapes, the room of a role, certificates."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from rlgpt.agents.ahead import Ahead
from rlgpt.agents.backends import OpenAIBackend
from rlgpt.agents.completions import Completion
from rlgpt.agents.dialect import Dialect
from rlgpt.agents.endpoint import Endpoint, without_key
from rlgpt.agents.journal import Call
from rlgpt.agents.refusals import Failure, understood
from rlgpt.agents.responses import in_chat

GROQ = (
    "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the "
    "`context_window` for this model"
)
KEY = "sk-testkey-0123456789abcdefXYZ"


def call(role: Any) -> Call:
    return Call("i", "s", role, "m", json.dumps({"model": "m", "messages": []}), "h", 1, None, 0)


def test_a_cap_that_speaks_of_the_context_too_is_a_cap() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "x" * 30_000}], "max_tokens": 16_000}
    dialect = Dialect()
    assert dialect.learn(f"{understood(request, 400, GROQ, '')}: {GROQ}", request)
    assert dialect.cap(16_000, 30_000) == 8192


def test_a_responses_server_that_knows_no_cap_is_asked_without_one() -> None:
    class Answer(BaseModel):
        a: int

    endpoint, dialect = Endpoint("m", "http://x/v1", api="responses"), Dialect()
    messages = [{"role": "user", "content": "x"}]
    tree = dialect.request(endpoint, messages, 0.0, Answer)
    code = understood(in_chat(tree), 400, {"detail": "Unsupported parameter: max_output_tokens"}, "")
    assert code == "rejected max_completion_tokens" and dialect.learn(f"{code}: x", tree)
    assert "max_output_tokens" in tree and "max_output_tokens" not in dialect.request(endpoint, messages, 0.0, Answer)


def test_a_key_that_comes_back_in_escapes_is_taken_out() -> None:
    """The content of a reply is JSON, which is read once more."""
    whole = "".join(f"\\u{ord(one):04X}" for one in KEY)
    assert without_key(f'{{"a": "{whole} {whole[:6]}{KEY[1:]}"}}', KEY) == '{"a": "[key] [key]"}'


def test_a_reply_of_backslashes_is_looked_through_in_its_length() -> None:
    """A model that is caught in a loop repeats them; to follow each to the end of all would take minutes."""
    text = "\\" * 400_000 + " \\u"
    assert without_key(text, KEY) == text


def test_a_role_that_is_asked_in_its_turn_leaves_the_others_at_its_server_their_room() -> None:
    class Answers:
        def complete(self, *_: object) -> Completion:
            return Completion("{}", "stop", "", "m", 1, 1)

    class Quiet:
        def reserve(self, *_: object) -> None: ...

    roles: Any = {r: Endpoint("m", "http://x/v1", parallel=1) for r in ("planner", "slow", "critic")}
    roles["fast"] = Endpoint("m", "http://x/v1", parallel=8)
    ahead = Ahead(Answers(), Quiet(), {role: roles[role] for role in ("fast", "planner", "slow", "critic")})  # type: ignore[arg-type]
    asking = threading.Thread(target=ahead.ask, args=(roles["fast"], call("fast")), daemon=True)
    asking.start()
    asking.join(60)
    assert not asking.is_alive()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_a_certificate_that_is_not_trusted_is_not_waited_for(tmp_path: Path) -> None:
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*new, "-keyout", "k.pem", "-out", "c.pem"], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            while True:
                line = server.accept()[0]
                with contextlib.suppress(OSError):  # the client goes
                    context.wrap_socket(line, server_side=True)
        except OSError:  # the test is over
            pass

    threading.Thread(target=serve, daemon=True).start()
    url = f"https://127.0.0.1:{server.getsockname()[1]}/v1"
    with pytest.raises(Failure, match=f"the certificate of {url} is not trusted .*SSL_CERT_FILE") as failed:
        OpenAIBackend().complete(Endpoint("m", url, timeout=30), call("slow"))
    server.close()
    assert not failed.value.transient


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@contextlib.contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A server that sends these bytes to everybody who asks anything; its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):  # the test is over
            while True:
                line, _ = server.accept()
                with contextlib.suppress(OSError), line:
                    line.recv(65_536)
                    line.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize(
    ("line", "transient"), [("407 Proxy Authentication Required", False), ("503 Service Unavailable", True)]
)
@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_that_refuses_is_named_and_its_password_is_not_waited_for(
    line: str, transient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(f"HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n".encode()) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        sentence = f"the proxy in front of https://api.example.invalid/v1 answered with {line[:3]}.*HTTPS_PROXY"
        with pytest.raises(Failure, match=sentence) as failed:
            OpenAIBackend().complete(Endpoint("m", "https://api.example.invalid/v1", timeout=30), call("slow"))
    assert failed.value.transient is transient


@pytest.mark.usefixtures("no_proxy")
def test_who_cannot_be_reached_may_be_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with pytest.raises(Failure, match=r"cannot be reached .*; look at HTTP_PROXY in the environment"):
        OpenAIBackend().complete(Endpoint("m", "http://model.example.invalid/v1", timeout=30), call("slow"))


@pytest.mark.parametrize(
    "variables", [{"HTTPS_PROXY": "http://127.0.0.1:9"}, {"HTTP_PROXY": "http://x.invalid:1", "NO_PROXY": "*"}]
)
@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_that_is_not_asked_is_not_named(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Failure, match=r"cannot be reached \([^;]*\)$"):
        OpenAIBackend().complete(Endpoint("m", "http://127.0.0.1:9/v1", timeout=30), call("slow"))


@pytest.mark.usefixtures("no_proxy")
def test_a_body_that_is_not_encoded_as_it_says_is_no_server_that_is_away() -> None:
    body = b"{}"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}"
    with (
        answering(head.encode() + b"\r\n\r\n" + body) as port,
        pytest.raises(Failure, match="answered with a body that is not encoded as it says"),
    ):
        OpenAIBackend().complete(Endpoint("m", f"http://127.0.0.1:{port}/v1", timeout=30), call("slow"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_ORG_ID", "org-abc…"), ("OPENAI_ORG_ID", "org\nabc"), ("OPENAI_PROJECT_ID", "é"),
        ("OPENAI_CUSTOM_HEADERS", "X-A: é"), ("OPENAI_CUSTOM_HEADERS", "X A: b"),
    ],
)  # fmt: skip
def test_a_variable_of_the_account_that_no_header_takes_is_named_and_nothing_is_asked(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(Failure, match=f"the variable {name} holds a letter that no header has") as failed:
        OpenAIBackend().complete(Endpoint("m", "http://127.0.0.1:9/v1", timeout=30, account=True), call("slow"))
    assert not failed.value.transient


def test_headers_of_the_account_that_are_sound_are_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-abc")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: a b\n\nX-Empty:")
    with pytest.raises(Failure, match="cannot be reached"):
        OpenAIBackend().complete(Endpoint("m", "http://127.0.0.1:9/v1", timeout=30, account=True), call("slow"))
