"""What else went on while a run was measured, and a grade from A to D with its reasons.

Two readings of counters that the system keeps anyway, one before and one after, cost the run nothing: processor time
of everything else, swapping, waiting for memory, throttling. What cannot be read is said to be so.

    A   nothing found that could have changed the number
    B   something small, or something that could not be checked
    C   the number may be off by more than its interval says
    D   the number should not be relied on

The grade is that of the worst reason. Thresholds are stated in docs/measurement.md.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from runners.records import Metric

SYSTEM = Path("/sys/devices/system/cpu")
PRESSURE = Path("/proc/pressure/memory")
SOME_BACKGROUND, MUCH_BACKGROUND, HEAVY_BACKGROUND = 0.03, 0.10, 0.25
"""Shares of all the machine's cores that other processes used during the run."""
MUCH_SWAPPED_BYTES = 16 * 2**20
MUCH_PRESSURE = 0.01
"""Share of the run during which something waited for memory."""
NARROW_HALF_WIDTH = 0.02

GRADES: dict[str, str] = {
    "impossible-not-positive": "D",
    "impossible-reciprocal": "D",
    "impossible-batch": "D",
    "impossible-memory": "D",
    "impossible-flops": "D",
    "impossible-bandwidth": "D",
    "impossible-energy": "D",
    "impossible-power": "D",
    "impossible-scaling": "D",
    "impossible-copy": "D",
    "sync-missing": "D",
    "throttled": "D",
    "swapped": "D",
    "background-heavy": "D",
    "background-much": "C",
    "memory-pressure": "C",
    "trainer-disagrees": "C",
    "too-few-samples": "C",
    "first-call-included": "C",
    "first-step-included": "C",
    "not-steady": "C",
    "level-shift": "C",
    "two-modes": "C",
    "not-warm": "C",
    "background-some": "B",
    "target-not-reached": "B",
    "interval-wide": "B",
    "spikes": "B",
    "previews-in-timed-region": "B",
    "throttling-not-readable": "B",
    "background-not-readable": "B",
}
"""Every reason and the best grade that a run with it can have."""


@dataclass(frozen=True)
class Reading:
    """Counters at one instant; None where this system has no such counter."""

    at_s: float
    busy_s: float
    """Processor time of everything on the machine since it was started."""
    own_s: float
    """Processor time of this process and its children that have ended."""
    swapped_bytes: int
    pressure_s: float | None
    throttles: int | None
    frequency_mhz: float | None


def read() -> Reading:
    """Reads the counters; takes a millisecond or two, however many processes there are."""
    times = psutil.cpu_times()
    busy = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
    swap = psutil.swap_memory()
    return Reading(
        at_s=time.monotonic(),
        busy_s=busy,
        own_s=_own_seconds(),
        swapped_bytes=int(swap.sin) + int(swap.sout),
        pressure_s=_pressure_seconds(PRESSURE),
        throttles=_throttles(SYSTEM),
        frequency_mhz=_frequency_mhz(),
    )


def readings_between(before: Reading, after: Reading, cores: int) -> dict[str, Any]:
    """What happened between two readings.

    Args:
        before: At the start of the run.
        after: At its end.
        cores: All of the machine's, since `busy_s` is about all of them.
    """
    duration_s = max(after.at_s - before.at_s, 1e-9)
    others_s = max(0.0, (after.busy_s - before.busy_s) - (after.own_s - before.own_s))
    told: dict[str, Any] = {
        "duration_s": duration_s,
        "background_share": min(1.0, others_s / (duration_s * cores)),
        "swapped_bytes": max(0, after.swapped_bytes - before.swapped_bytes),
        "memory_pressure_share": None,
        "throttles": None,
        "frequency_mhz": [before.frequency_mhz, after.frequency_mhz],
        **_arithmetic(),
    }
    if before.pressure_s is not None and after.pressure_s is not None:
        told["memory_pressure_share"] = max(0.0, after.pressure_s - before.pressure_s) / duration_s
    if before.throttles is not None and after.throttles is not None:
        told["throttles"] = max(0, after.throttles - before.throttles)
    return told


def reasons(
    readings: Mapping[str, Any], warnings: Sequence[str], metrics: Sequence[Metric], kind: str, sync_policy: str
) -> list[str]:
    """Ids of what speaks against the number, worst first; texts in `runners.messages`.

    Args:
        readings: From `readings_between`.
        warnings: What the workload remarked.
        metrics: With their intervals.
        kind: Of the device.
        sync_policy: How the host waited for it.
    """
    found = [warning for warning in warnings if warning in GRADES]
    if kind in ("cuda", "rocm", "hpu", "xpu", "mps") and (not sync_policy or sync_policy.startswith("none")):
        found.append("sync-missing")
    found += _background(readings.get("background_share"))
    if (readings.get("swapped_bytes") or 0) > MUCH_SWAPPED_BYTES:
        found.append("swapped")
    if (readings.get("memory_pressure_share") or 0.0) > MUCH_PRESSURE:
        found.append("memory-pressure")
    if readings.get("throttles") is None:
        found.append("throttling-not-readable")
    elif readings["throttles"] > 0:
        found.append("throttled")
    if any(_wide(metric) for metric in metrics):
        found.append("interval-wide")
    return sorted(dict.fromkeys(found), key=lambda reason: GRADES[reason], reverse=True)


def grade(found: Sequence[str]) -> str:
    """The worst of the reasons' grades; A where there is none."""
    return max((GRADES[reason] for reason in found if reason in GRADES), default="A")


def _background(share: float | None) -> list[str]:
    if share is None:
        return ["background-not-readable"]
    for threshold, name in (
        (HEAVY_BACKGROUND, "background-heavy"),
        (MUCH_BACKGROUND, "background-much"),
        (SOME_BACKGROUND, "background-some"),
    ):
        if share > threshold:
            return [name]
    return []


def _wide(metric: Metric) -> bool:
    if metric.interval is None or not metric.value:
        return False
    return (metric.interval[1] - metric.interval[0]) / 2 > NARROW_HALF_WIDTH * abs(metric.value)


def _own_seconds() -> float:
    """Of this process and of its children that have ended, with theirs: those of several devices are among them.

    Children that still run are not looked for: that means to look at every process of the machine, which took 140 ms
    among 470.
    """
    return float(sum(psutil.Process().cpu_times()[:4]))


def _pressure_seconds(path: Path) -> float | None:
    """Linux's total of time in which something waited for memory (Documentation/accounting/psi.rst), in seconds."""
    try:
        first = path.read_text(encoding="ascii").splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def _throttles(folder: Path) -> int | None:
    """How often the processor's cores and packages were throttled by heat since the start; Linux on x86 only."""
    counts = []
    for path in folder.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"):
        try:
            counts.append(int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return sum(counts) if counts else None


def _frequency_mhz() -> float | None:
    try:
        found = psutil.cpu_freq()
    except (OSError, NotImplementedError):
        return None
    return float(found.current) if found and found.current else None


def _arithmetic() -> dict[str, Any]:
    """What torch was told about precision and determinism; nothing where the run did not use torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "tf32_matmul": bool(torch.backends.cuda.matmul.allow_tf32),
        "tf32_convolution": bool(torch.backends.cudnn.allow_tf32),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
        "deterministic_algorithms": bool(torch.are_deterministic_algorithms_enabled()),
        "threads": int(torch.get_num_threads()),
    }
