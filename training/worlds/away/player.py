"""The side of the game: performs moves with one env and answers questions about it.

A message is `["make", world, task, features, pixels]` or `["play", moves, questions]`; a move is `[method, argument]`,
a question `[method, *arguments]`, both of the env. The answer is `["ok", ...]` or `["error", types, sentence]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlgpt.training.worlds import registry
from rlgpt.training.worlds.away.channel import pack, unpack
from rlgpt.training.worlds.faults import raised_in
from rlgpt.training.worlds.optional_parts import CountsObtained, Reseeds, Surveys, TellsEnding, offers
from rlgpt.training.worlds.protocol import Env, UnknownTask, WorldFailed

MOVES = ("reset", "step", "restore", "reseed")
PARTS = {"ending": TellsEnding, "survey": Surveys, "obtained": CountsObtained, "reseed": Reseeds}
"""Name -> optional part of an env that an `AwayEnv` offers where its game's env does."""


class Player:
    """One game: an env of the world that the first message names."""

    def __init__(self) -> None:
        self._env: Env | None = None
        self._module = ""
        """Package of the world, for the place where its code failed."""

    def answer(self, message: bytes) -> bytes:
        try:
            kind, *arguments = unpack(message)
            answer = self._make(*arguments) if kind == "make" else self._play(*arguments)
            return pack(["ok", *answer])
        except Exception as error:  # an env may raise anything; the worker's side decides what follows
            names = [each.__name__ for each in type(error).__mro__]
            sentence = " ".join(str(error.args[0]).split()) if error.args else ""
            told = isinstance(error, UnknownTask | WorldFailed)  # a sentence for the operator already
            if self._module and not told and (place := raised_in(error, self._module)):
                sentence = f"{sentence} ({place})"
            return pack(["error", names, sentence])

    def _make(self, world: str, task: str, features: Sequence[str] | None, pixels: bool) -> list[Any]:
        if self._env is not None:
            self._env.close()
        module = type(registry.get(world)).__module__
        self._module = module.rpartition(".")[0] or module
        self._env = registry.get(world).make(task, features=features, pixels=pixels)
        return [[name for name, part in PARTS.items() if offers(self._env, part)], registry.get(world).version]

    def _play(self, moves: Sequence[Sequence[Any]], questions: Sequence[Sequence[Any]]) -> list[Any]:
        """[what the last move returned, env steps so far, the answers in the order of the questions]"""
        env = self._env
        assert env is not None, "make comes first"
        result = None
        for method, argument in moves:
            result = getattr(env, method)(tuple(argument) if method == "step" else argument)
        return [result, env.steps, [getattr(env, method)(*arguments) for method, *arguments in questions]]
