"""Rules that no measurement can break. A record that breaks one is kept, marked, graded D, and never compared.

Each breach carries the numbers of its rule, so that a reader can do the arithmetic again.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners.flops import flops_per_sample
from runners.peaks import MARGIN, POWER_MARGIN, Peaks, peaks_of
from runners.records import Audit, Conditions, DeviceInfo, Metric, Record
from runners.traffic import least_bytes_per_batch

TOLERANCE = 0.02
"""Two metrics of one run that say the same must agree within this share."""
IDLE_SHARE = 0.8
"""Of the idle power: it is measured over two seconds, and falls when a device cools."""
PREFIX = "impossible-"
Values = Mapping[tuple[str, str | None], float]
"""By the metric's name and its clock."""


@dataclass(frozen=True)
class Breach:
    """A rule that was broken, as a message id with parameters."""

    message_id: str
    params: Mapping[str, Any]


def breaches(
    conditions: Conditions, device: DeviceInfo, metrics: Sequence[Metric], details: Mapping[str, Any]
) -> list[Breach]:
    """All rules that a run's numbers break, in the order of this module."""
    values = {
        (metric.name, metric.timed_region): float(metric.value)
        for metric in metrics
        if _number(metric.value) is not None
    }
    peaks = peaks_of(device.name)
    return [
        *_not_positive(metrics),
        *_contradictions(values, conditions),
        *_too_much_memory(device, details),
        *_too_fast(values, conditions, peaks),
        *_impossible_power(values, conditions, peaks, details),
    ]


def marked(record: Record) -> Record:
    """The record with its breaches among the reasons of its grade, which is D then; the same record without any.

    Whoever reads a record marks it, so that one of an older version, or of another machine, is judged as well. Of a
    file that somebody has edited into nonsense nothing is said here: its reader does.
    """
    try:
        found = breaches(record.conditions, record.device, record.metrics, record.details)
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        return record
    if not found:
        return record
    audit = record.audit
    reasons = tuple(dict.fromkeys((*(breach.message_id for breach in found), *audit.reasons)))
    readings = {**audit.readings, "impossible": [dataclasses.asdict(breach) for breach in found]}
    return dataclasses.replace(record, audit=dataclasses.replace(audit, grade="D", reasons=reasons, readings=readings))


def params_of(audit: Audit, message_id: str) -> dict[str, Any]:
    """The numbers of a breach, for its sentence; empty for any other remark."""
    kept = audit.readings.get("impossible")
    for item in kept if isinstance(kept, list) else ():
        if isinstance(item, dict) and item.get("message_id") == message_id and isinstance(item.get("params"), dict):
            return dict(item["params"])
    return {}


def remarks(record: Record) -> dict[str, dict[str, Any]]:
    """What an import says of a record before it is stored: its warnings and breaches, with their numbers."""
    broken = [reason for reason in record.audit.reasons if reason.startswith(PREFIX)]
    return {name: params_of(record.audit, name) for name in (*broken, *record.audit.warnings)}


def _not_positive(metrics: Sequence[Metric]) -> list[Breach]:
    return [
        Breach("impossible-not-positive", {"metric": metric.name, "value": metric.value})
        for metric in metrics
        if metric.unit in ("s", "s/image", "s/sample", "images/s", "samples/s", "steps/s") and metric.value <= 0
    ]


def _contradictions(values: Values, conditions: Conditions) -> list[Breach]:
    """Rates against times, and samples against steps, within one clock."""
    found = []
    for region in dict.fromkeys(region for _, region in values):
        for one, many in (("image", "images"), ("sample", "samples"), ("step", "steps")):
            seconds, rate = values.get((f"s_per_{one}", region)), values.get((f"{many}_per_s", region))
            if seconds and rate and not _agree(seconds * rate, 1):
                params = {"seconds": seconds, "rate": rate, "product": seconds * rate, "what": one}
                found.append(Breach("impossible-reciprocal", params))
        found += _steps_against_samples(values, region, conditions)
    return found


