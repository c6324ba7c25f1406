"""The rule-based model behind the real client: an HTTP transport that never leaves the process."""

from __future__ import annotations

import json

import httpx2

from rlgpt.agents.rules.model import respond


class RulesTransport(httpx2.BaseTransport):
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=respond(json.loads(request.read())), request=request)
