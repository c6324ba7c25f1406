"""A contract as a strict JSON schema, and a reply's text as a contract."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

R = TypeVar("R", bound=BaseModel)

_DROPPED = ("default", "title", "minLength", "maxLength")
"""Keywords that strict structured outputs refuse; the reply is validated against the contract all the same."""
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*)\n\s*```", re.DOTALL)


def strict_schema(contract: type[BaseModel]) -> dict[str, Any]:
    """JSON schema with references inlined, every property required, nothing additional."""
    schema = contract.model_json_schema()
    definitions = schema.pop("$defs", {})

    def strict(node: Any) -> Any:
        if isinstance(node, list):
            return [strict(part) for part in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rsplit("/", 1)[1]
            return strict({**definitions[name], **{k: v for k, v in node.items() if k == "description"}})
        out = {k: v if k == "properties" else strict(v) for k, v in node.items() if k not in _DROPPED}
        if isinstance(node.get("properties"), dict):
            out["properties"] = {name: strict(part) for name, part in node["properties"].items()}
            out["required"] = list(out["properties"])
            out["additionalProperties"] = False
        return out

    result: dict[str, Any] = strict(schema)
    return result


def parse(text: str, contract: type[R]) -> tuple[R | None, str]:
    """(reply, "") or (None, what is wrong with it, written for the model)."""
    fenced = _FENCED.search(text)
    for candidate in (text, fenced.group(1) if fenced else "", text[text.find("{") : text.rfind("}") + 1]):
        if not candidate.strip():
            continue
        try:
            tree = json.loads(candidate)
        except (ValueError, RecursionError) as error:
            fault = f"malformed JSON: {error}"
            continue
        try:
            return contract.model_validate(tree), ""
        except ValidationError as invalid:
            return None, "wrong schema: " + _mistakes(invalid)
    return None, fault if text.strip() else "the reply is empty"


def _mistakes(error: ValidationError) -> str:
    """At most eight mistakes, a clause each."""
    clauses = [
        f"{'.'.join(str(part) for part in mistake['loc']) or 'the reply'}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    ]
    more = f"; and {len(clauses) - 8} more" if len(clauses) > 8 else ""
    return "; ".join(clauses[:8]) + more
