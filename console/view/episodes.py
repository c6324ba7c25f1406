"""The episodes that a session has recorded: of trials, trainings and evaluations, the failing ones first.

Pure. An episode of an evaluation or of a training is a row; one of a trial stands in the trial's row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import count, many
from rlgpt.console.view.text import Entry, Line, Span, fit, has_words, line, spread, width_of
from rlgpt.console.view.words import ENDED, VARIANTS, decision_words, nothing
from rlgpt.store.history import EvaluationState, History, Run, TrialState

TASK = "the task"
"""Where an episode is lost that reached every sub-action and did not do the task."""
WITH_SEED = 64
"""Cells from which on an entry has room for the seed."""
MOST = 150
"""Entries of the pane; those behind are counted, and said."""


class Place(NamedTuple):
    """Names an episode, and its film (`source`, `owner` and `episode` of the table `frame`)."""

    source: str
    """trial | train | dev | test."""
    owner: int
    """Number of the trial or of the evaluation, or the PPO run."""
    episode: int
    """Its place in the range of seeds; of a trial its seed."""


class Episode(NamedTuple):
    place: Place
    variant: str
    """How an evaluation played; "" for others."""
    seed: int
    success: bool
    end: str
    """success | time | death | truncated; of a trial as its row says."""
    cause: str
    """What killed the agent, "" where it lived or nobody knows."""
    env_steps: int
    total: float | None
    """Undiscounted reward; None in trials."""
    reached: tuple[str, ...] | None
    """Sub-actions whose done_when was ever true; None where that was not recorded."""
    lost: str
    """The first sub-action of its plan that it never reached, `TASK` if it reached all; "" if it succeeded or nobody
    knows. Of a trial the sub-action that was tried."""
    last: str
    """The sub-action whose code ran last; "" where none ran or nobody knows."""
    seq: int
    """Of the row that tells of it."""
    film: int | None = None
    """seq of the place of its film; None where none is stored."""
    version: int | None = None
    """Of the code that a trial tried."""
    message: str = ""

    @property
    def ended(self) -> str:
        """How it ended, in a word or two."""
        if self.success:
            return "done"
        return self.cause.replace("_", " ") or ENDED.get(self.end, self.end)

    @property
    def owner(self) -> str:
        """What played it."""
        source, owner, _ = self.place
        if source == "trial":
            return f"trial of {self.lost} v{self.version}"
        if source == "train":
            return f"training, run {owner}"
        variant = "" if self.variant == "full" else f", {VARIANTS.get(self.variant, self.variant)}"
        return f"{source}{variant}"


def of_evaluations(m: Moment, numbers: Collection[int] | None = None) -> Iterator[Episode]:
    """Those of dev and test evaluations, in the order of their rows; `numbers`: of these evaluations only."""
    every = {e.number: e for i in m.history.iterations for e in i.evaluations}
    for row in m.episodes:
        evaluation = every.get(row["owner"]) if row["split"] in ("dev", "test") else None
        if evaluation and (numbers is None or evaluation.number in numbers):
            yield _episode(row, ordered(m.history, evaluation), "" if m.history.scored else TASK)


def lost_at(every: Sequence[Episode]) -> dict[str, Counter[str]]:
    """Where failing episodes are lost, and how they ended there."""
    lost: dict[str, Counter[str]] = {}
    for episode in every:
        if episode.lost:
            lost.setdefault(episode.lost, Counter())[episode.ended] += 1
    return lost


def ordered(h: History, evaluation: EvaluationState) -> tuple[str, ...]:
    """The sub-actions that an evaluation has looked at, in the order of its plan."""
    plan = h.plans.get(evaluation.revision)
    items = [item.name for item in plan.items if item.name in evaluation.funnel] if plan else []
    return (*items, *(name for name in evaluation.funnel if name not in items))


def episodes(m: Moment, failed: bool = False) -> list[Episode]:
    """All of them, failing first, then those that can be watched, then the newest."""
    films = {Place(*film[1:]): film.seq for film in m.films}
    every = (*of_evaluations(m), *_of_trials(m.history), *_of_trainings(m))
    shown = [e._replace(film=films.get(e.place)) for e in every if not (failed and e.success)]
    return sorted(shown, key=lambda e: (e.success, e.film is None, -e.seq, e.place.episode))


def episode_at(m: Moment, place: Place) -> Episode | None:
    """The episode with these frames; None if no row has it."""
    source, owner, _ = place
    if source == "trial":
        tried = (e for e in _of_trials(m.history) if e.place == place)
        return next(tried, None)
    rows = (r for r in m.episodes if (r["split"], r["owner"], r["index"]) == place)
    row = next(rows, None)
    if row is None:
        return None
    every = (e for i in m.history.iterations for e in i.evaluations)
    evaluation = next((e for e in every if source != "train" and e.number == owner), None)
    return _episode(row, ordered(m.history, evaluation) if evaluation else ())


def _episode(row: Mapping[str, Any], order: tuple[str, ...], otherwise: str = TASK) -> Episode:
    """`otherwise`: where an episode is lost in which every sub-action was done; a score's is lost nowhere."""
    success, reached = bool(row["success"]), row.get("reached")
    lost = ""
    if reached is not None and not success:
        lost = next((name for name in order if name not in reached), otherwise)
    return Episode(
        Place(row["split"], row["owner"], row["index"]), row["variant"], row["seed"], success, row["end"],
        row.get("cause") or "", row["env_steps"], row["return"], None if reached is None else tuple(reached), lost,
        row.get("last") or "", row["seq"],
    )  # fmt: skip