def _steps_against_samples(values: Values, region: str | None, conditions: Conditions) -> Iterator[Breach]:
    """A training step is a batch of samples; of an image's steps it takes all to make one."""
    batch = (conditions.batch_size_per_device or 0) * (conditions.devices or 0)
    steps = values.get(("steps_per_s", region))
    images = conditions.workload == "text-to-image"
    samples = values.get(("images_per_s" if images else "samples_per_s", region))
    each = batch / conditions.steps if images and conditions.steps else 0 if images else batch
    if steps and samples and each and not _agree(samples, steps * each):
        yield Breach(
            "impossible-batch", {"samples": samples, "steps": steps, "batch": round(each, 6), "product": steps * each}
        )


def _too_much_memory(device: DeviceInfo, details: Mapping[str, Any]) -> list[Breach]:
    used = details.get("peak_memory_bytes")
    if not isinstance(used, int | float) or not device.memory_bytes or used <= device.memory_bytes:
        return []
    gib = 2**30
    return [Breach("impossible-memory", {"used_gib": used / gib, "available_gib": device.memory_bytes / gib})]


def _too_fast(values: Values, conditions: Conditions, peaks: Peaks | None) -> list[Breach]:
    """Implied TFLOP/s of one device above what it can do, or its weights read faster than its memory gives them."""
    found: dict[str, Breach] = {}
    if peaks is None:
        return []
    for region, rate in _rates(values):
        for breach in _against_peaks(rate, dataclasses.replace(conditions, timed_region=region), peaks):
            found.setdefault(breach.message_id, breach)
    return list(found.values())


def _rates(values: Values) -> Iterator[tuple[str | None, float]]:
    """Samples or images per second of all devices, of each clock; from the time of one where that is all there is."""
    for (name, region), value in values.items():
        if name in ("samples_per_s", "images_per_s"):
            yield region, value
        elif name in ("s_per_sample", "s_per_image") and value > 0:
            yield region, 1 / value


def _against_peaks(rate: float, conditions: Conditions, peaks: Peaks) -> Iterator[Breach]:
    devices = conditions.devices or 1
    each, peak = flops_per_sample(conditions), peaks.at(conditions.precision, conditions.tf32)
    if each is not None and peak is not None and rate / devices * each / 1e12 > MARGIN * peak:
        tflops = rate / devices * each / 1e12
        params = {"rate": rate, "devices": devices, "gflop": each / 1e9, "tflops": tflops, "peak": peak}
        yield Breach("impossible-flops", {**params, "source": peaks.source_id})
    least, bandwidth, batch = (
        least_bytes_per_batch(conditions),
        peaks.bandwidth_bytes_per_s,
        conditions.batch_size_per_device,
    )
    if least and bandwidth and batch:
        batch_s = batch * devices / rate
        if least / batch_s > MARGIN * bandwidth:
            params = {"batch_s": batch_s, "gigabytes": least / 1e9, "reached": least / batch_s / 1e9}
            yield Breach("impossible-bandwidth", {**params, "bandwidth": bandwidth / 1e9, "source": peaks.source_id})


def _impossible_power(
    values: Values, conditions: Conditions, peaks: Peaks | None, details: Mapping[str, Any]
) -> Iterator[Breach]:
    """Mean power below what the device draws when idle, or above what it may draw at most."""
    kept = details.get("energy")
    energy = kept if isinstance(kept, Mapping) else {}
    joules, seconds = _number(energy.get("joules")), _number(energy.get("duration_s"))
    if not energy:
        joules, seconds = values.get(("gpu_energy_j", None)), values.get(("duration_s", None))
    if joules is None or not seconds:
        return
    idle = _number(energy.get("idle_w")) or (peaks.idle_w if peaks else None)
    limit = peaks.limit_w if peaks else None
    devices = 1 if energy else conditions.devices or 1
    mean_w = joules / seconds / devices
    params = {"joules": joules, "seconds": seconds, "devices": devices, "mean_w": mean_w}
    if idle is not None and mean_w < IDLE_SHARE * idle:
        yield Breach("impossible-energy", {**params, "idle_w": idle})
    if limit is not None and mean_w > POWER_MARGIN * limit:
        yield Breach("impossible-power", {**params, "limit_w": limit})


def _number(value: object) -> float | None:
    """None for what is no finite number: records are anybody's."""
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if numeric and math.isfinite(value) else None  # type: ignore[arg-type]


def _agree(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * abs(b)
