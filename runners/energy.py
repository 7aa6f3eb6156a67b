"""Joules of what was measured: from the first measured batch or step to the last, by the device's own counter.

What no counter tells is said to be not available, with the reason, and never estimated. Where there is only a power
reading, it is added up ten times a second and the record calls that integrated. A counter counts for everybody who uses
the device or processor meanwhile; the audit says who else did.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from runners.device.energy_counters import Counter, NoCounter, counter_of
from runners.records import Metric

if TYPE_CHECKING:
    from runners.device import Backend
    from runners.execute import Outcome

INTEGRATE_EVERY_S = 0.1
LOOK_EVERY_S = 20.0
"""A counter that starts anew does so after minutes at the earliest."""
SHORTEST_S = 0.5
"""Counters are brought up to date some 10 to 1,000 times a second: less than this is mostly their delay."""
IDLE_S = 2.0
UNITS = {"images_per_s": "image", "samples_per_s": "sample"}


class Progress(Protocol):
    """What `runners.steady.Pacing` knows."""

    @property
    def measuring(self) -> bool:
        """Whether the next sample is a measured one."""

    @property
    def over(self) -> bool:
        """Whether nothing more is to be measured."""


class Meter:
    """Reads one device's counter at two instants, and between them where it has to."""

    def __init__(self, kind: str, index: int = 0, find: Callable[[str, int], Counter] = counter_of) -> None:
        """Nothing is looked for yet."""
        self._kind, self._index, self._find = kind, index, find
        self._counter: Counter | None = None
        self._why: dict[str, Any] | None = None
        self._asked = False
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._started_s = self._last_s = 0.0
        self._last = self._joules = 0.0
        self._duration_s: float | None = None

    def follow(self, pacing: Progress) -> None:
        """Starts before the first measured sample and stops after the last; call it before the first and after each."""
        if pacing.over:
            self.stop()
        elif pacing.measuring:
            self.start()

    def prepare(self) -> None:
        """Looks for the counter: that may take a while, and must not lie within what is timed."""
        if self._counter is not None or self._why is not None:
            return
        try:
            self._counter = self._find(self._kind, self._index)
        except NoCounter as none:
            self._why = {"message_id": none.message_id, "params": none.params}
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            self._fail(error)

    def start(self) -> None:
        """Begins, where it has not; the device must have been waited for."""
        self._asked = True
        if self._thread is not None:
            return
        self.prepare()
        if self._counter is None or self._why is not None:
            return
        try:
            self._last = self._counter.read()
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            self._fail(error)
            return
        self._started_s = self._last_s = time.perf_counter()
        every_s = INTEGRATE_EVERY_S if self._counter.integrated else LOOK_EVERY_S
        self._thread = threading.Thread(target=self._keep_looking, args=(every_s,), daemon=True, name="energy")
        self._thread.start()

    def stop(self) -> None:
        """Ends it, where it has begun; the device must have been waited for."""
        if self._thread is None or self._stopped.is_set():
            return
        self._look()
        self._duration_s = time.perf_counter() - self._started_s
        self._stopped.set()
        self._thread.join(timeout=1)

    @property
    def counts(self) -> bool:
        """Whether there is a counter and it is being read."""
        return self._counter is not None and self._why is None

    def told(self) -> dict[str, Any] | None:
        """For the record: joules, seconds and the counter, or why there are none; None where nobody asked for any."""
        self.stop()
        if not self._asked:
            return None
        if self._why is None and (self._duration_s or 0.0) < SHORTEST_S:
            params = {"seconds": self._duration_s or 0.0, "shortest": SHORTEST_S}
            self._why = {"message_id": "energy-too-short", "params": params}
        if self._why is not None or self._counter is None:
            return {"joules": None, "reason": self._why}
        return {
            "joules": self._joules,
            "duration_s": self._duration_s,
            "counter": self._counter.name,
            "resolution_j": self._counter.resolution_j,
            "scope": self._counter.scope,
            "method": "integrated" if self._counter.integrated else "counted",
        }

    def _keep_looking(self, every_s: float) -> None:
        while not self._stopped.wait(every_s):
            self._look()

    def _look(self) -> None:
        counter = self._counter
        if counter is None or self._why is not None:
            return
        with self._lock:
            try:
                value, now_s = counter.read(), time.perf_counter()
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                self._fail(error)
                return
            if counter.integrated:
                self._joules += (value + self._last) / 2 * (now_s - self._last_s)
            else:
                passed = value - self._last
                self._joules += passed if passed >= 0 or counter.wraps_at_j is None else passed + counter.wraps_at_j
            self._last, self._last_s = value, now_s

    def _fail(self, error: Exception) -> None:
        name = self._counter.name if self._counter else self._kind
        self._why = {"message_id": "energy-failed", "params": {"counter": name, "reason": str(error)[:200]}}


def with_energy(outcome: "Outcome", meter: Meter, idle_w: float | None) -> "Outcome":
    """The outcome with its energy, and joules per image or sample where they were counted.

    Args:
        outcome: What the workload returned.
        meter: That followed it.
        idle_w: Of the device, from its calibration.
    """
    told = meter.told()
    if told is None and (outcome.conditions.devices or 1) > 1:
        told = {"joules": None, "reason": {"message_id": "energy-several-devices", "params": {}}}
    if told is None:
        return outcome
    if told["joules"] is not None and idle_w is not None:
        told["idle_w"] = idle_w
    details = {**outcome.details, "energy": told}
    return dataclasses.replace(outcome, details=details, metrics=(*outcome.metrics, *_per_unit(outcome, told)))


def idle_watts(
    device: "Backend", check: Callable[[], None], find: Callable[[str, int], Counter] = counter_of
) -> float | None:
    """Mean power over two seconds in which nothing runs here; None where there is no counter."""
    info = device.info()
    meter = Meter(info.kind, info.index, find)
    device.synchronize()
    meter.start()
    if not meter.counts:
        return None
    deadline_s = time.perf_counter() + IDLE_S
    while time.perf_counter() < deadline_s:
        check()
        time.sleep(0.05)
    told = meter.told() or {}
    return None if told.get("joules") is None else float(told["joules"]) / float(told["duration_s"])


def _per_unit(outcome: "Outcome", told: Mapping[str, Any]) -> list[Metric]:
    """One window of the whole measured region, so there is no interval."""
    rate = next((metric for metric in outcome.metrics if metric.name in UNITS), None)
    batch = (outcome.conditions.batch_size_per_device or 0) * (outcome.conditions.devices or 1)
    if told["joules"] is None or rate is None or not rate.n * batch:
        return []
    unit = UNITS[rate.name]
    value = float(told["joules"]) / (rate.n * batch)
    return [Metric(name=f"j_per_{unit}", value=value, unit=f"J/{unit}", n=1, higher_is_better=False)]
