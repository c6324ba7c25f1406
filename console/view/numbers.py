"""Numbers for people: short, of stable width, with their unit; and the interval a rate must carry."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from rlgpt.store.history import Measured
from rlgpt.store.intervals import wilson


def count(value: float | None) -> str:
    """1234 -> 1,234; 123456 -> 123k; 2.5e6 -> 2.50M."""
    if value is None:
        return "–"
    size = abs(value)
    if size < 10_000:
        return f"{value:,.0f}"
    for limit, unit in ((1e6, "k"), (1e9, "M"), (1e12, "G")):
        if size < limit * 0.9995:
            scaled = value / (limit / 1e3)
            return f"{scaled:.3g}{unit}" if abs(scaled) < 1000 else f"{scaled:.0f}{unit}"
    return f"{value:.2e}"


def typed(text: str) -> float:
    """A number as a person types it: 1000000, 1_000_000 or 1,000,000. Raises ValueError, also for the comma of 2,5:
    read over, it would spend 25."""
    if "," in text and not re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?", text.strip()):
        raise ValueError(text)
    return float(text.replace(",", ""))


def many(number: int, thing: str) -> str:
    """1 session, 2 sessions."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def decimal(value: float | None) -> str:
    """About three significant digits, no exponent where people would not write one."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 10_000:
        return count(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.01:
        return (f"{value:.3f}" if size < 1 else f"{value:.2f}").rstrip("0").rstrip(".")
    return f"{value:.1e}"


def duration(seconds: float | None) -> str:
    """7 -> 7s, 75 -> 1m15s, 3700 -> 1h01m, 200000 -> 2d07h."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    whole = int(max(seconds, 0))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def clock(seconds: float) -> str:
    """Position on a timeline: 0:00:00."""
    whole = int(max(seconds, 0))
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def size(octets: float | None) -> str:
    if octets is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if octets < 999.5 or unit == "GB":
            return f"{octets:.0f} {unit}" if unit == "B" or octets >= 100 else f"{octets:.1f} {unit}"
        octets /= 1000
    raise AssertionError("unreachable")


def money(usd: float, unknown: bool = False) -> str:
    """Cost in USD; an unknown price is named and not shown as zero."""
    if unknown:
        return f"≥${usd:.2f} unknown" if usd else "unknown"
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:.2f}"


def percent(rate: float) -> str:
    return f"{100 * rate:.0f}%"


def rate(successes: float, episodes: int, interval: bool = True) -> str:
    """`0.62 [0.48, 0.74] n=50`, or `31/50` where there is no room for the interval."""
    if not episodes:
        return "–"
    if not interval:
        return f"{successes}/{episodes}"
    low, high = wilson(successes, episodes)
    return f"{successes / episodes:.2f} [{low:.2f}, {high:.2f}] n={episodes}"


def measured(m: Measured, interval: bool = True) -> str:
    """The result of some episodes: as `rate`, or `score 59.4% [45.6, 71.8] n=50` where the result is a score."""
    if m.score is None or not m.episodes:
        return rate(m.successes, m.episodes, interval)
    if not interval:
        return f"score {100 * m.score:.1f}%"
    return f"score {100 * m.score:.1f}% [{100 * m.low:.1f}, {100 * m.high:.1f}] n={m.episodes}"


def day_time(at: float) -> str:
    """UTC seconds as local date and time."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def time_of_day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")
