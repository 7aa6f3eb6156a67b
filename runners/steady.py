"""When a run is warm, when it has measured enough, and what its samples look like.

Warm: over the last ten samples there is no trend. The test is Mann and Kendall's, its variance multiplied by
(1 + r) / (1 - r) for samples that resemble their neighbours (Hamed and Rao 1998, first order; r up to 0.5). A trend
also counts as none when its slope (Theil and Sen) moves less than 1 % of the median over the ten samples, which no
reader would call one. The samples that showed it are warm-up themselves.

Enough: the 95 % interval of the mean is within a half-width of the mean, 2 % by default, at three looks in a row; the
looks are at 20 samples and then each 1.5 times as many, so that looking often does not make an interval pass by luck.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from runners.specs import LEAST_ADAPTIVE_WARMUP
from runners.stats import autocorrelation, estimate_mean

WINDOW = LEAST_ADAPTIVE_WARMUP
SIGNIFICANCE = 0.05
FLAT_SHARE = 0.01
FIRST_LOOK, LOOK_GROWTH, LOOKS_IN_A_ROW = 20, 1.5, 3
TARGET_HALF_WIDTH = 0.02
SPIKE_DEVIATIONS = 6.0
SPIKE_SHARE = 0.01
_MOST_EXCUSED = 0.5
SHIFT_SHARE = 0.03
"""A change of level or a trend over all measured samples of less than this share of the median is not remarked."""


@dataclass(frozen=True)
class Trend:
    """Whether samples rise or fall."""

    p: float
    """How often samples without a trend would look like these (two-sided)."""
    change: float
    """Theil and Sen's slope over all the samples, as a share of their median; negative where times fall."""

    @property
    def flat(self) -> bool:
        """No trend that can be shown, or one too small to matter."""
        return self.p > SIGNIFICANCE or abs(self.change) < FLAT_SHARE


def trend(values: Sequence[float]) -> Trend:
    """Mann and Kendall's test with Theil and Sen's slope; of fewer than 4 samples nothing can be said (p = 1)."""
    data = np.asarray(values, dtype=float)
    n = len(data)
    if n < 4:
        return Trend(1.0, 0.0)
    # Long series are thinned to 500: the test compares each sample with each.
    data = data if n <= 500 else np.array([part.mean() for part in np.array_split(data, 500)])
    n = len(data)
    earlier, later = np.triu_indices(n, 1)
    differences = data[later] - data[earlier]
    score = float(np.sign(differences).sum())
    slope = float(np.median(differences / (later - earlier)))
    # A curved trend leaves residuals that resemble their neighbours; unbounded, that would excuse it as noise.
    r = min(autocorrelation(list(data - slope * np.arange(n))), _MOST_EXCUSED)
    variance = n * (n - 1) * (2 * n + 5) / 18 * (1 + r) / (1 - r)
    z = (abs(score) - 1) / math.sqrt(variance) if score else 0.0
    middle = float(np.median(data))
    return Trend(p=2 * float(ndtr(-max(z, 0.0))), change=slope * (n - 1) / middle if middle else 0.0)


def level_shift(values: Sequence[float]) -> tuple[int, float] | None:
    """Where the level of the samples changes, if it does (Pettitt 1979, neighbours that resemble allowed for).

    Returns:
        Index of the first sample of the new level and its size over the old one's (medians); None where no change can
        be shown or it is under 3 %.
    """
    data = np.asarray(values, dtype=float)
    n = len(data)
    if n < 2 * WINDOW:
        return None
    order = np.empty(n)
    order[np.argsort(data, kind="stable")] = np.arange(1, n + 1)
    score = 2 * np.cumsum(order)[:-1] - np.arange(1, n) * (n + 1)
    split = int(np.argmax(np.abs(score))) + 1
    before, after = data[:split], data[split:]
    if min(len(before), len(after)) < WINDOW // 2:
        return None
    levels = np.concatenate([before - np.median(before), after - np.median(after)])
    r = autocorrelation(list(levels))
    effective = float(np.abs(score).max()) ** 2 * (1 - r) / (1 + r)
    p = 2 * math.exp(-6 * effective / (n**3 + n**2))
    if not np.median(before):
        return None
    size = float(np.median(after) / np.median(before))
    return (split, size) if p < SIGNIFICANCE / 5 and abs(size - 1) >= SHIFT_SHARE else None


