"""Statistics against scipy, against simulations with known truth, and against hand-made numbers."""

from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

from runners.stats import (
    MINIMUM_FOR_INTERVAL,
    autocorrelation,
    between_runs,
    estimate_mean,
    mean_interval,
    percentiles,
    ratio_of_means,
)
from runners.steady import Pacing

Samples = np.ndarray[Any, np.dtype[np.float64]]


def autoregressive(rng: np.random.Generator, r: float, n: int, deviation: float) -> Samples:
    """Mean 1, standard deviation `deviation`, lag-1 autocorrelation `r`."""
    noise = rng.standard_normal(n + 100) * deviation * np.sqrt(1 - r**2)
    return 1 + np.asarray(signal.lfilter([1.0], [1.0, -r], noise))[100:]


def test_without_autocorrelation_it_is_students_interval() -> None:
    values = [5.0, 3.0, 6.0, 2.0, 5.5, 3.5, 4.0]  # neighbours differ: the estimate of r is below 0 and counts as none
    assert autocorrelation(values) == 0.0
    expected = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected)


def test_neighbours_that_resemble_each_other_widen_it() -> None:
    rng = np.random.default_rng(0)
    values = autoregressive(rng, 0.5, 2000, 0.1)
    estimate = estimate_mean(list(values))
    assert estimate is not None
    assert estimate.autocorrelation == pytest.approx(0.5, abs=0.05)
    # Theory: the variance of the mean is (1 + r) / (1 - r) = 3 times that of independent samples.
    assert (estimate.standard_error / stats.sem(values)) ** 2 == pytest.approx(3, rel=0.2)


def test_no_interval_below_six_samples_or_of_what_is_not_finite() -> None:
    assert mean_interval([1.0] * (MINIMUM_FOR_INTERVAL - 1)) is None
    assert mean_interval([1.0, 2.0, 1.5, 1.2, float("nan"), 1.1]) is None
    assert mean_interval([2.0] * 10) == (2.0, 2.0)
    assert mean_interval([0.1] * 7) == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize("r", [0.0, 0.5])
@pytest.mark.parametrize("deviation", [0.02, 0.05, 0.1])
def test_intervals_hold_the_true_mean_as_often_as_they_say(r: float, deviation: float) -> None:
    """At the n where the stopping rule ends, which favours intervals that are narrow by luck."""
    rng = np.random.default_rng(7)
    hits, counts = 0, []
    for _ in range(2000):
        pacing = Pacing(warmup_cap=0, cap=1000)
        for value in autoregressive(rng, r, 1000, deviation):
            if pacing.take(float(value)):
                break
        interval = mean_interval(pacing.measured)
        assert interval is not None
        hits += interval[0] <= 1 <= interval[1]
        counts.append(len(pacing.measured))
    assert 0.93 <= hits / 2000 <= 0.97, (hits / 2000, np.median(counts))


@pytest.mark.parametrize("n", [10, 30, 100])
def test_intervals_of_independent_samples_cover_at_every_n(n: int) -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        low, high = mean_interval(list(1 + 0.05 * rng.standard_normal(n))) or (0.0, 0.0)
        hits += low <= 1 <= high
    assert 0.93 <= hits / 2000 <= 0.98  # a negative estimate of r counts as none, so a little above 95 %


def test_the_ratio_of_means_covers_and_is_symmetric() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(1000):
        slow, fast = autoregressive(rng, 0.3, 60, 0.05) * 1.9, autoregressive(rng, 0.3, 60, 0.05)
        estimate = ratio_of_means(list(slow), list(fast))
        assert estimate.interval is not None
        hits += estimate.interval[0] <= 1.9 <= estimate.interval[1]
    assert 0.92 <= hits / 1000 <= 0.98
    back = ratio_of_means(list(fast), list(slow))
    assert back.ratio == pytest.approx(1 / estimate.ratio)
    assert back.interval == pytest.approx((1 / estimate.interval[1], 1 / estimate.interval[0]))


@pytest.mark.parametrize(
    ("noise", "claimed_at_least", "claimed_at_most"), [(0.01, 1.0, 1.0), (0.05, 0.8, 1.0), (0.2, 0.0, 0.3)]
)
def test_three_per_cent_is_claimed_where_the_noise_lets_it(
    noise: float, claimed_at_least: float, claimed_at_most: float
) -> None:
    rng = np.random.default_rng(11)
    found = [
        ratio_of_means(list(1.03 + noise * rng.standard_normal(100)), list(1 + noise * rng.standard_normal(100)))
        for _ in range(200)
    ]
    share = sum(item.differs and item.ratio > 1 for item in found) / 200
    assert claimed_at_least <= share <= claimed_at_most
    assert sum(item.differs and item.ratio < 1 for item in found) <= 2  # never the wrong way round


def test_more_noise_means_a_wider_interval() -> None:
    rng = np.random.default_rng(2)
    shape = rng.standard_normal((2, 100))
    widths = []
    for noise in (0.01, 0.05, 0.2):
        interval = ratio_of_means(list(1.03 + noise * shape[0]), list(1 + noise * shape[1])).interval
        assert interval is not None
        widths.append(interval[1] - interval[0])
    assert widths[1] / widths[0] == pytest.approx(5, rel=0.1)
    assert widths[2] / widths[0] == pytest.approx(20, rel=0.15)


def test_a_ratio_of_few_samples_has_no_interval_and_shows_no_difference() -> None:
    estimate = ratio_of_means([2.0] * 5, [1.0] * 50)
    assert (estimate.ratio, estimate.interval, estimate.differs) == (2.0, None, False)
    assert ratio_of_means([2.0] * 6, [1.0] * 6).interval == (2.0, 2.0)
    with pytest.raises(ValueError, match="above 0"):
        ratio_of_means([], [1.0])


def test_repeats_are_judged_by_their_spread() -> None:
    means = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0]
    repeats = between_runs(means)
    assert (repeats.n, repeats.lowest, repeats.highest) == (6, 0.9, 1.1)
    assert repeats.interval == pytest.approx(stats.t.interval(0.95, 5, loc=np.mean(means), scale=stats.sem(means)))
    assert between_runs(means[:5]).interval is None


def test_percentiles_are_numpys_and_need_a_sample_beyond() -> None:
    values = [float(v) for v in range(1, 101)]
    assert percentiles(values) == {0.05: 5.95, 0.5: 50.5, 0.95: pytest.approx(95.05), 0.99: pytest.approx(99.01)}
    assert list(percentiles(values[:10])) == [0.5]
