"""The command palette: every action, those of the focused pane and the screen first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from rlgpt.console import keymap
from rlgpt.console.shell import shell_of

PANE, SCREEN, OTHER_PANE, LIST, EVERYWHERE, THEME = range(6)
"""Where an action belongs, in the order of the palette."""


class Action(NamedTuple):
    """An entry of the palette. The fields are in sort order: place first, then the footer's order, then the order in
    the table of keys."""

    place: int
    unhinted: bool
    hint: int
    order: int
    name: str
    told: str
    run: Callable[[], object]


def matched(name: str, words: Iterable[str]) -> Content | None:
    """The name with what was searched for marked; None unless every word is in it, as in every list's filter."""
    content = Content(name)
    for word in words:
        start = name.casefold().find(word)
        if start < 0:
            return None
        content = content.stylize("bold underline", start, start + len(word))
    return content


class Actions(Provider):
    async def discover(self) -> Hits:
        for action in self._all():
            yield DiscoveryHit(Content(action.name), action.run, text=action.name, help=action.told)

    async def search(self, query: str) -> Hits:
        words = tuple(dict.fromkeys(query.casefold().split()))  # each once: a paste may say one ten thousand times
        for index, action in enumerate(self._all()):
            shown = matched(action.name, words)
            if shown is None and matched(action.told, words) is not None:
                shown = Content(action.name)
            if shown is not None:
                yield Hit(1.0 - index / 1_000, shown, action.run, text=action.name, help=action.told)

    def _all(self) -> list[Action]:
        names = sorted(self.app.available_themes)
        use_theme = shell_of(self.screen).use_theme
        themes = (
            Action(THEME, False, 0, order, f"Theme {name}", "colours of the console", partial(use_theme, name))
            for order, name in enumerate(names)
        )
        once: dict[int, Action] = {}
        for action in (*self._here(), *self._in_other_panes()):
            once.setdefault(action.order, action)
        return [*sorted(once.values(), key=lambda action: action[:4]), *themes]

    def _here(self) -> Iterable[Action]:
        """What a key would do now."""
        app, places = self.app, {"list": LIST, "app": EVERYWHERE}
        for active in self.screen.active_bindings.values():
            name = active.binding.id
            if active.enabled and name and name != "app.palette":
                near = active.node is not self.screen and active.node is not app
                place = places.get(name.split(".")[0], PANE if near else SCREEN)
                yield self._action(
                    place, name, "", partial(app.call_later, app.run_action, active.binding.action, active.node)
                )

    def _in_other_panes(self) -> Iterable[Action]:
        """What keys would do in panes without the focus; running one shows its pane and gives it the focus."""
        from rlgpt.console.panes.pane import Pane, title
        from rlgpt.console.screens.session import SessionScreen

        screen, app = self.screen, self.app
        if not isinstance(screen, SessionScreen):
            return
        for pane in screen.board.children:
            if pane is screen.focused or not isinstance(pane, Pane):
                continue
            for binding in type(pane).BINDINGS:
                if isinstance(binding, Binding) and binding.id and not binding.id.startswith("list."):

                    def run(pane: Pane = pane, action: str = binding.action) -> None:
                        screen.action_pane(str(pane.id))
                        app.call_later(app.run_action, action, pane)

                    yield self._action(OTHER_PANE, binding.id, f" in {title(str(pane.id))}", run)

    def _action(self, place: int, name: str, where: str, run: Callable[[], object]) -> Action:
        order, key = next((n, key) for n, key in enumerate(keymap.KEYS) if key.id == name)
        hint = f"{name}   {keymap.written(key, shell_of(self.screen).user_keys)}{where}"
        return Action(place, not key.hint, key.hint, order, key.help, hint, run)
