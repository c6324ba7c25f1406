"""`compare`: sessions of the store or of bundles, in arms that differ by a setting, paired by seed."""

from __future__ import annotations

import contextlib
import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rlgpt.console.commands import output, record
from rlgpt.console.commands.compare_runs import Run, compared, of_arm, runs_of
from rlgpt.console.commands.failure import Exit, Failure
from rlgpt.console.commands.files import new_file
from rlgpt.console.commands.words import Json, complete_compared, path_from
from rlgpt.console.view.arms import arms_of, is_setting, mixed
from rlgpt.console.view.numbers import count
from rlgpt.store.calls import is_rule_based
from rlgpt.store.catalog import UNREADABLE, find, require_shown, summarised, why_unreadable
from rlgpt.store.errors import BadSchema, NoSession
from rlgpt.store.folder import SessionFolder, root
from rlgpt.store.history import History, Measured
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import JsonObject, LlmCallRow
from rlgpt.store.settings import stored

if TYPE_CHECKING:
    from rlgpt.console.statistics import Interval
    from rlgpt.store.export.svg import Line

SCRIPTED = "RL-GPT loop, scripted planner"
NONE_LEFT = "no session is left to compare: `rlgpt store check` says what is wrong."


def register(app: typer.Typer) -> None:
    app.command()(compare)


