"""One self-contained HTML page about a session: what was asked, planned, coded, learnt, concluded. No script.

Everything a model or a world wrote is escaped, and its control characters are made visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from rlgpt.console.commands import record
from rlgpt.console.exports.plot import chart
from rlgpt.console.sanitise import clean, clean_text
from rlgpt.console.view.numbers import count, day_time, money, rate
from rlgpt.store.errors import StoreError
from rlgpt.store.reader import Reader

POINTS = 300
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1120px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;margin:.6em 0}td,th{border:1px solid #ddd;padding:.2em .6em;text-align:left;
vertical-align:top}th{background:#f4f4f4}pre{background:#f7f7f7;padding:.8em;overflow:auto;font-size:13px}
figure{display:inline-block;width:520px;margin:.5em}figcaption{font-weight:600}svg text{font-size:11px;fill:#555}
.code{color:#06c}.rl{color:#a50}.note{color:#666}
"""
CURVES = (
    ("episode return", {"return": "return_mean"}),
    ("episode length (env steps)", {"length": "length_mean"}),
    ("entropy and clip fraction", {"entropy (normalised)": "entropy", "clip fraction": "clip_fraction"}),
    ("KL", {"KL": "kl"}),
    ("explained variance", {"explained variance": "explained_variance"}),
    ("env steps per second", {"rate": "rate"}),
)
Tree = Mapping[str, Any]


def page(reader: Reader) -> str:
    history = reader.history_at()
    w = record.whole(history)
    body = [*_head(w), *_results(w), *_curves(reader, w)]
    for iteration in w["iterations"]:
        body += _iteration(reader, iteration)
    body += _overrides(w)
    title = _safe(f"{w['name']}: {w['task']}")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE}</style></head><body>'
        + "".join(body)
        + "</body></html>\n"
    )


def _head(w: Tree) -> Iterator[str]:
    yield f"<h1>{_safe(w['task'])} <small>{_safe(w['name'])}</small></h1>"
    cost = w["cost"]
    model = "rule-based model (results: RL-GPT loop, scripted planner)" if w["llm"] == "rules" else w["llm"]
    yield _table(
        ("", ""),
        (
            ("session", w["id"]),
            ("world", f"{w['world']} {w['world_version']}"),
            ("model", model),
            ("seed", w["seed"]),
            ("ended", f"{w['status']}: {w['reason']}"),
            ("started", day_time(w["started_at"])),
            ("env steps (trials and training)", count(w["env_steps"])),
            ("language models", f"{cost['calls']} calls, {count(cost['tokens'])} tokens, {_cost(cost)}"),
        ),
    )


def _results(w: Tree) -> Iterator[str]:
    yield "<h2>Results</h2>"
    if not w["test"]:
        yield "<p>The session was not tested: no number of it is a result.</p>"
        return
    rows = [("session's policy", _rate(w["test"]), w["test"]["dead_loops"])]
    rows += [(name.replace("_", " "), _rate(part), part["dead_loops"]) for name, part in _variants(w["test"])]
    yield f"<p>Incumbent: iteration {w['incumbent']['iteration']}, on test seeds, 95% Wilson intervals.</p>"
    yield _table(("policy", "success", "dead loops"), rows)


def _curves(reader: Reader, w: Tree) -> Iterator[str]:
    runs = [run["run"] for iteration in w["iterations"] for run in iteration["training"]]
    if not runs:
        return
    yield "<h2>Training</h2><p class=note>Over env steps, all PPO runs one after the other.</p>"
    for title, columns in CURVES:
        yield chart(
            title, {name: reader.metric_series(runs, column, max_points=POINTS) for name, column in columns.items()}
        )
    names = sorted({name for row in reader.rows("metric", columns=["option_usage"]) for name in row["option_usage"]})
    usage = {name: reader.metric_series(runs, f"option_usage.{name}", max_points=POINTS) for name in names}
    yield chart("decisions per update by option", usage, low=0.0)


def _iteration(reader: Reader, i: Tree) -> Iterator[str]:
    yield f"<h2>Iteration {i['iteration']}</h2>"
    if plan := i["plan"]:
        yield f"<p>Plan revision {plan['revision']} by {_safe(plan['author'])}, executor {_safe(plan['executor'])}: "
        yield f"{_safe(plan['rationale'])}</p>"
        rows = [
            (f"{s['mode']}{' (pinned)' if s['pinned'] else ''}", s["name"], s["goal"], s["reason"], s["done_when"])
            for s in plan["sub_actions"]
        ]
        yield _table(("mode", "sub-action", "goal", "reason", "done when"), rows)
    for attempt in i["attempts"]:
        yield from _attempt(reader, attempt)
    for run in i["training"]:
        yield f"<p>PPO run {run['run']} {_safe(run['state'])}: {count(run['env_steps'])} env steps, "
        yield f"{count(run['decisions'])} decisions, {run['updates']} updates, options "
        yield _safe(", ".join(map(str, run["options"])) or "none") + "</p>"
    rows = [(f"{e['split']}", _rate(e), e["dead_loops"]) for e in i["evaluation"]]
    rows += [
        (f"{e['split']}, {name.replace('_', ' ')}", _rate(part), part["dead_loops"])
        for e in i["evaluation"]
        for name, part in _variants(e)
    ]
    if rows:
        yield _table(("evaluation", "success", "dead loops"), rows)
    if verdict := i["verdict"]:
        yield f"<p><b>Verdict</b> by {_safe(verdict['author'])}: {_safe(verdict['cause'])}</p>"


def _attempt(reader: Reader, a: Tree) -> Iterator[str]:
    measured = a["measured"]
    became = "untried"
    if measured:
        became = f"{measured['outcome']}, {rate(measured['successes'], measured['episodes'])}"
    yield f"<details><summary><code>{_safe(a['sub_action'])}</code> version {a['version']} by {_safe(a['author'])}: "
    yield f"{_safe(became)}</summary>"
    if a["error"]:
        yield f"<p>{_safe(a['error'])}</p>"
    try:
        source = reader.text(a["source_hash"])
    except StoreError:
        source = "(the source was left out of this bundle)"
    yield f"<pre>{escape(clean_text(source))}</pre></details>"


def _overrides(w: Tree) -> Iterator[str]:
    if w["overrides"]:
        rows = [(o["kind"], o["author"], o["state"], o["reason"], o["payload"]) for o in w["overrides"]]
        yield "<h2>Overrides</h2>" + _table(("command", "by", "state", "reason", "what"), rows)


def _variants(evaluation: Tree) -> Iterator[tuple[str, Tree]]:
    return ((k, v) for k, v in evaluation.items() if isinstance(v, dict) and "ci95" in v)


def _rate(part: Tree) -> str:
    return rate(part["successes"], part["episodes"])


def _cost(cost: Tree) -> str:
    return money(cost["known_usd"], cost["usd"] is None)


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{_safe(title)}</th>" for title in titles) if any(titles) else ""
    body = "".join("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _safe(value: object) -> str:
    return escape(clean(str(value)))
