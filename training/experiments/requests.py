"""Answers the console's questions about an experiment.

A request is {kind, name, tasks, arms, seeds: [...], settings: tree, jobs, to}.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rlgpt.store.bundle import export_bundle
from rlgpt.store.errors import StoreError
from rlgpt.store.experiments import FILE, Manifest, load
from rlgpt.training.experiments.bill import bill, measured_rate
from rlgpt.training.experiments.declared import declare
from rlgpt.training.experiments.running import Known, folder_of, is_gone, known, require_same_settings
from rlgpt.training.session.creation import REFUSED, UNAVAILABLE, CannotCreate, task_info
from rlgpt.training.worlds import registry

Request = Mapping[str, Any]


def declared(request: Request) -> Manifest:
    """Raises Undeclared, NoExperiment, Refused, CannotCreate, UnknownWorld."""
    base = dict(request["settings"])
    manifest = declare(
        request["kind"], request["name"], base, request["tasks"], request["seeds"], request.get("arms", ())
    )
    asked_for = str(base.get("world", "crafter"))
    world = registry.get(asked_for)
    for task in dict.fromkeys(p.task for p in manifest.sessions):
        task_info(world, task, asked_for)
    return manifest


def bill_of(request: Request) -> dict[str, Any]:
    """What is left to run, and what it will cost."""
    manifest = declared(request)
    every = [known(planned) for planned in manifest.sessions]
    left = [(k.planned, k.settings, k.env_steps) for k in every if not k.over]
    document: dict[str, Any] = {"name": manifest.name, "about": manifest.about, "declared": len(every)}
    document["tasks"] = list(dict.fromkeys(p.task for p in manifest.sessions))
    document["arms"] = list(dict.fromkeys(p.arm for p in manifest.sessions))
    document["seeds"] = list(dict.fromkeys(p.seed for p in manifest.sessions))
    document["gone"] = [p.id for p in manifest.sessions if is_gone(p)]
    document["failed"] = failures_of(every)
    document["llm"] = every[0].settings.llm.kind
    if left:
        require_same_settings(every)
        document |= bill(left, request["jobs"], measured_rate(every[0].settings))
    else:
        document["sessions"] = 0
    return document


def failures_of(every: Sequence[Known]) -> list[str]:
    """They are not run again by themselves: what made them fail may do so again, at the same cost."""
    return [f"{k.planned.id} ({k.planned.words})" for k in every if k.status == "failed"]


def need_folder(request: Request) -> str:
    """The folder for the bundles, made if it is not there. Raises CannotCreate where nothing can be written into it, or
    the evidence of another experiment is there: asked before the sessions run, which may take days."""
    target = Path(request["to"])
    try:
        target.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target).close()
    except OSError as error:
        raise CannotCreate(f"{target} cannot be written: {error.strerror}", UNAVAILABLE) from error
    if (target / FILE).exists():
        kept, ours = load(target / FILE), declared(request)
        settings = {(p.task, p.arm, p.seed): p.settings for p in ours.sessions}
        if kept.name != ours.name or any(settings.get((p.task, p.arm, p.seed)) != p.settings for p in kept.sessions):
            sentence = f"{target} holds other sessions, of experiment {kept.name}: choose another folder"
            raise CannotCreate(sentence, REFUSED)
    return str(target)


def write_bundles(request: Request) -> dict[str, Any]:
    """Bundles for a claim: TASK-ARM-SEED.rlgpt beside the declaration; those that are there already are replaced."""
    manifest = declared(request)
    require_same_settings(map(known, manifest.sessions))
    target = Path(need_folder(request))
    written: list[str] = []
    refused: list[StoreError] = []
    for planned in manifest.sessions:
        if planned.id and known(planned).over:
            # a task of a world may be called anything, such as ../reach
            name = f"{quote(planned.task, safe='')}-{planned.arm.replace(' ', '_')}-{planned.seed}.rlgpt"
            try:
                written.append(str(export_bundle(folder_of(planned), target / name, evidence=True)))
            except StoreError as error:
                refused.append(error)
    manifest.write(target / FILE)
    if refused:  # the others are there
        raise refused[0]
    return {"written": written, "missing": len(manifest.sessions) - len(written)}
