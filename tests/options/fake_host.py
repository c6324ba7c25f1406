"""An action host without a process or a lock: runs hand-written test code in place, with the same answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from typing import Any

from rlgpt.training.host.api import FOLLOW_PLAN, Action, Admission, Answer, Ask, End, Programs, source_hash
from rlgpt.training.worlds.protocol import NativeAction

PLAN_ITEM = 0x8000
Result = tuple[NativeAction | None, End | None, str, int]


class FakeHost:
    mode = "trusted"

    def __init__(self, host_module: str) -> None:
        self.world: Any = import_module(host_module)
        self.enforced: Mapping[str, str] = {}
        self.deaths = 0
        self.messages = 0
        self.asks: list[list[Ask]] = []
        self.quarantined: set[int] = set()
        self.loaded: list[Programs] = []
        self.load(Programs())

    def admit(self, kind: str, source: str, views: Sequence[Sequence[bytes]] = ()) -> Admission:
        return Admission(True, source_hash(source), "action", "", "", 0, "", {}, False, False, source_hash(source))

    def cpu_seconds(self) -> float:
        return 0.0

    def load(self, programs: Programs) -> None:
        self.programs = programs
        self.loaded.append(programs)
        self.names = {key: self._run(source) for key, source in programs.sources.items()}
        self.calls: dict[int, tuple[Generator[object, object, None], int]] = {}
        self.starts: dict[int, object] = {}
        self.views: dict[int, object] = {}
        self.decoders: dict[int, Any] = {}

    def _run(self, source: str) -> dict[str, Any]:
        names = dict(self.world.LIBRARY)
        exec(source, names)
        return names

    def post(self, asks: Sequence[Ask]) -> None:
        self._posted = list(asks)

    def collect(self) -> list[Answer]:
        return self.tick(self._posted)

    def tick(self, asks: Sequence[Ask]) -> list[Answer]:
        self.messages += 1
        self.asks.append(list(asks))
        return [self._answer(ask) for ask in asks]

    def _answer(self, ask: Ask) -> Answer:
        decoder = self.decoders.setdefault(ask.lane, self.world.decoder())
        before = self.views.get(ask.lane)
        view = self.views[ask.lane] = decoder.view(ask.view)
        if ask.episode_start:
            self.starts[ask.lane] = view
        reward = 0.0
        if ask.reward:
            for key in self.programs.rewards:
                reward += self.names[key]["reward"](before, view)
        truths = self._truths(ask.lane, view) if ask.predicates else 0
        available = 0
        if ask.available:
            for index, action in enumerate(self.programs.actions):
                test = self.names[action.source_hash].get("available")
                available |= (test is None or bool(test(view))) << index
        command, end, message, running = self._command(ask, view)
        return Answer(ask.lane, command, end, message, running, truths, available, reward)

    def _truths(self, lane: int, view: object) -> int:
        return sum(self._true(test, lane, view) << bit for bit, test in enumerate(self.programs.predicates))

    def _true(self, test: str, lane: int, view: object) -> bool:
        return bool(eval(test, dict(self.world.LIBRARY), {"start": self.starts.get(lane), "view": view}))

    def _command(self, ask: Ask, view: object) -> Result:
        if ask.open is not None:
            self.calls.pop(ask.lane, None)
            if ask.open in self.quarantined:
                return None, "quarantined", "it killed two hosts", -1
            if ask.open == FOLLOW_PLAN:
                return self._next_item(ask.lane, view)
            return self._open(ask.lane, view, self.programs.actions[ask.open], ask.open)
        if not ask.resume:
            return None, None, "", -1
        _, running = self.calls[ask.lane]
        if running < PLAN_ITEM:
            return self._resume(ask.lane, view)
        if not self._true(self.programs.plan[running - PLAN_ITEM].done_when, ask.lane, view):
            result = self._resume(ask.lane, view)
            if result[1] != "return":
                return result
        return self._next_item(ask.lane, view)

    def _next_item(self, lane: int, view: object) -> Result:
        """A plan goes on to the next sub-action that is not done until one takes an env step."""
        for index, item in enumerate(self.programs.plan):
            if not self._true(item.done_when, lane, view):
                return self._open(lane, view, item.action, PLAN_ITEM + index)
        return None, "return", "", -1

    def _open(self, lane: int, view: object, action: Action, running: int) -> Result:
        names = self.names[action.source_hash]
        ours = {*self.world.LIBRARY, "available", "__builtins__"}
        code = next(value for name, value in names.items() if name not in ours and callable(value))
        self.calls[lane] = (code(view, **dict(action.arguments)), running)
        return self._resume(lane, None)

    def _resume(self, lane: int, view: object) -> Result:
        call, running = self.calls[lane]
        try:
            return self.world.encode(call.send(view)), None, "", running
        except StopIteration:
            end: End = "return"
            message = ""
        except ValueError as error:
            end, message = "bad_yield", str(error)
        except Exception as error:
            end, message = "error", f"{type(error).__name__}: {error}"
        del self.calls[lane]
        return None, end, message, running

    def close(self) -> None:
        pass
