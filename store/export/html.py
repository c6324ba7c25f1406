"""One self-contained HTML page of a session: no script, no link, no request. All text of others is escaped."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlgpt.store.atomic import new_file
from rlgpt.store.errors import StoreError
from rlgpt.store.export.svg import Line, chart, printable
from rlgpt.store.folder import Place
from rlgpt.store.history import EvaluationState, History, IterationState, VerdictState
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import MetricRow

LONGEST = 20_000
"""Characters of one text that are shown."""
CURVES = (
    ("Return of training episodes", "return_mean"),
    ("Length of training episodes (env steps)", "length_mean"),
    ("Entropy of the policy (share of the most possible)", "entropy"),
    ("Approximate KL divergence of an update", "kl"),
    ("Explained variance of the value function", "explained_variance"),
    ("Env steps per second", "rate"),
)
STYLE = """
:root{--fg:#1b1f24;--bg:#fff;--soft:#57606a;--rule:#d0d7de;--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;
--c4:#bf3989;--c5:#6e7781}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--soft:#8d96a0;--rule:#30363d;--c0:#58a6ff;
--c1:#f0883e;--c2:#3fb950;--c3:#bc8cff;--c4:#f778ba;--c5:#8b949e}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:72rem;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid var(--rule)}
table{border-collapse:collapse;width:100%;margin:.5rem 0}th,td{text-align:left;padding:.25rem .6rem;vertical-align:top;
border-bottom:1px solid var(--rule)}th{color:var(--soft);font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:1rem}figure{margin:0}
figcaption,.soft,.none,.legend{color:var(--soft)}.legend{list-style:none;display:flex;flex-wrap:wrap;gap:1rem;padding:0;margin:0}
svg{width:100%;height:auto}svg text{font-size:11px;fill:var(--soft)}.grid{stroke:var(--rule)}.mark{stroke:var(--soft);
stroke-dasharray:3 3}circle{fill:var(--bg)}.line{fill:none;stroke-width:1.5}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
li.c0{color:var(--c0)}li.c1{color:var(--c1)}li.c2{color:var(--c2)}li.c3{color:var(--c3)}li.c4{color:var(--c4)}li.c5{color:var(--c5)}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--rule);padding:.6rem;font-size:13px}
"""


def export_html(place: Place, target: Path) -> Path:
    """Write the page to `target`, whole or not at all."""
    with new_file(target) as partial, Reader(place) as reader:
        partial.write_text(page(reader), encoding="utf-8")
    return target


def page(reader: Reader) -> str:
    h = reader.history_at()
    title = f"{h.session['name']}: {h.session['task']}"
    body = [
        f"<h1>{text(title)}</h1>",
        _overview(h),
        _test(h),
        "<h2>Training</h2>",
        _curves(reader, h),
        "<h2>Iterations</h2>",
        *(_iteration(h, i) for i in h.iterations),
        "<h2>Coded actions</h2>",
        _attempts(reader, h),
        "<h2>What people did</h2>",
        _commands(h),
        "<h2>Settings</h2>",
        _details("all settings", json.dumps(h.session["settings"], indent=1)),
        _details("versions", json.dumps(h.session["versions"], indent=1)),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def text(value: object) -> str:
    """Anybody's text as HTML: control and direction characters removed, cut, escaped."""
    plain = printable(str(value))
    cut = plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}\n[{len(plain) - LONGEST} more characters]"
    return html.escape(cut)


def rate(successes: float, episodes: int, low: float | None = None, high: float | None = None) -> str:
    """A success rate with its episodes and, where known, its 95% interval."""
    if not episodes:
        return "-"
    interval = "" if low is None or high is None else f", 95% {low:.2f} to {high:.2f}"
    return f"{successes / episodes:.2f} ({successes}/{episodes}{interval})"


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{text(c)}</td>" for c in row) + "</tr>" for row in rows)
    head = "".join(f"<th>{text(t)}</th>" for t in titles)
    return f"<table><tr>{head}</tr>{body}</table>" if body else "<p class=none>none</p>"


# ---- parts ----------------------------------------------------------------------------------------
def _overview(h: History) -> str:
    settings = h.session["settings"]
    llm = settings.get("llm", {})
    model = {"rules": "rule-based model (no language model)"}.get(
        llm.get("kind"), llm.get("model", llm.get("kind", ""))
    )
    cost = f"{h.spent.cost:.4f} USD" + (" and calls of unknown price" if h.spent.unknown_price else "")
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(h.started_at))
    rows = [
        ("session", h.session["session_id"]),
        ("world", f"{h.session['world']} {h.session['world_version']}"),
        ("planner", model),
        ("seed", settings.get("seed", "")),
        ("result", f"{h.result or h.status}{': ' + h.reason if h.reason else ''}"),
        ("env steps (trials and training)", f"{h.spent.env_steps:,}"),
        ("model calls", f"{h.spent.calls}, {h.spent.tokens:,} tokens, {cost}"),
        ("began, worked", f"{began}, {h.active / 60:.1f} minutes"),
    ]
    if h.nondeterministic:
        rows.append(("not deterministic", "; ".join(h.nondeterministic)))
    return table(("", ""), rows)