def compare(
    sessions: Annotated[
        list[str],
        typer.Argument(
            metavar="SESSION...",
            help="Ids, names, bundles, folders of bundles, or names of experiments.",
            autocompletion=complete_compared,
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(help="Settings that make an arm, such as llm.model; those that differ if left out."),
    ] = None,
    base: Annotated[str | None, typer.Option(help="The arm the others are compared with.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", parser=path_from, help="Write one row a session.")] = None,
    svg_file: Annotated[
        Path | None, typer.Option("--svg", parser=path_from, help="Write training curves over env steps.")
    ] = None,
    png_file: Annotated[
        Path | None, typer.Option("--png", parser=path_from, help="The same as PNG; needs rlgpt[plots].")
    ] = None,
    coverage_file: Annotated[
        Path | None,
        typer.Option(
            "--coverage", parser=path_from, help="Write success over the share of env steps that code covers."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare sessions by their test episodes: intervals over seeds, paired differences, Holm over tasks."""
    from rlgpt.console.commands import compare_coverage, compare_svg

    if Path("-") in (csv_file, svg_file, png_file, coverage_file):
        raise Failure("- is no file: standard output holds the comparison.", Exit.USAGE)
    with contextlib.ExitStack() as stack:
        folders = {folder.id: folder for folder in _opened(sessions, stack)}  # each once: a seed counts once
        damaged: list[str] = []
        sound = [session for folder in folders.values() if (session := _sound(folder, stack, damaged))]
        if not sound:
            raise Failure(NONE_LEFT, Exit.UNAVAILABLE)
        readers, trees = [session.reader for session in sound], [session.settings for session in sound]
        if lost := [key for key in by or () if not is_setting(trees, key)]:
            raise Failure(
                f"there is no setting {lost[0]!r} in these sessions; `rlgpt show ID --json` lists them.", Exit.USAGE
            )
        named = arms_of(trees, by)
        runs = [run for session, arm in zip(sound, named, strict=True) for run in of_arm(session.runs, arm)]
        untested = [session.reader.folder.id for session in sound if not session.runs]
        runs = compared(runs)
        answer = analysed(runs, base) | {"untested": untested, "damaged": damaged, "seeds_again": _seeds_again(runs)}
        answer["mixed"] = [] if by else mixed(trees, named)
        answer["mixed_worlds"] = mixed([session.world for session in sound], named)
        scripted = all(_is_scripted(reader, tree) for reader, tree in zip(readers, trees, strict=True))
        answer["title"] = SCRIPTED if scripted else "RL-GPT"
        drawn = _curves(readers, named) if svg_file or png_file else {}
        if (svg_file or png_file) and not drawn:
            raise Failure("none of these sessions has two updates of PPO: there is no curve to draw.", Exit.USAGE)
        curves = compare_coverage.curves(readers) if coverage_file else {}
        if svg_file:
            _write(svg_file, compare_svg.svg(drawn, "env steps", "success of training episodes"))
        if png_file:
            _write_png(png_file, drawn)
        if coverage_file:
            _write(coverage_file, compare_svg.svg(curves, compare_coverage.UNIT, compare_coverage.WHAT))
    if csv_file:
        from rlgpt.store.export.values import cell

        with new_file(csv_file) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(asdict(runs[0])) if runs else ["id"])
            writer.writeheader()
            writer.writerows({name: cell(value) for name, value in asdict(run).items()} for run in runs)
    if json:
        output.document(answer)
    else:
        _tell(answer)


class _Session(NamedTuple):
    reader: Reader
    settings: JsonObject
    world: JsonObject
    """What sessions may differ in, as code and learning depend on it, though it is no setting."""
    runs: list[Run]


def _sound(folder: SessionFolder, stack: contextlib.ExitStack, damaged: list[str]) -> _Session | None:
    """None for a session whose values no list could show."""
    reader = stack.enter_context(Reader(folder))
    try:
        history = reader.history_at()
        require_shown(summarised(folder.id, history))
        runs = runs_of(reader, history)
    except UNREADABLE as error:
        _leave_out(folder, damaged, error)
        return None
    world = {"task": history.session["task"], "version of the world": history.session["world_version"]}
    return _Session(reader, _settings(folder.id, history), world, runs)


def _leave_out(folder: SessionFolder, damaged: list[str], error: Exception) -> None:
    damaged.append(folder.id)
    why = why_unreadable(folder.path, error)
    output.note(f"left out: {why if folder.id in why else f'session {folder.id}: {why}'}")


def _settings(session: str, history: History) -> JsonObject:
    """A session's, with their usual values where it was made before there were such settings."""
    try:
        return stored(history.session["settings"]).model_dump(mode="json")
    except BadSchema as error:
        raise BadSchema(f"session {session}: {error}") from error


def _is_scripted(reader: Reader, settings: JsonObject) -> bool:
    calls = reader.rows(LlmCallRow, columns=["seq", "model"]) if settings["llm"]["kind"] != "rules" else []
    return is_rule_based(settings["llm"]["kind"], {call["model"] for call in calls})


def _curves(readers: Sequence[Reader], arms: Sequence[str]) -> dict[str, list[Line]]:
    """The curves of success of each task, with the 95% intervals of those over several seeds as bands."""
    from rlgpt.console.view.compare_curves import SUCCESS, arm_curves  # late: numpy comes with it
    from rlgpt.console.view.metrics import SCALARS, MetricTable
    from rlgpt.store.export.svg import Line

    sessions = []
    for reader in readers:
        metrics = MetricTable()
        metrics.extend_scalars(reader.matrix("metric", SCALARS))
        sessions.append((reader.history_at(), metrics))
    tasks: dict[str, list[Line]] = {}
    for curve in arm_curves(SUCCESS, sessions, arms):
        columns = [values.tolist() for values in (curve.x, curve.y, curve.low, curve.high) if values is not None]
        points = [(x, y) for x, y, *_ in zip(*columns, strict=True)]
        band = [(x, low, high) for x, _, low, high in zip(*columns, strict=True)] if len(columns) == 4 else ()
        tasks.setdefault(curve.task, []).append(Line(curve.name, points, band=band))
    return tasks


def analysed(runs: Sequence[Run], base: str | None) -> dict[str, Any]:
    """{tasks: [{task, arms: [...]}], differences: [...], base}. Raises Failure for an unknown base."""
    from rlgpt.console import statistics

    arms = list(dict.fromkeys(run.arm for run in runs))
    if base is not None and base not in arms:
        known = f"there are {', '.join(arms)}" if arms else "none of these sessions has test episodes"
        raise Failure(f"there is no arm {base!r}; {known}.", Exit.NOT_FOUND)
    base = base or ("rlgpt" if "rlgpt" in arms else arms[0] if arms else None)
    tasks, differences = [], []
    for task in dict.fromkeys(run.task for run in runs):
        here = [run for run in runs if run.task == task]
        tasks.append({"task": task, "arms": [_arm(arm, [r for r in here if r.arm == arm]) for arm in arms]})
        for arm in arms:
            ours, theirs = (_by_seed([r for r in here if r.arm == a]) for a in (arm, base))
            seeds = sorted(set(ours) & set(theirs))
            if arm == base or len(seeds) < 2:  # one pair has no interval
                continue
            gain = statistics.paired([ours[s] for s in seeds], [theirs[s] for s in seeds])
            differences.append({"task": task, "arm": arm, "base": base, **gain._asdict()})
            chance = statistics.improvement(_column(ours.values()), _column(theirs.values()))
            differences[-1]["probability_of_improvement"] = chance
    for difference, p in zip(differences, statistics.holm([d["p"] for d in differences]), strict=True):
        difference["p_holm"] = p
    return {"base": base, "tasks": tasks, "differences": differences}


def _by_seed(runs: Sequence[Run]) -> dict[int, float]:
    """Seed -> score; the mean where a seed was run more than once."""
    scores: dict[int, list[float]] = {}
    for run in runs:
        scores.setdefault(run.seed, []).append(run.score)
    return {seed: fmean(several) for seed, several in scores.items()}


def _seeds_again(runs: Sequence[Run]) -> list[str]:
    """Who looks for a difference between seeds must know where the same one was run more than once."""
    counts = Counter((run.task, run.arm, run.seed) for run in runs)
    return [f"{task}, {arm}: {n} sessions of seed {seed}" for (task, arm, seed), n in counts.items() if n > 1]


def _arm(arm: str, runs: Sequence[Run]) -> dict[str, Any]:
    from rlgpt.console import statistics

    facts: dict[str, Any] = {"arm": arm, "seeds": len(runs), "episodes": sum(r.episodes for r in runs)}
    if not runs:
        return facts
    scores = _column(run.score for run in runs)
    mean = _interval(statistics.bootstrap(scores, statistics.mean)) if len(runs) > 1 else None
    scored = runs[0].score_test is not None
    facts |= {"success": None if scored else mean, "score": mean if scored else None}
    alone = runs[0] if len(runs) == 1 and runs[0].score_test is None else None
    facts["within_one_policy"] = record.rate_of(Measured(alone.successes, alone.episodes)) if alone else None
    facts["iqm"] = _interval(statistics.bootstrap(scores, statistics.iqm)) if len(runs) > 1 else None
    facts["dead_loops"] = sum(r.dead_loops for r in runs) / facts["episodes"]
    facts["env_steps"] = sum(r.env_steps for r in runs) / len(runs)
    for name in ("options_off", "primitives_off", "score_test", "score_train"):
        values = [value for run in runs if (value := getattr(run, name)) is not None]
        facts[name] = fmean(values) if values else None
    return facts


def _interval(interval: Interval) -> dict[str, Any]:
    return {"value": interval.value, "ci95": [interval.low, interval.high]}


def _column(scores: Any) -> Any:
    import numpy as np

    return np.array(list(scores), dtype=float)[:, None]


def _opened(words: Sequence[str], stack: contextlib.ExitStack) -> Iterator[SessionFolder]:
    """Sessions of the store by id, name or experiment; bundles are unpacked for as long as the stack is open."""
    from rlgpt.store.bundle import viewed

    for word in words:
        path = Path(word)
        if word and path.is_dir():
            bundles = sorted(found for found in path.glob("**/*.rlgpt") if found.is_file())
            if not bundles:
                raise Failure(f"there is no bundle (*.rlgpt) in the folder {word}.", Exit.NOT_FOUND)
            yield from (stack.enter_context(viewed(bundle)) for bundle in bundles)
        elif path.is_file():
            yield stack.enter_context(viewed(path))
        else:
            yield from _found(word)


def _found(word: str) -> Iterator[SessionFolder]:
    """The session of that name, or those of the experiment of that name that are still there."""
    from rlgpt.store import experiments

    try:
        yield find(word)
    except NoSession:
        if word not in experiments.names():
            raise
        for planned in experiments.load(experiments.path_of(word)).sessions:
            folder = SessionFolder(root() / planned.id)
            if planned.id and folder.path.is_dir():
                yield folder
            else:
                output.note(f"{planned.words}: {'its session is gone' if planned.id else 'not begun'}, left out")


def _write(path: Path, text: str) -> None:
    with new_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _write_png(path: Path, drawn: Mapping[str, Sequence[Line]]) -> None:
    try:
        from rlgpt.console.commands import compare_png
    except ImportError as error:
        raise Failure("a PNG needs matplotlib: pip install 'rlgpt[plots]', or use --svg.", Exit.UNAVAILABLE) from error
    with new_file(path) as partial:
        compare_png.draw(partial, drawn)


def _tell(answer: dict[str, Any]) -> None:
    from rlgpt.console import statistics

    output.say(answer["title"])
    if not answer["tasks"]:
        output.say("none of these sessions has played its test episodes")
    titles = (
        "arm",
        "seeds",
        "episodes",
        "success",
        "IQM",
        "without coded actions",
        "coded actions only",
        "dead loops",
        "env steps",
    )
    for task in answer["tasks"]:
        output.say()
        scored = next((f for f in task["arms"] if f.get("score_test") is not None), None)
        output.say(task["task"] + (": scores in percent" if scored else ""))
        shown = tuple("score" if scored and title == "success" else title for title in titles)
        shown += ("score_train",) if scored else ()
        output.table(shown, [_row(facts)[: len(shown)] for facts in task["arms"] if facts["seeds"]])
    if answer["differences"]:
        output.say()
        output.say(f"paired by seed, against {answer['base']}; p adjusted over all rows (Holm)")
        rows = [
            (
                d["task"],
                d["arm"],
                d["pairs"],
                f"{d['mean']:+.2f} [{d['low']:+.2f}, {d['high']:+.2f}]",
                f"{d['p_holm']:.3f}",
                f"{d['probability_of_improvement']:.2f}",
            )
            for d in answer["differences"]
        ]
        output.table(("task", "arm", "pairs", "difference", "p", "P(improvement)"), rows)
    seeds = [facts["seeds"] for task in answer["tasks"] for facts in task["arms"] if facts["seeds"] > 1]
    if seeds and min(seeds) < max(statistics.COVERED):
        told = ", ".join(f"{share} with {number}" for number, share in statistics.COVERED.items())
        output.note(f"intervals over few seeds are too narrow: of 100 they cover the mean in {told}")
    for again in answer["seeds_again"]:
        output.note(f"{again}: its intervals take them for different seeds")
    for difference in answer["mixed"]:
        output.note(f"{difference}; --by tells them apart")
    for difference in answer["mixed_worlds"]:
        output.note(difference)
    for name in answer["untested"]:
        output.note(f"{name} was not tested and is left out")


def _row(f: dict[str, Any]) -> tuple[object, ...]:
    one = f["within_one_policy"]
    if mean := f["success"] or f["score"]:
        shown = _with_interval(mean)
    elif one:
        shown = _with_interval({"value": one["rate"], "ci95": one["ci95"]}) + " (one policy)"
    else:
        shown = f"{f['score_test']:.2f} (one session)"
    return (
        f["arm"],
        f["seeds"],
        f["episodes"],
        shown,
        _with_interval(f["iqm"]) if f["iqm"] else "",
        "" if f["options_off"] is None else f"{f['options_off']:.2f}",
        "" if f["primitives_off"] is None else f"{f['primitives_off']:.2f}",
        f"{f['dead_loops']:.1%}",
        count(f["env_steps"]),
        "" if f["score_train"] is None else f"{f['score_train']:.1f}",
    )


def _with_interval(estimate: dict[str, Any]) -> str:
    low, high = estimate["ci95"]
    return f"{estimate['value']:.2f} [{low:.2f}, {high:.2f}]"
