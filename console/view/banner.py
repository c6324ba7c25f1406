"""What needs the operator now, above the panes: a plan or a verdict waited for, a dead or hung worker, the end."""

from __future__ import annotations

from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import duration
from rlgpt.console.view.text import Line, line, wrap
from rlgpt.console.view.words import ROLES, judged, state_of

MOST = 4
"""Lines."""


def lines(m: Moment, width: int, starting: bool = False) -> list[Line]:
    """Nothing when all goes its way. `starting`: the operator asked for a worker and none is there yet."""
    h = m.history
    if not h.session:
        return []
    if not m.live:
        return []
    word, _ = state_of(m)
    if starting and not m.worker.alive:
        return [line(("A worker is being started …", "accent"))]
    if h.status == "ended":
        style = {"failed": "bad", "stopped": "warn"}.get(h.result, "ok")
        more = "  R goes on where it stopped." if h.result in ("stopped", "failed") else ""
        return [
            *wrap(f"{h.result}: {h.reason}.{more}".replace("..", "."), width, style, most=2),
            *_last_words(m, width),
        ]
    if word == "not started":
        text = "No worker runs this session yet: R starts one. What you send it before waits in its inbox."
        return wrap(text, width, "warn", most=2)
    if word == "dead":
        text = "The worker is dead: no process holds the session's lock. Nothing is lost; R starts a worker again."
        return [*wrap(text, width, "bad", most=2), *_last_words(m, width)][:MOST]
    if word == "hung":
        text = (
            f"No progress for {duration(m.now - (m.worker.beat or m.now))} in “{m.worker.what or m.phase}”, longer "
            "than this phase may take. "
            "The worker still holds its lock; Q stops it, `rlgpt stop --now` ends it at once."
        )
        return wrap(text, width, "bad", most=2)
    if outage := _outage(m):
        return wrap(outage, width, "warn", most=2)
    pending = h.pending_plan
    if pending is not None and pending.status == "waiting":
        return wrap(
            f"Plan {pending.revision} waits for you: A makes it active, X rejects it, o edits it.",
            width,
            "warn",
            most=2,
        )
    about = judged(h.waiting_for)
    if about:
        return wrap(f"You are the critic of {about}: look at code and world, then press v.", width, "warn", most=2)
    if h.status == "paused" or h.pause_requested:
        return [
            line(
                (
                    "Paused; p lets it go on." if h.status == "paused" else "It will pause at its next safe point.",
                    "warn",
                )
            )
        ]
    return []


def _outage(m: Moment) -> str:
    """What the newest call died of while it is asked again; empty once anything was answered."""
    tried = [call for call in m.calls[-2:] if call["state"] == "failed"]
    if not tried or m.calls[-1]["state"] == "answered" or m.calls[-1]["step"] != tried[-1]["step"]:
        return ""
    failed = tried[-1]
    role = ROLES.get(str(failed["role"]), str(failed["role"]))
    left = (m.worker.next_try or 0.0) - m.now
    again = f", next in {duration(left)}" if m.calls[-1]["state"] == "failed" and left > 0 else ""
    return f"{failed['model']} gives the {role} no answer, try {failed['try_number']}{again}: {failed['error']}"


def _last_words(m: Moment, width: int) -> list[Line]:
    if not m.deaths:
        return []
    death = m.deaths[-1]
    peak = f", peak memory {death.peak_mb} MB" if death.peak_mb else ""
    words = f"last words ({death.how}{peak}): {death.last_words or 'none'}"
    return wrap(words, width, "dim", most=2)