def _test(h: History) -> str:
    found = [(i, e) for i in h.iterations for e in i.evaluations if e.split == "test"]
    rows = [(i.number, e.policy, e.variant, _rate(e), f"{e.return_mean:.3g}", e.dead_loops) for i, e in found]
    titles = ("iteration", "policy", "variant", "result", "mean return", "dead loops")
    return f"<h2>Held-out test episodes</h2>{table(titles, rows)}"


def _rate(e: EvaluationState) -> str:
    if e.score is not None and e.score_low is not None and e.score_high is not None:
        return f"score {e.score:.1%} (95% {e.score_low:.1%} to {e.score_high:.1%}, {e.episodes} episodes)"
    return rate(e.successes, e.episodes, e.ci_low, e.ci_high)


def _curves(reader: Reader, h: History) -> str:
    if not h.runs:
        return "<p class=none>no training run</p>"
    marks, start = [], 0.0
    for run in h.runs.values():
        marks.append((start, f"run {run.run}, iteration {run.iteration}"))
        start += run.env_steps
    numbers = list(h.runs)
    if h.scored:
        title, lines = "Score of all training episodes so far", [Line("score", reader.metric_series(numbers, "score"))]
    else:
        title = "Success of training episodes (share, at most 60 stretches)"
        lines = [Line("success", success_shares(reader, h))]
    plots = [chart(title, lines, "env steps", marks, share=True)]
    for title, column in CURVES:
        lines = [Line(column, reader.metric_series(numbers, column, max_points=600))]
        plots.append(chart(title, lines, "env steps", marks))
    names = sorted({slot["name"] for run in h.runs.values() for slot in run.slots if "name" in slot})
    usage = [Line(n, reader.metric_series(numbers, f"option_usage.{n}", max_points=200)) for n in ("primitive", *names)]
    plots.insert(2, chart("Decisions per update by coded action", usage, "env steps", marks))
    return f"<div class=plots>{''.join(plots)}</div>"


def success_shares(reader: Reader, h: History, stretches: int = 60) -> list[tuple[float, float]]:
    """(env steps, successes per episode) pooled over stretches of updates; superseded updates left out."""
    found, start = [], 0
    for number, run in h.runs.items():
        columns = ["seq", "env_steps", "episodes", "successes"]
        rows = reader.rows(MetricRow, {"run": number}, columns=columns)
        rows = [r for r in rows if not any(after < r["seq"] < before for after, before in run.hidden)]
        size = -(-len(rows) * len(h.runs) // stretches) or 1
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            episodes = sum(r["episodes"] for r in part)
            if episodes:
                found.append((start + float(part[-1]["env_steps"]), sum(r["successes"] for r in part) / episodes))
        start += run.env_steps
    return found


def _iteration(h: History, iteration: IterationState) -> str:
    plan = h.plans[iteration.plans[-1]] if iteration.plans else None
    parts = [f"<h3>Iteration {iteration.number}</h3>"]
    if plan:
        made = f"Plan {plan.revision} by {plan.author}, executor {plan.executor}: {plan.rationale}"
        parts.append(f"<p>{text(made)}</p>")
        rows = [(i.name, i.mode, "pinned" if i.pinned else "", i.goal, i.reason, i.done_when) for i in plan.items]
        parts.append(table(("sub-action", "mode", "", "goal", "reason", "done when"), rows))
    dev = [e for e in iteration.evaluations if e.split == "dev"]
    if dev:
        parts.append(table(("dev episodes", "policy", "result"), [(e.variant, e.policy, _rate(e)) for e in dev]))
    if iteration.result:
        parts.append(f"<p>{text(f'Acts: {iteration.result.variant} ({iteration.result.why}).')}</p>")
    if iteration.verdict:
        parts.append(f"<p>{_verdict(iteration.verdict)}</p>")
    return "".join(parts)


def _verdict(verdict: VerdictState) -> str:
    word = "success" if verdict.success else "no success"
    measured = (
        "" if verdict.measured is None else f", measurement says {'success' if verdict.measured else 'no success'}"
    )
    better = f" Better by measurement: {text(verdict.better)}." if verdict.better else ""
    return f"Verdict of the {text(verdict.author)}: {word}{measured}. {text(verdict.cause)}{better}"


def _attempts(reader: Reader, h: History) -> str:
    parts = []
    for attempt in h.attempts:
        trial = attempt.trial
        told = f"{trial.outcome}, {rate(trial.successes, trial.episodes)}" if trial else "not tried"
        head = f"{attempt.sub_action} version {attempt.version} by {attempt.author}: {told}"
        parts.append(_details(head, _source(reader, attempt.source_hash)))
    return "".join(parts) or "<p class=none>none</p>"


def _source(reader: Reader, name: str) -> str:
    try:
        return reader.text(name)
    except StoreError as error:
        return str(error)


def _commands(h: History) -> str:
    rows = [(c.seq, c.author, c.kind, json.dumps(_short(c.payload)), c.state, c.reason) for c in h.commands.values()]
    return table(("row", "who", "command", "what", "state", "reason"), rows)


def _short(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {k: f"{v[:200]}..." if isinstance(v, str) and len(v) > 200 else v for k, v in payload.items()}


def _details(head: str, body: str) -> str:
    return f"<details><summary>{text(head)}</summary><pre>{text(body)}</pre></details>"
