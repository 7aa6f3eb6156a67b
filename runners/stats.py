"""Statistics from samples: one module for runs, pages, command line and exports.

Step times of one run are not independent: a slow second makes its neighbours slow. The interval of a mean therefore
takes the samples as a first-order autoregressive series. The lag-1 autocorrelation r is estimated, its bias of
-(1 + 4 r) / n (Marriott and Pope 1954) taken out, and the variance of the mean multiplied by f = (1 + r) / (1 - r);
n / f - 1 are the degrees of freedom of Student's t, f being n / 3 at most. A negative r counts as none, so the
interval is never narrower than that of independent samples. How often such intervals hold the true mean:
docs/measurement.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from runners.records import Metric

MINIMUM_FOR_INTERVAL = 6
CONFIDENCE = 0.95
_MOST_AUTOCORRELATION = 0.95
_LEAST_EFFECTIVE = 3.0


@dataclass(frozen=True)
class MeanEstimate:
    """A mean and how sure it is."""

    mean: float
    standard_error: float
    degrees: float
    """Degrees of freedom of Student's t, at least 2."""
    n: int
    autocorrelation: float
    """Lag 1, bias taken out, between 0 and 0.95."""

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        return float(stdtrit(self.degrees, (1 + CONFIDENCE) / 2)) * self.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        return (self.mean - self.half_width, self.mean + self.half_width)


def autocorrelation(values: Sequence[float]) -> float:
    """Lag-1 autocorrelation with its bias taken out, held between 0 and 0.95; 0 for constant values."""
    deviations = np.asarray(values, dtype=float) - np.mean(values)
    squares = float(deviations @ deviations)
    # Equal values differ from their rounded mean in the last bit, all in the same direction.
    if squares <= len(deviations) * (1e-15 * abs(float(np.mean(values)))) ** 2 or squares == 0:
        return 0.0
    found = float(deviations[1:] @ deviations[:-1]) / squares
    unbiased = found + (1 + 4 * found) / len(deviations)
    return min(max(unbiased, 0.0), _MOST_AUTOCORRELATION)


def estimate_mean(values: Sequence[float]) -> MeanEstimate | None:
    """The mean of one run's samples with its standard error; None below n = 6 or where a sample is not finite."""
    n = len(values)
    if n < MINIMUM_FOR_INTERVAL or not np.isfinite(np.asarray(values, dtype=float)).all():
        return None
    r = autocorrelation(values)
    # Of six samples in a row r says next to nothing; at least three of them count as independent.
    factor = min((1 + r) / (1 - r), n / _LEAST_EFFECTIVE)
    # Neighbours that resemble each other also make the sample variance too small.
    variance = float(np.var(values, ddof=1)) / max(1 - (factor - 1) / (n - 1), 0.1)
    return MeanEstimate(
        mean=float(np.mean(values)),
        standard_error=math.sqrt(variance * factor / n),
        degrees=n / factor - 1,
        n=n,
        autocorrelation=r,
    )


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval of the mean of one run's samples, autocorrelation allowed for; None below n = 6."""
    estimate = estimate_mean(values)
    return estimate.interval if estimate else None


@dataclass(frozen=True)
class RatioEstimate:
    """How many times as large one mean is as another."""

    ratio: float
    interval: tuple[float, float] | None
    """95 %; None where either side has fewer than 6 samples."""

    @property
    def differs(self) -> bool:
        """Whether these samples can show a difference at all."""
        return self.interval is not None and not self.interval[0] <= 1 <= self.interval[1]


def ratio_of_means(numerator: Sequence[float], denominator: Sequence[float]) -> RatioEstimate:
    """The ratio of two independent runs' means, with its interval on the logarithmic scale (delta method, Welch).

    For times, `ratio_of_means(other_s, own_s)` is how many times as fast one's own is.

    Raises:
        ValueError: A side is empty, or its mean is not above 0.
    """
    if not len(numerator) or not len(denominator) or min(float(np.mean(numerator)), float(np.mean(denominator))) <= 0:
        raise ValueError("a ratio needs samples with a mean above 0 on both sides")
    ratio = float(np.mean(numerator)) / float(np.mean(denominator))
    above, below = estimate_mean(numerator), estimate_mean(denominator)
    if above is None or below is None:
        return RatioEstimate(ratio, None)
    parts = [((side.standard_error / side.mean) ** 2, side.degrees) for side in (above, below)]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return RatioEstimate(ratio, (ratio, ratio))
    degrees = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    half = float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return RatioEstimate(ratio, (ratio * math.exp(-half), ratio * math.exp(half)))


@dataclass(frozen=True)
class Repeats:
    """The means of the same run in fresh processes."""

    n: int
    mean: float
    lowest: float
    highest: float
    interval: tuple[float, float] | None
    """95 % of the mean over runs, from the spread between runs; None below 6 runs."""


def between_runs(means: Sequence[float]) -> Repeats:
    """What repeats in fresh processes show; they are independent, so Student's interval holds.

    Raises:
        ValueError: There is no mean.
    """
    if not means:
        raise ValueError("no run")
    n, mean = len(means), float(np.mean(means))
    interval = None
    if n >= MINIMUM_FOR_INTERVAL:
        half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * float(np.std(means, ddof=1)) / math.sqrt(n)
        interval = (mean - half, mean + half)
    return Repeats(n, mean, min(means), max(means), interval)


def percentiles(values: Sequence[float], shares: Sequence[float] = (0.05, 0.5, 0.95, 0.99)) -> dict[float, float]:
    """Percentiles by linear interpolation; those that n samples cannot show (fewer than one beyond) are left out."""
    n = len(values)
    shown = [share for share in shares if n * min(share, 1 - share) >= 1]
    return {share: float(np.quantile(values, share)) for share in shown}


def rate_metrics(
    name: str, unit: str, seconds: Sequence[float], units_per_sample: int, timed_region: str | None
) -> list[Metric]:
    """Throughput and time per unit from the durations of equal pieces of work.

    Throughput is all units over all seconds (the published formula), so it is the reciprocal of the mean time per
    unit, not the mean of reciprocals.

    Args:
        name: What is counted, in the singular: image, sample.
        unit: The throughput's unit, such as images/s.
        seconds: Duration of each measured batch or step.
        units_per_sample: How many units each of them made.
        timed_region: Which clock.

    Returns:
        `s_per_<name>` and `<name>s_per_s`; none where nothing was measured.
    """
    if not seconds:
        return []
    per_unit_s = float(np.mean(seconds)) / units_per_sample
    interval = mean_interval([value / units_per_sample for value in seconds])
    inverse = (1 / interval[1], 1 / interval[0]) if interval and interval[0] > 0 else None
    n = len(seconds)
    metrics = [
        Metric(
            name=f"s_per_{name}",
            value=per_unit_s,
            unit=f"s/{name}",
            interval=interval,
            n=n,
            higher_is_better=False,
            timed_region=timed_region,
        )
    ]
    if per_unit_s > 0:
        metrics.append(
            Metric(
                name=f"{name}s_per_s",
                value=1 / per_unit_s,
                unit=unit,
                interval=inverse,
                n=n,
                higher_is_better=True,
                timed_region=timed_region,
            )
        )
    return metrics
