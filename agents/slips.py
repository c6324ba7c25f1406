"""Forgives the small slips of an object that is nearly the reply that was asked for."""

from __future__ import annotations

import copy
import difflib
import functools
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rlgpt.agents.contracts import EXPLAINING

R = TypeVar("R", bound=BaseModel)

_MOST = 2_000
"""Mistakes of an object after which they are no slips."""
_LONGEST_NAME = 100
"""Characters of a field's name that may resemble another's."""


def forgiven(inner: dict[str, Any], contract: type[R]) -> tuple[R | None, str]:
    """The reply without its small slips, if it has no others."""
    tree: Any = inner
    fault = ""
    for _ in range(2):  # what was null may have no default
        try:
            return contract.model_validate(tree), ""
        except ValidationError as invalid:
            fault = fault or "wrong schema: " + mistakes(invalid)
            slips = invalid.errors(include_url=False) if invalid.error_count() <= _MOST else []
            try:
                tree = copy.deepcopy(tree)
            except RecursionError:
                return None, fault
            if not slips or not all(_mended(tree, mistake, contract) for mistake in slips):
                return None, fault
    try:
        return contract.model_validate(tree), ""
    except ValidationError:
        return None, fault


def _mended(tree: Any, mistake: Any, contract: type[BaseModel]) -> bool:
    """Whether this mistake was one that can be forgiven; it is gone from the tree then."""
    *path, name = mistake["loc"] or ("",)
    for part in path:
        if not isinstance(tree, dict | list) or (isinstance(tree, list) and not isinstance(part, int)):
            return False
        if isinstance(tree, dict) and part not in tree:
            return False
        tree = tree[part]
    if not isinstance(tree, dict):
        return False
    if name in EXPLAINING and tree.get(name) is None:
        tree[name] = ""
        return True
    if name not in tree:
        return False
    if mistake["type"] == "extra_forbidden":
        # Among the hyperparameters and alike every field is a decision, which would be lost.
        if (path and isinstance(path[-1], str)) or _meant(str(name), contract, tree):
            return False
    elif tree[name] is not None:
        return False
    del tree[name]
    return True


def _meant(name: str, contract: type[BaseModel], given: dict[str, Any]) -> bool:
    """Whether it looks like the name of a field that is not there."""
    missing = [known for known in _names(contract) if known not in given]
    return len(name) <= _LONGEST_NAME and bool(difflib.get_close_matches(name.lower(), missing, 1, 0.8))


@functools.cache
def _names(contract: type[BaseModel]) -> frozenset[str]:
    """Of every field of the contract and its parts, but those that explain."""
    schema = contract.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return frozenset(known for part in parts for known in part.get("properties", ())) - set(EXPLAINING)


def mistakes(error: ValidationError) -> str:
    """At most eight mistakes, a clause each."""
    clauses = [
        f"{'.'.join(str(part) for part in mistake['loc']) or 'the reply'}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    ]
    more = f"; and {len(clauses) - 8} more" if len(clauses) > 8 else ""
    return "; ".join(clauses[:8]) + more
