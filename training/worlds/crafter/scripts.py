"""The script book."""

from __future__ import annotations

from rlgpt.training.worlds.protocol import Script

SCRIPTS: tuple[Script, ...] = ()
