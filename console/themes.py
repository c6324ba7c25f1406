"""The console's own themes; Textual's are there as well."""

from __future__ import annotations

from textual.theme import Theme

THEMES = (
    Theme(
        name="rlgpt-dark",
        primary="#5aa9e6",
        secondary="#7fc8f8",
        accent="#ffb454",
        warning="#f2c14e",
        error="#ef6f6c",
        success="#6fcf97",
        foreground="#d6dbe2",
        background="#11151a",
        surface="#161b22",
        panel="#1c232c",
        dark=True,
        variables={"border": "#3a4654"},
    ),
    Theme(
        name="rlgpt-light",
        primary="#1f6fb2",
        secondary="#0a5c8a",
        accent="#b25e00",
        warning="#9a6b00",
        error="#b3261e",
        success="#1c7a43",
        foreground="#1c2126",
        background="#fafbfc",
        surface="#f1f3f5",
        panel="#e6e9ed",
        dark=False,
        variables={"border": "#b6bec8"},
    ),
    Theme(
        name="rlgpt-contrast",
        primary="#7fd4ff",
        secondary="#ffffff",
        accent="#ffd400",
        warning="#ffd400",
        error="#ff5c5c",
        success="#50ff78",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#101010",
        dark=True,
        variables={"border": "#9a9a9a"},
    ),
)
