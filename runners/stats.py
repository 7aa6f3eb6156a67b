"""Statistics from samples: one function for page, command line and export."""

import math
import statistics
from collections.abc import Sequence

from runners.records import Metric

MINIMUM_FOR_INTERVAL = 6

# Two-sided 95 % quantiles of Student's t for 5 to 30 degrees of freedom (n = 6 to 31); beyond, the normal 1.96 is
# within 4 %. From the t distribution's definition; checked against scipy in the tests of `stats` where it is there.
_T_95 = (
    2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
    2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % Student interval of the mean, taking the samples as independent; None below n = 6."""
    n = len(values)
    if n < MINIMUM_FOR_INTERVAL:
        return None
    degrees = n - 1
    quantile = _T_95[degrees - 5] if degrees - 5 < len(_T_95) else 1.96
    half = quantile * statistics.stdev(values) / math.sqrt(n)
    mean = statistics.fmean(values)
    return (mean - half, mean + half)


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
    per_unit_s = statistics.fmean(seconds) / units_per_sample
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
