"""Clocks. A timed region begins and ends with the host waiting for the device; inside it nothing waits."""

import time
from dataclasses import dataclass, field
from typing import Any

from runners.device import Backend


@dataclass
class RegionClock:
    """Times one region with marks inside it.

    `start` and `stop` synchronise. `mark` notes a point on the device's own clock, and `stage_seconds` reads the
    distances after `stop`. On devices whose marks make the host wait, only a pass with `stages=True` marks.
    """

    device: Backend
    stages: bool
    _started_s: float = 0.0
    _stopped_s: float = 0.0
    _marks: list[tuple[str, Any]] = field(default_factory=list)

    def start(self) -> None:
        """Waits for earlier work, then starts the host clock."""
        self.device.synchronize()
        self._marks = [("", self.device.mark())] if self.stages else []
        self._started_s = time.perf_counter()

    def mark(self, stage: str) -> None:
        """Ends the stage of that name here."""
        if self.stages:
            self._marks.append((stage, self.device.mark()))

    def stop(self) -> float:
        """Waits for the device and returns the region's seconds on the host clock."""
        self.device.synchronize()
        self._stopped_s = time.perf_counter()
        return self._stopped_s - self._started_s

    def stage_seconds(self) -> dict[str, float]:
        """Seconds of each marked stage, from the mark before it."""
        pairs = zip(self._marks, self._marks[1:], strict=False)
        return {stage: self.device.seconds_between(before, after) for (_, before), (stage, after) in pairs}