def two_modes(values: Sequence[float]) -> bool:
    """Whether the samples fall into two groups, far apart beside their own spread, each with a fifth at least.

    The gap between the groups' means must be 5 times their pooled deviation (Ashman's D over 5/sqrt 2) and over 3 % of
    the mean; the groups are those of the split that leaves the least variance.
    """
    data = np.sort(np.asarray(values, dtype=float))
    n = len(data)
    if n < 2 * WINDOW:
        return False
    least = max(2, n // 5)
    splits = np.arange(least, n - least + 1)
    sums, squares = np.cumsum(data), np.cumsum(data**2)
    low = squares[splits - 1] - sums[splits - 1] ** 2 / splits
    high = (squares[-1] - squares[splits - 1]) - (sums[-1] - sums[splits - 1]) ** 2 / (n - splits)
    within = np.maximum(low + high, 0.0)
    best = int(np.argmin(within))
    split = int(splits[best])
    gap = float(data[split:].mean() - data[:split].mean())
    return gap > 5 * math.sqrt(float(within[best]) / n) and gap > SHIFT_SHARE * float(data.mean())


def spike_share(values: Sequence[float]) -> float:
    """The share of all the time that single samples took beyond the median.

    Counted are samples over the median by 6 deviations (from the median absolute one) and by 10 % at least.
    """
    data = np.asarray(values, dtype=float)
    if not len(data):
        return 0.0
    middle = float(np.median(data))
    deviation = 1.4826 * float(np.median(np.abs(data - middle)))
    above = data[data > middle + max(SPIKE_DEVIATIONS * deviation, 0.1 * middle)]
    return float((above - middle).sum() / data.sum()) if len(above) else 0.0


def remarks(values: Sequence[float]) -> list[str]:
    """Message ids of what makes the measured samples less than steady."""
    found = []
    data = np.asarray(values, dtype=float)
    shift, moving = level_shift(values), trend(values)
    drifts = not moving.flat and abs(moving.change) >= SHIFT_SHARE
    if shift is not None and drifts:
        # Both tests answer to both; what fits the samples better is what is said.
        split, _ = shift
        steps = np.concatenate([data[:split] - np.median(data[:split]), data[split:] - np.median(data[split:])])
        line = data - np.linspace(0, moving.change * float(np.median(data)), len(data))
        drifts = float(np.var(line)) < float(np.var(steps))
        shift = None if drifts else shift
    if shift is not None:
        found.append("level-shift")
    elif drifts:
        found.append("not-steady")
    elif two_modes(values):
        found.append("two-modes")
    if "two-modes" not in found and spike_share(values) > SPIKE_SHARE:
        found.append("spikes")
    return found


SINGULAR = {"batches": "batch", "steps": "step"}


@dataclass
class Pacing:
    """Says after each sample whether the run is warm, and whether it has measured enough.

    Attributes:
        warmup_cap: Samples of warm-up: exactly so many, or where adaptive at most.
        cap: Measured samples: exactly so many, or where adaptive at most.
        adaptive: Whether warm-up ends by the test and measuring by the interval; else both are counted.
        target: Half-width of the 95 % interval to reach, as a share of the mean.
        warm: Whether the test found no trend any more.
        reached: Whether the interval is as narrow as wanted.
        half_width: The half-width at the last look, as a share of the mean.
    """

    warmup_cap: int
    cap: int
    adaptive: bool = True
    target: float = TARGET_HALF_WIDTH
    warm: bool = False
    reached: bool = False
    half_width: float | None = None
    warmup: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)
    _passed: int = 0
    _next_look: int = FIRST_LOOK

    @property
    def measuring(self) -> bool:
        """Whether the next sample is a measured one."""
        return self.warm or len(self.warmup) >= self.warmup_cap

    @property
    def over(self) -> bool:
        """Whether nothing more is to be measured."""
        return self.reached or len(self.measured) >= self.cap

    @property
    def at_an_edge(self) -> bool:
        """Whether the host has to wait after the next sample: it begins or ends what is counted, or is looked at."""
        if not self.measuring:
            return self.adaptive or len(self.warmup) + 1 == self.warmup_cap
        return len(self.measured) + 1 >= min(self._next_look if self.adaptive else self.cap, self.cap)

    def take(self, seconds: float) -> bool:
        """Takes one sample; returns whether the run is over."""
        if self.measuring:
            self.measured.append(seconds)
            if self.adaptive and len(self.measured) >= self._next_look:
                self._look()
            return self.over
        self.warmup.append(seconds)
        window = self.warmup[-WINDOW:]
        self.warm = self.adaptive and len(window) == WINDOW and trend(window).flat
        return False

    def rule(self, what: str) -> str:
        """The warm-up rule for the conditions, such as first-2-batches-dropped; `what` is batches or steps."""
        if self.adaptive and self.warm:
            return "until-no-trend"
        count = len(self.warmup)
        if count == 0:
            return "none"
        return f"first-{count}-{what}-dropped" if count > 1 else f"first-{SINGULAR[what]}-dropped"

    def remarks(self) -> list[str]:
        """Message ids of what the rule could not reach."""
        if not self.adaptive:
            return []
        return [*(["not-warm"] if not self.warm else []), *(["target-not-reached"] if not self.reached else [])]

    def told(self) -> dict[str, object]:
        """What the record keeps of it."""
        return {
            "rule": "adaptive" if self.adaptive else "fixed",
            "warmup_samples": len(self.warmup),
            "warm_by_trend_test": self.warm if self.adaptive else None,
            "measured_samples": len(self.measured),
            "target_half_width": self.target if self.adaptive else None,
            "half_width": relative_half_width(self.measured),
            "target_reached": self.reached if self.adaptive else None,
        }

    def _look(self) -> None:
        self.half_width = relative_half_width(self.measured)
        passed = self.half_width is not None and self.half_width <= self.target
        self._passed = self._passed + 1 if passed else 0
        self.reached = self._passed >= LOOKS_IN_A_ROW
        self._next_look = math.ceil(len(self.measured) * LOOK_GROWTH)


def relative_half_width(values: Sequence[float]) -> float | None:
    """Half the 95 % interval of the mean over the mean; None where there is no interval."""
    estimate = estimate_mean(values)
    return estimate.half_width / estimate.mean if estimate and estimate.mean > 0 else None


def mean_by_rule(warmup: Sequence[float], measured: Sequence[float], published: int) -> dict[str, float]:
    """The mean under other warm-up rules, so that a reader sees how much of a gap is definition.

    Args:
        warmup: Samples that were not counted, in order.
        measured: Samples that were.
        published: How many samples the published rule drops.

    Returns:
        Mean seconds by rule: this run's own, nothing dropped, and the published one where that many samples and more
        were taken.
    """
    everything = [*warmup, *measured]
    means = {"own_s": float(np.mean(measured)), "nothing_dropped_s": float(np.mean(everything))}
    if len(everything) > published:
        means[f"first_{published}_dropped_s"] = float(np.mean(everything[published:]))
    return means
