"""What the operator put into RL configurations: `method.rl` of the settings."""

from __future__ import annotations

from pydantic import ValidationError

from rlgpt.agents.contracts import RlConfigReply, with_fields
from rlgpt.agents.errors import UnusableFields
from rlgpt.store.row_types import JsonObject


def with_operators(config: RlConfigReply, fields: JsonObject) -> RlConfigReply:
    """The configuration with these fields in place of its own. Raises UnusableFields, whose sentence names the first
    that cannot be."""
    try:
        return with_fields(config, fields)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        place = ".".join(map(str, wrong["loc"]))
        raise UnusableFields(f"method.rl.{place}: {wrong['msg']} (got {wrong['input']!r:.60})") from error
