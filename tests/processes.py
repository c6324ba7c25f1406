"""Processes as the tests see them."""

from __future__ import annotations

import psutil


def lives(process: int) -> bool:
    """One that has ended but that nobody has waited for is still in the table: init does not do so on every machine."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
