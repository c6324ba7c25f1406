"""How long a reader looks at the spin_wait before it sleeps."""

from __future__ import annotations

import pytest

from rlgpt.training.host import spin_wait
from rlgpt.training.host.spin_wait import SpinWait


class Page(list[int]):
    """A page that counts how often it is looked at, and rings at one of the looks."""

    def __init__(self, rings_at: int = 0) -> None:
        super().__init__([0] * 256)
        self.rings_at = rings_at
        self.looks = 0

    def __getitem__(self, at: int) -> int:  # type: ignore[override]
        self.looks += 1
        return 3 if self.looks == self.rings_at else 0


def test_a_bell_that_rings_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin_wait, "cores", lambda: 2)
    page = Page(rings_at=5)
    assert SpinWait(page, 64, 100).wait_for(259)
    assert page.looks == 5


def test_looking_in_vain_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin_wait, "cores", lambda: 2)
    page = Page()
    silent = SpinWait(page, 64, 100)
    assert not any(silent.wait_for(3) for _ in range(20_000))
    assert 0 < page.looks <= 20 * 100


def test_one_processor_is_never_kept_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin_wait, "cores", lambda: 1)
    page = Page(rings_at=1)
    assert not SpinWait(page, 64, 100).wait_for(3)
    assert page.looks == 0
