"""The packed views of an env, as they are sent to the action host and kept of an episode."""

from __future__ import annotations

from rlgpt.training.worlds.protocol import Env, WorldFailed

VIEW_CAP = 2 << 20
"""Bytes of a view. The views of a dry run are sent together, three dozen of them, to a process that has 256 MiB."""


def packed_view(env: Env, whole: bool) -> bytes:
    """`Env.view`. Raises WorldFailed for what is no bytes, and for one that is too large to be sent."""
    packed: object = env.view(whole)
    if not isinstance(packed, bytes):
        raise WorldFailed(f"view() gave {packed!r:.40} {_moment(env)}; bytes were expected.")
    if len(packed) > VIEW_CAP:
        raise WorldFailed(f"view() gave {len(packed):,} bytes {_moment(env)}; at most {VIEW_CAP:,} can be sent.")
    return packed


def _moment(env: Env) -> str:
    return f"at step {env.steps} of an episode of {env.task.id}"
