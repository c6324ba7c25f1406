from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rliable import library, metrics

from rlgpt.console import statistics

SCORES = np.random.default_rng(1).beta(2.0, 3.0, (10, 4))
OTHER = np.random.default_rng(2).beta(3.0, 3.0, (10, 4))


def test_iqm_is_that_of_rliable() -> None:
    assert statistics.iqm(SCORES) == pytest.approx(metrics.aggregate_iqm(SCORES))


def test_the_stratified_bootstrap_interval_is_that_of_rliable() -> None:
    _, theirs = library.get_interval_estimates(
        {"a": SCORES}, lambda scores: np.array([metrics.aggregate_iqm(scores)]), reps=4000
    )
    ours = statistics.bootstrap(SCORES, statistics.iqm, resamples=4000)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs["a"][:, 0]), abs=0.012)


def test_probability_of_improvement_is_that_of_rliable() -> None:
    assert statistics.improvement(SCORES, OTHER) == pytest.approx(metrics.probability_of_improvement(SCORES, OTHER))
    assert statistics.improvement(SCORES, SCORES) == pytest.approx(0.5)


def test_holm_gives_the_worked_example_of_the_method() -> None:
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_makes_a_p_value_smaller_and_keeps_their_order(p: list[float]) -> None:
    adjusted = statistics.holm(p)
    assert all(a >= b or a == 1.0 for a, b in zip(adjusted, p, strict=True))
    order = sorted(range(len(p)), key=lambda i: p[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_five_wins_in_five_pairs_have_the_exact_two_sided_p() -> None:
    found = statistics.paired([0.9, 0.8, 0.7, 0.9, 0.8], [0.1, 0.2, 0.3, 0.2, 0.4])
    assert found.p == pytest.approx(2 / 2**5)
    assert found.low > 0 and found.mean == pytest.approx(0.58)


def test_no_difference_is_found_where_there_is_none() -> None:
    same = [0.5, 0.6, 0.7]
    assert statistics.paired(same, same) == (3, 0.0, 0.0, 0.0, 1.0)


def test_a_paired_interval_covers_the_true_difference_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        noise = random.normal(0.1, 0.2, 20)
        found = statistics.paired(noise, np.zeros(20), seed=trial, resamples=500)
        covered += found.low <= 0.1 <= found.high
    assert 0.88 <= covered / 200 <= 0.98


@pytest.mark.parametrize("pairs", [13, 16, 17, 30])
def test_no_p_is_zero(pairs: int) -> None:
    """Up to 16 pairs it is exact; beyond them the signs as they were seen are one of those that are tried."""
    p = statistics.paired([1.0] * pairs, [0.0] * pairs).p
    assert p == (pytest.approx(2 / 2**pairs) if pairs <= 16 else pytest.approx(1 / 10_001, rel=1.5))
    assert p > 0


@pytest.mark.parametrize("seeds", statistics.COVERED)
def test_an_interval_over_few_seeds_covers_as_often_as_is_told(seeds: int) -> None:
    random = np.random.default_rng(seeds)
    found = [statistics.bootstrap(random.normal(size=(seeds, 1)), statistics.mean, resamples=500) for _ in range(2000)]
    covered = 100 * np.mean([interval.low <= 0 <= interval.high for interval in found])
    assert covered == pytest.approx(statistics.COVERED[seeds], abs=3)


@pytest.mark.parametrize("seeds", [2, 3])
def test_an_interval_over_two_or_three_seeds_goes_from_the_smallest_to_the_largest(seeds: int) -> None:
    """So how often it covers is known exactly: it misses where all scores are on one side of the mean."""
    scores = np.random.default_rng(0).normal(size=(seeds, 1))
    found = statistics.bootstrap(scores, statistics.mean)
    assert (found.low, found.high) == (pytest.approx(scores.min()), pytest.approx(scores.max()))
    assert statistics.COVERED[seeds] == 100 * (1 - 2 / 2**seeds)
