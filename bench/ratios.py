"""The ratio of two durations that were measured in turn, pair by pair."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runners.stats import mean_interval


@dataclass(frozen=True)
class Ratio:
    """Ours over the peer's; the interval is that of the geometric mean of the pairs' ratios."""

    ours: str
    peer: str
    ours_s: tuple[float, ...]
    peer_s: tuple[float, ...]
    limit: float

    @property
    def median(self) -> float:
        """Median of the pairs' ratios."""
        return statistics.median(a / b for a, b in zip(self.ours_s, self.peer_s, strict=True))

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval; None below six pairs."""
        logs = mean_interval([math.log(a / b) for a, b in zip(self.ours_s, self.peer_s, strict=True)])
        return (math.exp(logs[0]), math.exp(logs[1])) if logs else None

    def as_json(self) -> dict[str, Any]:
        """Everything, raw times included."""
        return {
            "ours": self.ours,
            "peer": self.peer,
            "ours_s": self.ours_s,
            "peer_s": self.peer_s,
            "median_ratio": self.median,
            "interval_95": self.interval,
            "limit": self.limit,
            "within_limit": self.median <= self.limit,
        }

    def __str__(self) -> str:
        interval = "no interval" if self.interval is None else f"{self.interval[0]:.3f} to {self.interval[1]:.3f}"
        return (
            f"{self.ours} {statistics.median(self.ours_s):.3f} s, {self.peer} {statistics.median(self.peer_s):.3f} s, "
            f"ratio {self.median:.3f} ({interval}), limit {self.limit}, n = {len(self.ours_s)}"
        )


@dataclass(frozen=True)
class Limits:
    """Median durations in seconds by name, some with limits of their own; for what has no peer to be compared with."""

    seconds: dict[str, float]
    limits_s: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        within = all(self.seconds[name] <= limit_s for name, limit_s in self.limits_s.items())
        return {"seconds": self.seconds, "limits_s": self.limits_s, "within_limit": within}

    def __str__(self) -> str:
        limits = {name: f" (limit {limit_s})" for name, limit_s in self.limits_s.items()}
        return ", ".join(f"{name} {value:.3f} s{limits.get(name, '')}" for name, value in self.seconds.items())


def interleaved(
    ours: Callable[[], float], peer: Callable[[], float], *, pairs: int, names: tuple[str, str], limit: float
) -> Ratio:
    """Measures ours and the peer in turn, the first pair uncounted.

    Args:
        ours: Does it once and returns its seconds.
        peer: The same for the peer.
        pairs: How many pairs count.
        names: What the two are.
        limit: The ratio that is allowed.
    """
    times: list[tuple[float, float]] = []
    for index in range(pairs + 1):
        # Every other pair begins with the peer, so that a drift of the machine favours neither.
        if index % 2:
            theirs = peer()
            times.append((ours(), theirs))
        else:
            times.append((ours(), peer()))
    counted = times[1:]
    return Ratio(names[0], names[1], tuple(a for a, _ in counted), tuple(b for _, b in counted), limit)
