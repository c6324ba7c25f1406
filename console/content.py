"""Makes untrusted text safe for Textual's own widgets."""

from __future__ import annotations

from textual.content import Content

from rlgpt.console.sanitise import clean


def safe_content(text: str) -> Content:
    """The text cleaned, and none of it read as markup."""
    return Content(clean(text))
