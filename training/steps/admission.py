"""Asks the action host whether a source may run, and builds the row of the version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlgpt.agents import choice
from rlgpt.store import tables
from rlgpt.store.history import Attempt, Item
from rlgpt.training.host.api import Admission, Kind
from rlgpt.training.rollouts.dry_views import dry_views
from rlgpt.training.session.runtime import SessionRuntime


def admit(runtime: SessionRuntime, kind: Kind, source: str) -> Admission:
    """The admission of a source in this session's world. The host is asked once per source. A source that killed the
    host is asked about again, since the machine may have been at fault; the host counts how often it happened."""
    key = (kind, source)
    with runtime.admitting:  # a plan is checked while its model is asked, beside the operator's commands
        cached = runtime.admissions.get(key)
        if cached is not None and cached.rule != "killed":
            return cached
        if runtime.task not in runtime.dry:
            runtime.dry[runtime.task] = dry_views(runtime.world, runtime.task, runtime.seed)
        runtime.admissions[key] = runtime.host.admit(kind, source, runtime.dry[runtime.task])
        return runtime.admissions[key]


def admit_again(runtime: SessionRuntime, kind: Kind, source: str) -> Admission:
    """Have the host admit a source again that was admitted before: the host may be a new process that does not know
    it. A source that is refused today is loaded and not run, and the log says why."""
    cached = (kind, source) in runtime.admissions
    admission = admit(runtime, kind, source)
    if not admission.admitted and not cached:
        runtime.log(
            "warning", f"{kind} refused today", source=admission.source_hash, rule=admission.rule,
            line=admission.line, sentence=admission.message,
        )  # fmt: skip
    return admission


def plain(admission: Admission) -> dict[str, Any]:
    return {
        "name": admission.name,
        "rule": admission.rule,
        "line": admission.line,
        "message": admission.message,
        "arguments": {name: list(values) for name, values in admission.arguments.items()},
        "has_available": admission.has_available,
        "ignore_alarm": admission.uninterruptible,
        "tree_hash": admission.tree_hash,
    }


def admit_version(
    runtime: SessionRuntime, item: Item, source: str, *, author: str, attempt: int, note: str, draft: int | None = None,
    why_empty: str = "",
) -> tables.CodeVersion:  # fmt: skip
    """The row of a new version of an item's code, admitted or not. The text is stored, the row is not. `draft`: of its
    attempt, from 1, where several are written. `why_empty`: why nothing came, where no answer could be used."""
    admission = admit(runtime, "action", source)
    history = runtime.history
    fields = plain(admission)
    if why_empty:
        fields["message"] = why_empty
    admitted = admission.admitted
    if admitted and admission.name != item.name:
        admitted = False
        fields |= {
            "rule": "name",
            "line": 1,
            "message": wrong_name(item.name, admission.name),
        }
    if draft:
        fields["draft"] = draft
    same = _same_draft(history.attempts_of(item.name), runtime.writer.text(source), draft or 1)
    if admitted and same:
        admitted = False
        fields |= {"rule": "same", "line": 0, "message": f"it is word for word draft {choice.draft_of(same)}"}
    return tables.CodeVersion(
        sub_task=history.sub_task,
        iteration=history.iteration.number if history.iteration else 0,
        sub_action=item.name,
        version=max((a.version for a in history.attempts_of(item.name)), default=0) + 1,
        attempt=attempt,
        author=author,
        source_hash=runtime.writer.text(source),
        note=note,
        admitted=admitted,
        admission=fields,
    )


def wrong_name(expected: str, name: str) -> str:
    """Why the action of a source, as it was found there, is not the one that was asked for."""
    return (
        f"the generator function must be called {expected}, not {name} "
        "(of several with `view` it is the last one that no other function calls)"
    )


def _same_draft(versions: Sequence[Attempt], source_hash: str, draft: int) -> Attempt | None:
    """The earlier draft of the same attempt that has the same source, if any: a second trial of it would only cost env
    steps."""
    beside = versions[len(choice.before_drafts(versions, draft)) :]
    return next((version for version in beside if version.source_hash == source_hash), None)
