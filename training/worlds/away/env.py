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
STANDING_QUESTIONS: tuple[Question, ...] = (
    ("observe",), ("action_masks",), ("view", False), ("novelty",), ("progress_key",), ("interrupt",), ("waiting",),
    ("succeeded",), ("milestones",),
)  # fmt: skip
"""What the option runner asks after most env steps: asked with every move, so that one message carries both."""
ASK_AHEAD_MOVES = 16
"""A further question is sent along with the moves that follow it, for this many moves: for example the whole view,
which is needed whenever an option begins."""
STEP_TIMEOUT, RESET_TIMEOUT = 240.0, 600.0
"""Seconds to wait for the reply to a step, and to anything else."""
MAX_RESTARTS = 5
"""Restarts of the game without an env step between them. One more loss stops the session."""
FIRST_BACKOFF = 0.25
"""Seconds to wait before the first restart in a row; doubled before each further one."""
WORLD_ERRORS: dict[str, type[Exception]] = {
    "ValueError": ValueError, "UnknownTask": UnknownTask, "WorldFailed": WorldFailed, "UnknownWorld": WorldFailed
}  # fmt: skip
"""Exceptions of the game's side that are raised here again. After any other exception the game counts as lost."""


class AwayEnv:
    """The game may be lost at any time: the env then starts another one and makes all moves of the episode again. If
    the new game answers differently, because the world does not repeat its episodes, the episode is `truncated`.

    `env_arguments` names the env that a game makes: world, task, features, pixels. `version` is the version of the
    world in this process; a game of another version raises `WorldFailed`. `open_channel` starts a game or returns a
    parked one, and raises `GameLost`; `park_channel` takes a game that is free again.
    """

    def __init__(
        self, task: Task, env_arguments: Sequence[Any], version: str, open_channel: Callable[[], Channel],
        park_channel: Callable[[Channel], None], report: Callable[[WorldEvent], None],
    ) -> None:  # fmt: skip
        self.task = task
        self.steps = 0
        self._env_arguments, self._version = env_arguments, version
        self._open_channel, self._park_channel, self._report = open_channel, park_channel, report
        self._channel: Channel | None = None
        self._making_env = False
        """The game was told to make its env and has not replied yet."""
        self._history: list[Move] = []
        """The moves of this episode, the reset first."""
        self._pending_move: Move | None = None
        """The move that was begun and is not finished."""
        self._pending_questions: list[Question] = []
        """The questions of the next or the last message, in the order of their answers."""
        self._awaiting_reply = False
        """A `play` message was sent and its reply not received."""
        self._episode_cut = False
        """The episode could not be repeated in another game."""
        self._failures = 0
        """Games lost since the last env step."""
        self._move_count = 0
        self._answers: dict[Question, Any] = {}
        """Answers about the state after the last move."""
        self._last_asked: dict[Question, int] = {}
        """Question beyond the standing ones -> number of the last move after which it was asked."""
        self._standing_questions = list(STANDING_QUESTIONS)
        with suppress(GameLost):  # the first move starts a game again
            self._start_game()

    def add_parts(self, parts: Sequence[str]) -> None:
        """Add the methods of these optional parts, which the game's env has. They are attributes of the instance
        because `optional_parts.offers` looks for them."""
        if "ending" in parts:
            self.ending = lambda: Ending(*self._ask("ending"))
            self._standing_questions.append(("ending",))
        if "survey" in parts:
            self.survey = lambda: str(self._ask("survey"))
        if "obtained" in parts:
            self.obtained = lambda target: int(self._ask("obtained", target))
        if "reseed" in parts:
            self.reseed = lambda seed: self._perform_move(("reseed", seed))

    # ---- moves --------------------------------------------------------------------------------------
    def begin_reset(self, seed: int) -> None:
        self._begin_move(("reset", seed))

    def reset(self, seed: int) -> None:
        self._episode_cut = False
        self._perform_move(("reset", seed))

    def begin_step(self, command: NativeAction) -> None:
        if not self._episode_cut:
            self._begin_move(("step", command))

    def step(self, command: NativeAction) -> StepResult:
        result: list[Any] | None = None if self._episode_cut else self._perform_move(("step", command))
        if result is None:  # the episode was cut, in this step or before
            return StepResult(0.0, False, True)
        self._failures = 0
        return StepResult(*result)

    def restore(self, state: bytes) -> None:
        self._perform_move(("restore", state))

    def _begin_move(self, move: Move) -> None:
        """Send the move. A loss of the game here is handled in `_complete_exchange`."""
        if self._pending_move is not None:
            raise RuntimeError(f"{self._pending_move[0]} was begun, and then {move[0]}")
        earliest = self._move_count - ASK_AHEAD_MOVES
        recent = [question for question, move_number in self._last_asked.items() if move_number > earliest]
        self._pending_move, self._pending_questions = move, [*self._standing_questions, *recent]
        with suppress(GameLost):
            self._send([move])

    def _perform_move(self, move: Move) -> Any:
        """What the method of the env returned, None where the episode was cut."""
        if self._pending_move is None:
            self._begin_move(move)
        if self._pending_move != move:
            raise RuntimeError(f"{self._pending_move} was begun, and then {move}")
        try:
            result, steps, answers = self._complete_exchange()
        finally:
            self._pending_move = None
        if self._episode_cut:
            return None
        if move[0] == "reset":
            self._history = []
        elif move[0] == "restore":  # the state is exact, so of the earlier moves only the reset is needed
            self._history = self._history[:1]
        self._history.append(move)
        self._move_count += 1
        self.steps, self._answers = steps, dict(zip(self._pending_questions, answers, strict=True))
        return result

    # ---- messages -----------------------------------------------------------------------------------
    def _send(self, moves: Sequence[Move]) -> None:
        if self._channel is not None:
            self._channel.send(pack(["play", moves, self._pending_questions]))
            self._awaiting_reply = True

    def _complete_exchange(self) -> list[Any]:
        """The reply to the pending move and questions: [what the move returned, env steps, answers]. Where the game is
        lost, the same is asked of another one. Raises `WorldFailed` after too many losses in a row."""
        while True:
            try:
                if self._channel is None:
                    self._start_game()
                    if self._pending_move is None or self._pending_move[0] != "reset":
                        self._replay_history()
                    if self._episode_cut and self._pending_move is not None:
                        return [None, self.steps, []]
                if not self._awaiting_reply:
                    self._send([self._pending_move] if self._pending_move else [])
                is_step = self._pending_move is not None and self._pending_move[0] == "step"
                reply = self._receive_reply(STEP_TIMEOUT if is_step else RESET_TIMEOUT)
                self._awaiting_reply = False
                return reply
            except GameLost as loss:
                self._handle_loss(loss)

    def _receive_reply(self, timeout: float) -> list[Any]:
        assert self._channel is not None
        if self._making_env:
            self._receive_parts()
        reply: list[Any] = unpack(self._channel.receive(timeout))
        if reply[0] == "ok":
            return reply[1:]
        names, sentence = reply[1:]
        for name in names:
            if name in WORLD_ERRORS:
                self._awaiting_reply = False
                raise WORLD_ERRORS[name](sentence)
        raise GameLost(f"{self._channel.place}: {names[0]}: {sentence}")

    # ---- the game ----------------------------------------------------------------------------------
    def _start_game(self) -> None:
        self._channel = self._open_channel()
        self._making_env = True
        self._channel.send(pack(["make", *self._env_arguments]))

    def parts(self) -> list[str]:
        """Names of the optional parts that the game's env has (`player.PARTS`). Call it before the first move only."""
        while True:
            try:
                if self._channel is None:
                    self._start_game()
                return self._receive_parts()
            except GameLost as loss:
                self._handle_loss(loss)

    def _receive_parts(self) -> list[str]:
        assert self._channel is not None
        self._making_env = False
        parts, game_version = self._receive_reply(RESET_TIMEOUT)
        if game_version != self._version:
            raise WorldFailed(
                f"The world {self._env_arguments[0]} is version {game_version} where its games run "
                f"({self._channel.place}) and {self._version} here: install the same."
            )
        return list(parts)

    def _replay_history(self) -> None:
        """Make the moves of the episode in a new game. Cuts the episode if its answers differ from the lost game's."""
        assert self._channel is not None
        self._channel.send(pack(["play", self._history, self._standing_questions]))
        answers = self._receive_reply(RESET_TIMEOUT + len(self._history))[2]
        answers_before = [self._answers.get(question) for question in self._standing_questions]
        if self._history and pack(answers) != pack(answers_before):
            self._episode_cut = True
            sentence = "The world does not repeat its episodes, so the one whose game was lost is broken off."
            self._report(WorldEvent("fault", sentence))

    def _handle_loss(self, loss: GameLost) -> None:
        """Report the loss and wait before the next try. Raises `WorldFailed` after too many losses in a row."""
        self._report(WorldEvent("fault", f"The game was lost: {loss}."))
        self._end_channel()
        self._failures += 1
        if self._failures > MAX_RESTARTS:
            raise WorldFailed(f"The game was lost {self._failures} times without an env step; the last time: {loss}.")
        time.sleep(FIRST_BACKOFF * 2 ** (self._failures - 1))
        moves = 0 if self._pending_move and self._pending_move[0] == "reset" else len(self._history)
        sentence = f"It is started again ({self._failures} of {MAX_RESTARTS}); {moves} moves are made again."
        self._report(WorldEvent("restart", sentence))

    def _end_channel(self) -> None:
        channel, self._channel, self._awaiting_reply, self._making_env = self._channel, None, False, False
        if channel is not None:
            channel.end()

    def close(self) -> None:
        """Park the game for the next env, or end it where it still owes a reply."""
        if self._awaiting_reply or self._making_env:
            self._end_channel()
        elif self._channel is not None:
            self._park_channel(self._channel)
            self._channel = None

    # ---- questions ----------------------------------------------------------------------------------
    def _ask(self, *question: Any) -> Any:
        if question not in self._standing_questions:
            self._last_asked[question] = self._move_count
        if question not in self._answers:
            if self._pending_move is not None:
                raise RuntimeError(f"{self._pending_move[0]} was begun, and then {question[0]} asked")
            self._pending_questions = [question]
            self._answers[question] = self._complete_exchange()[2][0]
        return self._answers[question]

    def succeeded(self) -> bool:
        return bool(self._ask("succeeded"))

    def milestones(self) -> frozenset[str]:
        return frozenset(self._ask("milestones"))

    def observe(self) -> NDArray[np.float32]:
        observation: NDArray[np.float32] = self._ask("observe")
        return observation

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
        distance = self._ask("distance", target)
        return None if distance is None else float(distance)

    def frame(self) -> bytes:
        return bytes(self._ask("frame"))

    def save(self) -> bytes:
        return bytes(self._ask("save"))
