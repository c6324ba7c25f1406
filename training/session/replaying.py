"""What a replay must have in common with the session whose answers it gives again (`--llm replay:ID`)."""

from __future__ import annotations

from functools import reduce
from typing import Any

from rlgpt.store.catalog import find
from rlgpt.store.errors import StoreError
from rlgpt.store.reader import Reader
from rlgpt.store.settings import Settings, stored

REPLAY = "replay:"
"""Before the id of a recorded session, in `llm.kind`."""
SAME = (
    "task", "world", "seed", "observation", "critic", "method.arm", "method.reward", "method.plan", "method.rl",
    "method.uncoded", "loop.iterations", "loop.inner", "loop.candidates", "loop.depth", "loop.target",
)  # fmt: skip
"""Settings on which requests depend. Where the words of requests have changed since, an answer is known by its step
alone: then only these tell whether it was given to the same question."""


class OtherQuestions(StoreError):
    """A replay that would ask something else than what the recorded session was asked."""


def recorded_of(settings: Settings) -> Reader | None:
    """A reader of the session that is replayed, None where nothing is. Raises NoSession."""
    kind = settings.llm.kind
    return Reader(find(kind.removeprefix(REPLAY))) if kind.startswith(REPLAY) else None


def require_same_questions(settings: Settings) -> None:
    """Raises OtherQuestions where the recorded session has another task or another of SAME, NoSession, BadSchema."""
    reader = recorded_of(settings)
    if reader is None:
        return
    with reader:
        recorded = stored(reader.history_at().session["settings"])
    other = [
        f"{name} {_shown(theirs)}, not {_shown(ours)}"
        for name in SAME
        if (theirs := _setting(recorded, name)) != (ours := _setting(settings, name))
    ]
    if other:
        raise OtherQuestions(
            f"session {reader.folder.id} was recorded with {'; '.join(other)}: its answers are to other questions"
        )


def _setting(settings: Settings, name: str) -> Any:
    return reduce(getattr, name.split("."), settings)


def _shown(value: Any) -> str:
    return f"{value!r:.60}" if isinstance(value, dict | tuple) else str(value)
