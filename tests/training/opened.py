"""A session that is open in this process, for tests that ask it something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rlgpt.training import opening
from rlgpt.training.session import creation
from rlgpt.training.session.runtime import SessionRuntime


@contextmanager
def opened(home: Path, task: str = "make_wood_pickaxe") -> Iterator[SessionRuntime]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLGPT_HOME", str(home))
        session = opening.open_session(Path(creation.create({"task": task, "skills": "none"})["folder"]))
        yield session
        session.close()
