"""The command palette: every action that is possible here, those of the focused pane and the screen first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from rlgpt.console import keymap
from rlgpt.console.keymap import Key

_RANKS = {"list": 2, "app": 3}
"""Of scopes: pane and screen before moving in lists, before what is possible everywhere."""


def ordered(keys: Iterable[Key], near: frozenset[str]) -> list[Key]:
    """`near`: ids of the focused pane's keys. In each group first what the footer shows, in its order."""

    def place(key: Key) -> tuple[int, bool, int]:
        return _RANKS.get(key.scope, 0 if key.id in near else 1), not key.hint, key.hint

    return sorted(keys, key=place)


class Actions(Provider):
    async def discover(self) -> Hits:
        for name, told, run in self._all():
            yield DiscoveryHit(Content(name), run, text=name, help=told)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, told, run in self._all():
            if (match := max(matcher.match(name), 0.9 * matcher.match(told))) > 0:
                yield Hit(match, matcher.highlight(name), run, text=name, help=told)

    def _all(self) -> Iterable[tuple[str, str, IgnoreReturnCallbackType]]:
        from rlgpt.console.app import ConsoleApp

        app = self.app
        assert isinstance(app, ConsoleApp)
        possible = {
            active.binding.id: active
            for active in self.screen.active_bindings.values()
            if active.enabled and active.binding.id
        }
        keys = [key for key in keymap.KEYS if key.id in possible and key.id != "app.palette"]
        near = frozenset(
            name for name, active in possible.items() if active.node is not self.screen and active.node is not app
        )
        for key in ordered(keys, near):
            found = possible[key.id]
            run = partial(app.call_later, app.run_action, found.binding.action, found.node)
            yield key.help, f"{key.id}   {keymap.written(key, app.user_keys)}", run
        for name in sorted(app.available_themes):
            yield f"Theme {name}", "colours of the console", partial(app.use_theme, name)
