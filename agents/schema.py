"""A contract as a strict JSON schema."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_DROPPED = ("default", "title", "minLength", "maxLength")
"""Keywords that strict structured outputs refuse. The reply is validated against the contract all the same, so the
lengths are told in words."""


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
        node = _lengths_in_words(node)
        out = {k: v if k == "properties" else strict(v) for k, v in node.items() if k not in _DROPPED}
        if isinstance(node.get("properties"), dict):
            out["properties"] = {name: strict(part) for name, part in node["properties"].items()}
            out["required"] = list(out["properties"])
            out["additionalProperties"] = False
        return out

    result: dict[str, Any] = strict(schema)
    return result


def _lengths_in_words(node: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(most := node.get("maxLength"), int):
        return node
    told = f"{node.get('description', '')} At most {most:,} characters.".strip()
    return node | {"description": told}
