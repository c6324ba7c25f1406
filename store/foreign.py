"""Sessions that were made elsewhere, and what of their settings nobody here has agreed to.

An imported session's settings are its author's. Three of them reach what is the operator's own: a variable whose value
is sent as a key, to a server that the settings name too; a way to run generated code without its walls; and a world
that may be any function that Python can import here.
"""

from __future__ import annotations

from pathlib import Path

from rlgpt.store import atomic
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import JsonObject

MARK = "foreign"
"""A file in the session's folder."""


def mark(folder: Path) -> None:
    atomic.write_bytes(folder / MARK, b"")


def is_foreign(folder: Path) -> bool:
    return (folder / MARK).exists()


def danger(folder: Path, settings: JsonObject | None = None) -> str:
    """Why a session may not run yet, as a sentence; empty where it may. `settings`: in place of its own."""
    if not is_foreign(folder):
        return ""
    if settings is None:
        with Reader(folder) as reader:
            settings = reader.history_at(1).session["settings"]
    if not (reach := reach_of(settings)):
        return ""
    return (
        f"session {folder.name} came from elsewhere, and its settings would {reach}: look at them with "
        f"`rlgpt show {folder.name}`, then `rlgpt resume {folder.name} --trust-settings`"
    )


def trust(folder: Path) -> None:
    """Take its settings for the operator's own."""
    (folder / MARK).unlink(missing_ok=True)


def reach_of(settings: JsonObject) -> str:
    """What a foreign session's settings would do, as a sentence's end; empty where nothing is to be agreed to."""
    llm = settings.get("llm") or {}
    parts = [llm, *(role or {} for role in (llm.get("roles") or {}).values())]
    for part in parts:
        if variable := part.get("api_key_env"):
            server = part.get("base_url") or llm.get("base_url") or part.get("provider") or llm.get("provider")
            return f"send the value of {variable} to {server or 'its language model'}"
    if (mode := settings.get("host_mode", "locked")) != "locked":
        return f"run generated code in the mode {mode}"
    world = str(settings.get("world", ""))
    if ":" in world and not world.startswith("rlgpt."):
        return f"call {world} as its world"
    return ""
