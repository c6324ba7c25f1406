"""The same console in a browser on this machine: textual-serve behind a guard.

Every request, the WebSocket too, needs the token that only this terminal showed; the WebSocket also needs the
right Origin, and no other Host name is answered (a page elsewhere cannot reach it by rebinding its name).
"""

from __future__ import annotations

import hmac
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from textual_serve.server import Server

from rlgpt.console import signals
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.output import say

HOST = "127.0.0.1"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' "
    "'unsafe-inline'; img-src 'self' data:; connect-src 'self' {websocket}; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Asked(NamedTuple):
    """The parts of a request that the guard checks."""

    path: str
    host: str
    origin: str
    cookie: str
    token: str
    """Of the query, as in the address that was printed."""


class Guard:
    def __init__(self, port: int) -> None:
        self.port = port
        self.token = secrets.token_urlsafe(24)
        self.cookie = f"rlgpt_{port}"
        self.host = f"{HOST}:{port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def address(self) -> str:
        return f"{self.origin}/?token={self.token}"

    def verdict(self, asked: Asked) -> int:
        """200: go on; 303: right token, give the cookie and ask again without it; else the status to answer."""
        if asked.host != self.host:
            return 421
        if asked.origin != self.origin and (asked.origin or asked.path == "/ws"):
            return 403
        if hmac.compare_digest(asked.cookie.encode(), self.token.encode()):
            return 200
        if asked.path == "/" and hmac.compare_digest(asked.token.encode(), self.token.encode()):
            return 303
        return 401


def serve(port: int, words: list[str]) -> int:
    """Serve until Ctrl-C; `words` go to the console of each browser window. Raises Failure for a taken port."""
    _check_free(port)
    signals.end_at_once()
    _Server(Guard(port), words).serve()
    return Exit.OK


class _Server(Server):
    def __init__(self, guard: Guard, words: list[str]) -> None:
        command = shlex.join([sys.executable, "-P", "-m", "rlgpt.console.served", *words])
        page = str(Path(__file__).with_name("page"))
        super().__init__(
            command, host=HOST, port=guard.port, title="rlgpt", public_url=guard.origin, templates_path=page
        )
        self._guard = guard
        self._read_only = "--read-only" in words

    def initialize_logging(self) -> None:
        """The library would log every line in its own colours; errors still reach standard error."""

    async def on_startup(self, app: web.Application) -> None:
        say(f"the console is at {self._guard.address}")
        what = "look at" if self._read_only else "steer"
        say(f"anybody with this address can {what} your sessions; Ctrl-C ends it, sessions go on")

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._check)
        return app

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        status = self._guard.verdict(_credentials(request, self._guard.cookie))
        if status == 303:
            answer: web.StreamResponse = web.Response(status=303, headers={"Location": "/"})
            answer.set_cookie(self._guard.cookie, self._guard.token, httponly=True, samesite="Strict")
            return answer
        if status != 200:
            return web.Response(status=status, text="rlgpt: open the address that `rlgpt serve` printed\n")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(_headers(self._guard.host))
        return answer


def _credentials(request: web.Request, cookie: str) -> Asked:
    return Asked(
        request.path,
        request.headers.get("Host", ""),
        request.headers.get("Origin", ""),
        request.cookies.get(cookie, ""),
        request.query.get("token", ""),
    )


def _headers(host: str) -> Mapping[str, str]:
    return {name: value.format(websocket=f"ws://{host}") for name, value in HEADERS.items()}


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise Failure(f"port {port} is taken: choose another with --port.", Exit.UNAVAILABLE) from error
