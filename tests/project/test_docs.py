"""What the pages of docs/ repeat from the source is what the source says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_list_of_events_in_json_md_is_that_of_the_source() -> None:
    spec = importlib.util.spec_from_file_location("docs_events", DOCS / "events.py")
    assert spec is not None and spec.loader is not None
    events = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(events)
    assert events.written() == (DOCS / "json.md").read_text(), "run `make docs`"
