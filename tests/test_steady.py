"""Warm-up, stopping and steadiness on generated step times whose right answer is known."""

import itertools

import numpy as np
import pytest

from runners.steady import WINDOW, Pacing, level_shift, remarks, spike_share, trend, two_modes
from tests.test_stats import autoregressive

RUNS = 100


def said(make: "object", seed: int = 1) -> dict[str, float]:
    """How often each remark is made over many series."""
    rng = np.random.default_rng(seed)
    found = [item for _ in range(RUNS) for item in remarks(list(make(rng)))]  # type: ignore[operator]
    return {item: found.count(item) / RUNS for item in set(found)}


@pytest.mark.parametrize("r", [0.0, 0.5])
@pytest.mark.parametrize("n", [30, 100])
def test_flat_series_are_rarely_remarked(r: float, n: int) -> None:
    assert sum(said(lambda rng: autoregressive(rng, r, n, 0.05)).values()) <= 0.15


def test_throttling_in_the_middle_is_a_change_of_level_there() -> None:
    def throttled(rng: np.random.Generator) -> object:
        series = autoregressive(rng, 0.3, 100, 0.02)
        series[50:] *= 1.15
        return series

    assert said(throttled) == {"level-shift": 1.0}
    series = autoregressive(np.random.default_rng(0), 0.3, 100, 0.02)
    series[60:] *= 1.2
    found = level_shift(list(series))
    assert found is not None
    assert abs(found[0] - 60) <= 2
    assert found[1] == pytest.approx(1.2, abs=0.03)


def test_a_trend_is_a_trend_and_not_a_change_of_level() -> None:
    found = said(lambda rng: autoregressive(rng, 0.3, 100, 0.02) * np.linspace(1.1, 1, 100))
    assert found["not-steady"] >= 0.95
    assert found.get("level-shift", 0) <= 0.05


def test_two_modes_are_told_from_spikes() -> None:
    both = said(lambda rng: (1 + 0.02 * rng.standard_normal(60)) * np.where(rng.random(60) < 0.5, 1, 1.3))
    assert both["two-modes"] >= 0.95
    few = said(lambda rng: (1 + 0.02 * rng.standard_normal(60)) * np.where(rng.random(60) < 0.06, 2, 1))
    assert few["spikes"] >= 0.85
    assert few.get("two-modes", 0) <= 0.05


def test_the_share_of_spikes_is_time_beyond_the_median() -> None:
    assert spike_share([1.0] * 98 + [2.0, 3.0]) == pytest.approx(3 / 103)
    assert spike_share([1.0, 1.05] * 20) == 0.0
    assert spike_share([]) == 0.0


def test_a_constant_or_short_series_has_nothing_to_remark() -> None:
    for values in ([], [1.0], [1.0, 2.0, 3.0], [1.0] * 50, [0.0] * 50):
        assert remarks(values) == []
    assert trend([1.0, 2.0, 3.0]).p == 1.0
    assert not two_modes([1.0] * 50)


def test_a_straight_rise_is_not_flat_and_a_tiny_one_is() -> None:
    assert not trend([1 + 0.01 * i for i in range(WINDOW)]).flat
    assert trend([1 + 0.0005 * i for i in range(WINDOW)]).flat  # 0.45 % over the window


def test_warm_up_ends_when_the_times_have_settled() -> None:
    rng = np.random.default_rng(4)
    left = []
    for _ in range(RUNS):
        series = autoregressive(rng, 0.3, 400, 0.03) * (1 + 3 * np.exp(-np.arange(400) / 8))
        pacing = Pacing(warmup_cap=200, cap=100)
        for value in series:
            if pacing.take(float(value)):
                break
        assert pacing.warm
        left.append(3 * np.exp(-len(pacing.warmup) / 8))
    assert np.median(left) < 0.1  # the first step is 4 times as slow; what is left when measuring begins


def test_a_compilation_in_the_first_step_costs_one_window() -> None:
    pacing = Pacing(warmup_cap=100, cap=10)
    for value in itertools.chain([60.0, 5.0], itertools.repeat(1.0)):
        if pacing.take(value):
            break
    assert len(pacing.warmup) == WINDOW
    assert pacing.measured == [1.0] * 10


def test_what_never_settles_is_measured_after_the_cap_and_says_so() -> None:
    pacing = Pacing(warmup_cap=25, cap=10)
    for step in range(1000):
        if pacing.take(1.02**-step):
            break
    assert (len(pacing.warmup), len(pacing.measured), pacing.warm, pacing.reached) == (25, 10, False, False)


def test_measuring_ends_at_the_third_narrow_look_and_not_before() -> None:
    pacing = Pacing(warmup_cap=0, cap=1000)
    looked_at = []
    while True:
        edge = pacing.at_an_edge
        over = pacing.take(1.0 + 0.001 * (len(pacing.measured) % 3))
        if edge:
            looked_at.append(len(pacing.measured))
        if over:
            break
    assert looked_at == [20, 30, 45]
    assert pacing.reached
    assert pacing.half_width is not None and pacing.half_width < 0.001


def test_noise_that_never_narrows_ends_at_the_cap() -> None:
    rng = np.random.default_rng(0)
    pacing = Pacing(warmup_cap=0, cap=200)
    while not pacing.take(float(rng.lognormal(0, 1))):
        pass
    assert (len(pacing.measured), pacing.reached) == (200, False)
    assert pacing.half_width is not None and pacing.half_width > 0.02


@pytest.mark.parametrize("what", ["batches", "steps"])
def test_the_rule_has_the_vocabulary_s_words(what: str) -> None:
    from data.vocabulary import WARMUP_RULE

    rules = []
    for count in (0, 1, 2, 12):
        pacing = Pacing(warmup_cap=count, cap=1, adaptive=False)
        while not pacing.take(1.0):
            pass
        rules.append(pacing.rule(what))
    one = what.removesuffix("es" if what == "batches" else "s")
    assert rules == ["none", f"first-{one}-dropped", f"first-2-{what}-dropped", f"first-12-{what}-dropped"]
    assert all(WARMUP_RULE.fullmatch(rule) for rule in (*rules, "until-no-trend"))
