import pytest

from rlgpt.store.intervals import wilson


def test_wilson_agrees_with_published_values() -> None:
    """Newcombe 1998, table I: 81/263, 15/148, 0/20, 1/29."""
    for successes, episodes, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson(successes, episodes) == pytest.approx((low, high), abs=5e-5)


def test_wilson_holds_at_the_ends() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(20, 20)
    assert high == 1.0 and low == pytest.approx(1 - 0.1611, abs=5e-5)
    with pytest.raises(ValueError, match="cannot be"):
        wilson(3, 2)
