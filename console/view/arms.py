"""What makes sessions seeds of one arm: settings that are the same but for the seed and the name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

OWN = ("name", "seed", "task", "limits")
"""Settings in which sessions of one arm may differ."""
FREE = ("llm.extra.", "llm.roles.", "method.rl.")
"""Groups of settings of which a session has those alone that somebody gave."""
Settings = Mapping[str, Any]


@lru_cache(maxsize=1)
def _defaults() -> tuple[Settings, Collection[str]]:
    """The default of every setting, and the names of settings that are no longer."""
    from rlgpt.store.settings import RETIRED, stored  # late: it brings pydantic

    return stored({"task": ""}).model_dump(mode="json"), RETIRED


def with_defaults(tree: Settings) -> Settings:
    """The settings of a session, with the default of each that there was not when it was made."""

    def over(default: Settings, own: Settings) -> Settings:
        both = ((k, v, default.get(k)) for k, v in own.items())
        nested = {k: over(d, v) for k, v, d in both if isinstance(v, Mapping) and isinstance(d, Mapping)}
        return {**default, **own, **nested}

    defaults, retired = _defaults()
    return over(defaults, {k: v for k, v in tree.items() if k not in retired})


def differing(trees: Sequence[Settings]) -> list[str]:
    """Dotted names of the settings that are not the same in all sessions, but for what a seed is."""
    flat = [dict(_leaves(tree)) for tree in trees]
    names = sorted({name for one in flat for name in one if name.split(".")[0] not in OWN})
    return [name for name in names if len({repr(one.get(name)) for one in flat}) > 1]


def arms_of(trees: Sequence[Settings], by: Sequence[str] | None = None) -> list[str]:
    """The arm of each session: the label that an experiment gave it, else the settings `by`, else those that differ."""
    labels = [str(tree.get("method", {}).get("label") or "") for tree in trees]
    if not by and all(labels):
        return labels
    keys = by or differing(trees)
    return [arm_of(tree, keys) for tree in trees]


def mixed(trees: Sequence[Settings], arms: Sequence[str]) -> list[str]:
    """Of each arm of a task whose sessions differ, in which settings, in words. A setting that one of them does not
    have is older or newer than that session, and says nothing."""
    groups: dict[tuple[str, str], list[Settings]] = {}
    for tree, arm in zip(trees, arms, strict=True):
        groups.setdefault((str(tree.get("task", "")), arm), []).append(tree)
    found = []
    for (task, arm), group in groups.items():
        shared = set.intersection(*(set(dict(_leaves(tree))) for tree in group))
        if keys := [key for key in differing(group) if key in shared or key.startswith(FREE)]:
            found.append(f"{task}, {arm}: its sessions differ in {', '.join(keys)}")
    return found


def is_setting(trees: Sequence[Settings], key: str) -> bool:
    """Whether any of the sessions has it."""
    return any(key in dict(_leaves(tree)) for tree in trees)


def arm_of(tree: Settings, keys: Sequence[str]) -> str:
    flat = dict(_leaves(tree))
    return ", ".join(f"{key}={flat.get(key)}" for key in keys) or "all"


def told(tree: Settings, keys: Sequence[str]) -> str:
    """The settings `keys` of a session in short: the label of its arm first, and nothing of what is not set."""
    flat = {key: value for key, value in _leaves(tree) if key in keys and value is not None}
    label = str(flat.pop("method.label", "") or "")
    return ", ".join([label] * bool(label) + [f"{key}={flat[key]}" for key in keys if key in flat])


def _leaves(tree: Settings, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
