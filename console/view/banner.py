"""What needs the operator now, above the panes: a plan or a verdict waited for, a dead or hung worker, the end."""

from __future__ import annotations

from collections.abc import Mapping

from rlgpt.console.keymap import NO_KEYS, short
from rlgpt.console.view.moment import Moment
from rlgpt.console.view.numbers import duration
from rlgpt.console.view.text import Line, line, wrap
from rlgpt.console.view.words import ROLES, judged, silence, state_of
from rlgpt.store.states import MODEL

MOST = 4
"""Lines."""


def lines(
    m: Moment, width: int, starting: bool = False, keys: Mapping[str, str] = NO_KEYS, read_only: bool = False
) -> list[Line]:
    """Nothing when nothing is needed. `starting`: the operator asked for a worker and none is there yet; `keys`: those
    of the user's keymap; `read_only`: the console sends nothing, so that no key is named."""
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
        again = f"  {short('session.resume', keys)} goes on where it stopped."
        more = again if h.result in ("stopped", "failed") and not read_only else ""
        return [
            *wrap(f"{h.result}: {h.reason.removesuffix('.')}.{more}", width, style, most=2),
            *(_last_words(m, width) if h.result == "failed" else ()),
        ]
    if word == "not started":
        text = (
            f"No worker runs this session yet: {short('session.resume', keys)} starts one. "
            "What you send it before waits in its inbox."
        )
        return wrap("No worker runs this session yet." if read_only else text, width, "warn", most=2)
    if word == "dead":
        again = "" if read_only else f"; {short('session.resume', keys)} starts a worker again"
        text = f"The worker is dead: no process holds the session's lock. Nothing is lost{again}."
        return [*wrap(text, width, "bad", most=2), *_last_words(m, width)][:MOST]
    if word == "hung":
        stops = "" if read_only else f"; {short('session.stop', keys)} stops it, `rlgpt stop --now` ends it at once"
        text = (
            f"No progress for {duration(silence(m))} in “{m.worker.what or m.phase}”, longer "
            f"than this phase may take. The worker still holds its lock{stops}."
        )
        return wrap(text, width, "bad", most=2)
    if outage := _outage(m, "" if read_only else short("session.resume", keys)):
        return wrap(outage, width, "warn", most=2)
    pending = h.pending_plan
    if pending is not None and pending.status == "waiting":
        text = (
            f"Plan {pending.revision} waits for you: {short('session.approve', keys)} makes it active, "
            f"{short('session.reject', keys)} rejects it, {short('session.override', keys)} edits it."
        )
        return wrap(f"Plan {pending.revision} waits for an operator." if read_only else text, width, "warn", most=2)
    about = judged(h.waiting_for)
    if about:
        text = f"You are the critic of {about}: look at code and world, then press {short('session.verdict', keys)}."
        return wrap(f"The verdict on {about} waits for an operator." if read_only else text, width, "warn", most=2)
    if h.status == "paused" or h.pause_requested:
        paused = "Paused." if read_only else f"Paused; {short('session.pause', keys)} lets it go on."
        return [line((paused if h.status == "paused" else "It will pause at its next safe point.", "warn"))]
    return []


def _outage(m: Moment, resume: str) -> str:
    """What the newest call died of while it is asked again, at once by the key `resume` if there is one; empty once
    anything was answered."""
    tried = [call for call in m.calls[-2:] if call["state"] == "failed"]
    if not tried or m.calls[-1]["state"] == "answered" or m.calls[-1]["step"] != tried[-1]["step"]:
        return ""
    failed = tried[-1]
    role = ROLES.get(str(failed["role"]), str(failed["role"]))
    left = (m.worker.next_try or 0.0) - m.now
    again = f", next in {duration(left)}" if m.calls[-1]["state"] == "failed" and left > 0 else ""
    again += f" ({resume}: now)" if again and resume and m.history.waiting_for == MODEL else ""
    return f"{failed['model']} gives the {role} no answer, try {failed['try_number']}{again}: {failed['error']}"


def _last_words(m: Moment, width: int) -> list[Line]:
    if not m.deaths:
        return []
    death = m.deaths[-1]
    peak = f", peak memory {death.peak_mb} MB" if death.peak_mb else ""
    words = f"last words ({death.how}{peak}): {death.last_words or 'none'}"
    return wrap(words, width, "dim", most=2)