def _of_trainings(m: Moment) -> Iterator[Episode]:
    runs = m.history.runs
    for row in m.episodes:
        if row["split"] == "train" and not _superseded(runs.get(row["owner"]), row["seq"]):
            yield _episode(row, ())


def _superseded(run: Run | None, seq: int) -> bool:
    """Whether a resume went back behind this row of a training."""
    return run is not None and any(after < seq < before for after, before in run.hidden)


def _of_trials(h: History) -> Iterator[Episode]:
    for attempt in h.attempts:
        for _, trial in attempt.trials:
            for tried in trial.trials:
                yield _tried(attempt.sub_action, attempt.version, trial, tried)


def _tried(name: str, version: int, trial: TrialState, tried: Mapping[str, Any]) -> Episode:
    needed = bool(tried["arrived"]) and not tried["start_true"]
    won = needed and bool(tried["end_true"])
    return Episode(
        Place("trial", trial.number, tried["seed"]), "", tried["seed"], won, str(tried["end"]),
        str(tried.get("cause") or ""), tried["env_steps"], None, None, name, name if tried["arrived"] else "",
        trial.seq, version=version, message=str(tried["message"]),
    )  # fmt: skip


# ---- what the pane and the command show ------------------------------------------------------------
def chosen(of_session: Sequence[Episode], item: str) -> list[Episode]:
    """The episodes of a sub-action, which were lost there or are trials of its code; all episodes for ""."""
    return [e for e in of_session if not item or e.lost == item]


def lost_there(of_session: Sequence[Episode], item: str) -> list[Episode]:
    """Those that were lost at a sub-action: of the trials of its code the failed ones; all episodes for ""."""
    return [e for e in chosen(of_session, item) if not (item and e.success)]


def found(of_session: Sequence[Episode], item: str, wanted: str) -> list[Episode]:
    """Those of a sub-action that have the `wanted` words of a filter."""
    return [e for e in chosen(of_session, item) if not wanted or has_words(_said(e), wanted)]


def entries(
    every: Sequence[Episode],
    item: str,
    width: int,
    most: int = MOST,
    ended: bool = False,
    played: int = 0,
    wanted: str = "",
    kept: str = "",
) -> list[Entry]:
    """`item`: the sub-action to which the list is narrowed, "" for all. `played`: episodes that the session has, where
    `every` are only the failed ones. `wanted`: what the pane filters by, which episodes behind the first `most` may
    have too. `kept`: key of an entry that stays in the list also behind them."""
    shown = chosen(every, item)
    failing = sum(not e.success for e in shown)
    out = [Entry("head", (fit(_head(shown, failing, item, ended, played), width),), selectable=False)]
    listed = found(every, item, wanted)
    out += [_entry(e, width) for e in listed[:most]]
    if kept and all(entry.key != kept for entry in out):
        out += [_entry(e, width) for e in listed[most:] if _key(e) == kept]
    left = len(listed) - (len(out) - 1)
    if left:
        more = line((f"{left:,} more are not shown; `rlgpt episodes` lists all", "dim"))
        out.append(Entry("more", (fit(more, width),), selectable=False))
    return out


def _head(shown: Sequence[Episode], failing: int, item: str, ended: bool, played: int) -> Line:
    if not shown:
        text = nothing("No episode", ended, "trials, trainings and evaluations play.")
        text = f"None of {many(played, 'episode')} failed." if played else text
        text = f"No episode was lost at {item}." if item else text
        return line((text, "dim"))
    narrowed = line((f" at {item}", "bold")) if item else ()
    watched = sum(e.film is not None for e in shown)
    return (
        *line((many(len(shown), "episode"), "bold")), *narrowed,
        *line((f" · {failing:,} failed", "bad" if failing else "dim"), (f" · {watched:,} can be watched", "dim")),
    )  # fmt: skip


def _entry(e: Episode, width: int) -> Entry:
    mark = Span("✓ ", "ok") if e.success else Span("✗ ", "bad")
    film = Span("▸ " if e.film is not None else "  ", "accent")
    where = f" at {e.lost}" if e.lost and e.place.source != "trial" else ""
    if not where and e.last and not e.success and e.place.source != "trial":
        where = f" in {decision_words(e.last)}"
    ended = (mark, film, (e.ended, "" if e.success else "warn"), where)
    left = line(*ended, (f"  {e.owner}", "dim"), (f"  seed {e.seed}" if width >= WITH_SEED else "", "dim"))
    right = line((f"{count(e.env_steps)} steps", "dim"))
    if width_of(left) + 1 + width_of(right) > width:  # what played it tells more than how long
        left, right = line(*ended), line((e.owner, "dim"))
    words = _said(e)
    return Entry(
        _key(e),
        (spread(left, right, width),),
        search=words,
        yank=f"{words} {e.env_steps} env steps {e.message}".strip(),
        seq=e.seq,
        fields={"film": e.film, "lost": e.lost},
    )


def _key(e: Episode) -> str:
    return "episode:" + ":".join(map(str, e.place))


def _said(e: Episode) -> str:
    """What a filter of the episodes looks into."""
    return f"{e.owner} {e.ended} {e.lost} {e.last} seed {e.seed} {'success' if e.success else 'failed'}"


def tree(e: Episode) -> dict[str, Any]:
    """One element of `rlgpt episodes --json`."""
    source, owner, index = e.place
    return {
        "source": source, "owner": owner, "index": index, "variant": e.variant or None, "seed": e.seed,
        "success": e.success, "end": e.end, "cause": e.cause or None, "env_steps": e.env_steps, "return": e.total,
        "reached": None if e.reached is None else list(e.reached), "lost": e.lost or None, "last": e.last or None,
        "version": e.version, "message": e.message or None, "film": e.film, "seq": e.seq,
    }  # fmt: skip
