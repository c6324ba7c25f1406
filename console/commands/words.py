"""Arguments and flags that many commands share, with their completion."""

from __future__ import annotations

from typing import Annotated

import typer


def complete_session(incomplete: str) -> list[str]:
    """Ids and names that begin with what was typed."""
    from rlgpt.store.folder import sessions

    words = (word for session in reversed(sessions()) for word in (session.id, session.name))
    return [word for word in words if word.startswith(incomplete)]


Session = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id or a prefix of it, name, or `last`.", autocompletion=complete_session),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys (docs/json.md).")]
Revision = Annotated[int, typer.Option("--revision", min=1, help="The plan revision you saw; a stale one is refused.")]
