from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from rlgpt.console.commands.failure import Exit
from rlgpt.console.serve import Asked, Guard
from tests.patience import PATIENCE


@pytest.fixture
def guard() -> Guard:
    return Guard(8000)


def asked(guard: Guard, **other: str) -> Asked:
    right = Asked("/ws", guard.host, guard.origin, guard.token, "")
    return right._replace(**other)


def test_the_right_cookie_host_and_origin_pass(guard: Guard) -> None:
    assert guard.verdict(asked(guard)) == 200
    assert guard.verdict(asked(guard, path="/static/x.js", origin="")) == 200


def test_the_printed_address_gives_the_cookie_and_only_there(guard: Guard) -> None:
    assert guard.verdict(asked(guard, path="/", origin="", cookie="", token=guard.token)) == 303
    assert guard.verdict(asked(guard, cookie="", token=guard.token)) == 401


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"cookie": ""}, 401),
        ({"cookie": "x" * 32}, 401),
        ({"cookie": "é"}, 401),
        ({"path": "/", "cookie": "", "token": "wrong", "origin": ""}, 401),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example", "path": "/"}, 403),
        ({"host": "evil.example:8000"}, 421),
        ({"host": "localhost:8000"}, 421),
        ({"host": "127.0.0.1:9000"}, 421),
    ],
)
def test_anything_else_is_refused(guard: Guard, change: dict[str, str], status: int) -> None:
    assert guard.verdict(asked(guard, **change)) == status


def test_every_guard_has_its_own_token() -> None:
    assert Guard(8000).token != Guard(8000).token


def serving() -> tuple[subprocess.Popen[str], str, int]:
    """A server, its address and its port; another may take a free port before the server does."""
    for _ in range(10):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        words = [sys.executable, "-P", "-c", "from rlgpt.console.cli import main; main()", "serve", "--port", str(port)]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        assert server.stdout is not None
        if found := re.search(r"http://\S+", server.stdout.readline()):
            return server, found[0], port
        assert server.wait() == Exit.UNAVAILABLE, "it ended for another reason than a taken port"
    raise AssertionError("no port was free")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    server, printed, port = serving()
    deadline = time.monotonic() + 20 * PATIENCE
    while True:  # the address is printed a moment before the port is open
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    yield printed
    server.terminate()
    server.wait(timeout=10 * PATIENCE)


async def test_a_browser_with_the_address_sees_the_console_and_one_without_sees_nothing(address: str) -> None:
    origin = address.split("/?")[0]
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(origin)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as browser, aiohttp.ClientSession() as stranger:
        async with browser.get(address) as page:
            assert page.status == 200 and "token" not in str(page.url)
            assert "default-src 'self'" in page.headers["Content-Security-Policy"]
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await stranger.ws_connect(f"{origin}/ws", origin=origin)
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await browser.ws_connect(f"{origin}/ws", origin="http://evil.example")
        async with browser.ws_connect(f"{origin}/ws?width=100&height=30", origin=origin) as socket:
            shown = ""
            while "essions" not in shown:
                message = await socket.receive(timeout=100)
                assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), shown
                if message.type is aiohttp.WSMsgType.BINARY:
                    shown += message.data.decode(errors="replace")


async def test_the_page_asks_no_other_host_for_anything(address: str) -> None:
    origin = address.split("/?")[0]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(address) as answer:
            page = await answer.text()
        seen = {"/": page}
        found = [a or b for a, b in re.findall(r"""(?:src|href)=["']([^"']+)|url\(["']?([^"')]+)""", page)]
        assert len(found) >= 4
        for place in found:
            assert place.startswith((f"{origin}/", "data:")), place
            if place.startswith("data:"):
                continue
            async with browser.get(place) as answer:
                assert answer.status == 200, place
                body = await answer.read()
            if place.endswith((".css", ".js")):
                seen[place] = body.decode()
    for place, text in seen.items():
        others = text.replace(origin, "")
        asked = re.findall(r"""@import|(?:src|href)=["']?https?:|url\(["']?(?:https?:)?//|fetch\(["']http""", others)
        assert not asked, place
