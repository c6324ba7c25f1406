"""An env whose game is played elsewhere; see `protocol.Env`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgpt.training.worlds.away.channel import Channel, GameLost, pack, unpack
from rlgpt.training.worlds.optional_parts import Ending, WorldEvent
from rlgpt.training.worlds.protocol import NativeAction, StepResult, Task, UnknownTask, WorldFailed

Move = tuple[str, Any]
"""A method that changes an env, with its argument."""
Question = tuple[Any, ...]
"""A method that looks at an env, with its arguments."""
ALWAYS: tuple[Question, ...] = (
    ("observe",), ("action_masks",), ("view", False), ("novelty",), ("progress_key",), ("interrupt",), ("waiting",),
    ("succeeded",), ("milestones",),
)  # fmt: skip
"""What the runner asks after most env steps."""
REMEMBERED = 16
"""Moves for which a question that was asked is asked ahead: a whole view is wanted whenever an option begins."""
STEP_TIMEOUT, RESET_TIMEOUT = 240.0, 600.0
RESTARTS = 5
"""In a row, without an env step between them, before the session stops."""
BACKOFF = 0.25
"""Seconds before the first of them; twice as long before each further one."""
RAISED: dict[str, type[Exception]] = {
    "ValueError": ValueError, "UnknownTask": UnknownTask, "WorldFailed": WorldFailed, "UnknownWorld": WorldFailed
}  # fmt: skip
"""What is no fault of the game. After any other exception the game counts as lost."""


class AwayEnv:
    """The game may be lost at any time: another one then makes all moves of the episode again. Where that leads
    elsewhere, because the world does not repeat its episodes, the episode is broken off (`truncated`).

    `made` is what a game is told to make: world, task, features, pixels; `version` the version of the world here.
    """

    def __init__(
        self, task: Task, made: Sequence[Any], version: str, opened: Callable[[], Channel],
        parked: Callable[[Channel], None], report: Callable[[WorldEvent], None],
    ) -> None:  # fmt: skip
        self.task = task
        self.steps = 0
        self._made, self._version = made, version
        self._opened, self._parked, self._report = opened, parked, report
        self._channel: Channel | None = None
        self._making = False
        """The game was told to make its env, and has not answered yet."""
        self._history: list[Move] = []
        """Of this episode."""
        self._begun: Move | None = None
        self._ahead: list[Question] = []
        """What is asked with the move that was begun."""
        self._sent = False
        self._broken = False
        """The episode could not be repeated in another game."""
        self._failures = 0
        self._moves = 0
        self._answers: dict[Question, Any] = {}
        """About this moment."""
        self._asked: dict[Question, int] = {}
        """Question -> number of the last move after which it was asked."""
        self._always = list(ALWAYS)
        with suppress(GameLost):  # the first move meets it
            self._open()

    def add_parts(self, parts: Sequence[str]) -> None:
        """From now on it has these optional parts of an env, as its game's has."""
        if "ending" in parts:
            self.ending = lambda: Ending(*self._ask("ending"))
            self._always.append(("ending",))
        if "survey" in parts:
            self.survey = lambda: str(self._ask("survey"))
        if "obtained" in parts:
            self.obtained = lambda target: int(self._ask("obtained", target))
        if "reseed" in parts:
            self.reseed = lambda seed: self._move(("reseed", seed))

    # ---- moves --------------------------------------------------------------------------------------
    def begin_reset(self, seed: int) -> None:
        self._begin(("reset", seed))

    def reset(self, seed: int) -> None:
        self._broken = False
        self._move(("reset", seed))

    def begin_step(self, command: NativeAction) -> None:
        if not self._broken:
            self._begin(("step", command))

    def step(self, command: NativeAction) -> StepResult:
        given: list[Any] | None = None if self._broken else self._move(("step", command))
        if given is None:  # broken off, just now or before
            return StepResult(0.0, False, True)
        self._failures = 0
        return StepResult(*given)

    def restore(self, state: bytes) -> None:
        self._move(("restore", state))

    def _begin(self, move: Move) -> None:
        """What goes wrong here, `_finish` meets."""
        if self._begun is not None:
            raise RuntimeError(f"{self._begun[0]} was begun, and then {move[0]}")
        recent = [question for question, asked in self._asked.items() if self._moves - asked < REMEMBERED]
        self._begun, self._ahead = move, [*self._always, *recent]
        with suppress(GameLost):
            self._send([move])

    def _move(self, move: Move) -> Any:
        if self._begun is None:
            self._begin(move)
        if self._begun != move:
            raise RuntimeError(f"{self._begun} was begun, and then {move}")
        try:
            given, steps, told = self._finish()
        finally:
            self._begun = None
        if self._broken:
            return None
        if move[0] == "reset":
            self._history = []
        elif move[0] == "restore":  # it is exact, so of what was before only the reset matters
            self._history = self._history[:1]
        self._history.append(move)
        self._moves += 1
        self.steps, self._answers = steps, dict(zip(self._ahead, told, strict=True))
        return given

    # ---- messages -----------------------------------------------------------------------------------
    def _send(self, moves: Sequence[Move]) -> None:
        if self._channel is not None:
            self._channel.send(pack(["play", moves, self._ahead]))
            self._sent = True

    def _finish(self) -> list[Any]:
        """[what the move that was begun gave, env steps, answers], in another game where the first is lost."""
        while True:
            try:
                if self._channel is None:
                    self._open()
                    if self._begun is None or self._begun[0] != "reset":
                        self._repeat()
                    if self._broken and self._begun is not None:
                        return [None, self.steps, []]
                if not self._sent:
                    self._send([self._begun] if self._begun else [])
                is_step = self._begun is not None and self._begun[0] == "step"
                answer = self._received(STEP_TIMEOUT if is_step else RESET_TIMEOUT)
                self._sent = False
                return answer
            except GameLost as lost:
                self._lost(lost)

    def _received(self, timeout: float) -> list[Any]:
        assert self._channel is not None
        if self._making:
            self._take_made()
        answer: list[Any] = unpack(self._channel.receive(timeout))
        if answer[0] == "ok":
            return answer[1:]
        names, sentence = answer[1:]
        for name in names:
            if name in RAISED:
                self._sent = False
                raise RAISED[name](sentence)
        raise GameLost(f"{self._channel.place}: {names[0]}: {sentence}")

    # ---- the game ----------------------------------------------------------------------------------
    def _open(self) -> None:
        self._channel = self._opened()
        self._making = True
        self._channel.send(pack(["make", *self._made]))

    def parts(self) -> list[str]:
        """The optional parts that the game's env has; before its first move only."""
        while True:
            try:
                if self._channel is None:
                    self._open()
                return self._take_made()
            except GameLost as lost:
                self._lost(lost)

    def _take_made(self) -> list[str]:
        assert self._channel is not None
        self._making = False
        parts, theirs = self._received(RESET_TIMEOUT)
        if theirs != self._version:
            raise WorldFailed(
                f"The world {self._made[0]} is version {theirs} where its games run ({self._channel.place}) and "
                f"{self._version} here: install the same."
            )
        return list(parts)

    def _repeat(self) -> None:
        """Bring a new game to where the lost one was."""
        assert self._channel is not None
        self._channel.send(pack(["play", self._history, self._always]))
        told = self._received(RESET_TIMEOUT + len(self._history))[2]
        before = [self._answers.get(question) for question in self._always]
        if self._history and pack(told) != pack(before):
            self._broken = True
            sentence = "The world does not repeat its episodes, so the one whose game was lost is broken off."
            self._report(WorldEvent("fault", sentence))

    def _lost(self, lost: GameLost) -> None:
        """Raises `WorldFailed` unless another try is allowed."""
        self._report(WorldEvent("fault", f"The game was lost: {lost}."))
        self._drop()
        self._failures += 1
        if self._failures > RESTARTS:
            raise WorldFailed(f"The game was lost {self._failures} times without an env step; the last time: {lost}.")
        time.sleep(BACKOFF * 2 ** (self._failures - 1))
        moves = 0 if self._begun and self._begun[0] == "reset" else len(self._history)
        again = f"It is started again ({self._failures} of {RESTARTS}); {moves} moves are made again."
        self._report(WorldEvent("restart", again))

    def _drop(self) -> None:
        channel, self._channel, self._sent, self._making = self._channel, None, False, False
        if channel is not None:
            channel.end()

    def close(self) -> None:
        """Leaves the game to the next env."""
        if self._sent or self._making:
            self._drop()
        elif self._channel is not None:
            self._parked(self._channel)
            self._channel = None

    # ---- questions ----------------------------------------------------------------------------------
    def _ask(self, *question: Any) -> Any:
        if question not in self._always:
            self._asked[question] = self._moves
        if question not in self._answers:
            if self._begun is not None:
                raise RuntimeError(f"{self._begun[0]} was begun, and then {question[0]} asked")
            self._ahead = [question]
            self._answers[question] = self._finish()[2][0]
        return self._answers[question]

    def succeeded(self) -> bool:
        return bool(self._ask("succeeded"))

    def milestones(self) -> frozenset[str]:
        return frozenset(self._ask("milestones"))

    def observe(self) -> NDArray[np.float32]:
        seen: NDArray[np.float32] = self._ask("observe")
        return seen

    def pixels(self) -> NDArray[np.uint8]:
        picture: NDArray[np.uint8] = self._ask("pixels")
        return picture

    def action_masks(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self._ask("action_masks")
        return mask

    def view(self, whole: bool) -> bytes:
        return bytes(self._ask("view", whole))

    def interrupt(self) -> bool:
        return bool(self._ask("interrupt"))

    def waiting(self) -> bool:
        return bool(self._ask("waiting"))

    def progress_key(self) -> int:
        return int(self._ask("progress_key"))

    def novelty(self) -> int:
        return int(self._ask("novelty"))

    def distance(self, target: str) -> float | None:
        far = self._ask("distance", target)
        return None if far is None else float(far)

    def frame(self) -> bytes:
        return bytes(self._ask("frame"))

    def save(self) -> bytes:
        return bytes(self._ask("save"))
