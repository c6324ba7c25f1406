"""Forgives the small slips of an object that is nearly the reply that was asked for: a field that nobody asked for,
null for a default, an explanation that is missing, a field or a choice in another spelling, one object for a list."""

from __future__ import annotations

import copy
import difflib
import functools
import re
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rlgpt.agents.contracts import EXPLAINING

R = TypeVar("R", bound=BaseModel)

_MOST = 2_000
"""Mistakes of an object after which they are no slips."""
_LONGEST_NAME = 100
"""Characters of a field's name that may resemble another's."""
_ROUNDS = 4
"""A slip may hide another: in an object that is put into a list, a field under its right name may be null."""


def forgiven(inner: dict[str, Any], contract: type[R]) -> tuple[R | None, str]:
    """The reply without its small slips, if it has no others."""
    tree: Any = inner
    fault = ""
    for _ in range(_ROUNDS):
        try:
            return contract.model_validate(tree), ""
        except ValidationError as invalid:
            fault = fault or "wrong schema: " + mistakes(invalid)
            slips = invalid.errors(include_url=False) if invalid.error_count() <= _MOST else []
            slips.sort(key=lambda mistake: mistake["type"] != "extra_forbidden")  # it may be what is missing
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
    value = tree[name]
    if mistake["type"] == "extra_forbidden":
        if meant := _same_name(str(name), _fields(contract, path)):
            del tree[name]
            return bool(tree.setdefault(meant, value) == value)
        # Among the hyperparameters and alike every field is a decision, which would be lost.
        if (path and isinstance(path[-1], str)) or _meant(str(name), contract, tree):
            return False
    elif mistake["type"] == "missing":  # it was there under another spelling
        return True
    elif mistake["type"] == "literal_error" and isinstance(value, str):
        allowed = _ALLOWED.findall(mistake["ctx"]["expected"])
        tree[name] = next((one for one in allowed if one.lower() == value.strip().lower()), value)
        return bool(tree[name] != value)
    elif mistake["type"] == "list_type" and isinstance(value, dict):
        tree[name] = [value]
        return True
    elif value is not None:
        return False
    del tree[name]
    return True


_ALLOWED = re.compile("'([^']*)'")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def _same_name(name: str, fields: Collection[str]) -> str:
    """The one field that is spelt like it but for capitals and what stands between words; else empty."""
    same = [field for field in fields if _plain(field) == _plain(name)] if len(name) <= _LONGEST_NAME else []
    return same[0] if len(same) == 1 else ""


def _plain(name: str) -> str:
    return _BETWEEN_WORDS.sub("", name).lower()


def _fields(contract: type[BaseModel], path: Sequence[str | int]) -> Collection[str]:
    """Of the part of the contract at this path."""
    schema = _schema(contract)
    part: dict[str, Any] = schema
    for step in (*path, None):
        part = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        if step is not None:
            part = part.get("items", {}) if isinstance(step, int) else part.get("properties", {}).get(step, {})
    return list(part.get("properties", {}))


def _meant(name: str, contract: type[BaseModel], given: dict[str, Any]) -> bool:
    """Whether it looks like the name of a field that is not there."""
    missing = [known for known in _names(contract) if given.get(known) is None]
    return len(name) <= _LONGEST_NAME and bool(difflib.get_close_matches(name.lower(), missing, 1, 0.8))


@functools.cache
def _names(contract: type[BaseModel]) -> frozenset[str]:
    """Of every field of the contract and its parts, but those that explain."""
    parts = [_schema(contract), *_schema(contract).get("$defs", {}).values()]
    return frozenset(known for part in parts for known in part.get("properties", ())) - set(EXPLAINING)


@functools.cache
def _schema(contract: type[BaseModel]) -> dict[str, Any]:
    return contract.model_json_schema()


def mistakes(error: ValidationError) -> str:
    """At most eight mistakes, a clause each."""
    clauses = [
        f"{'.'.join(str(part) for part in mistake['loc']) or 'the reply'}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    ]
    more = f"; and {len(clauses) - 8} more" if len(clauses) > 8 else ""
    return "; ".join(clauses[:8]) + more
