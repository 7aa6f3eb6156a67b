"""Rules that no measurement can break. A record that breaks one is kept, marked, graded D, and never compared.

Each breach carries the numbers of its rule, so that a reader can do the arithmetic again.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners.flops import flops_per_sample, peak_tflops
from runners.records import Audit, Conditions, DeviceInfo, Metric, Record

TOLERANCE = 0.02
"""Two metrics of one run that say the same must agree within this share."""
PREFIX = "impossible-"


@dataclass(frozen=True)
class Breach:
    """A rule that was broken, as a message id with parameters."""

    message_id: str
    params: Mapping[str, Any]


def breaches(
    conditions: Conditions, device: DeviceInfo, metrics: Sequence[Metric], details: Mapping[str, Any]
) -> list[Breach]:
    """All rules that a run's numbers break, in the order of this module."""
    values = {(metric.name, metric.timed_region): float(metric.value) for metric in metrics}
    found = [*_not_positive(metrics), *_contradictions(values, conditions)]
    found += _too_much_memory(device, details)
    found += _too_fast(values, conditions, device)
    return found


def marked(record: Record) -> Record:
    """The record with its breaches among the reasons of its grade, which is D then; the same record without any."""
    found = breaches(record.conditions, record.device, record.metrics, record.details)
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


def _contradictions(values: Mapping[tuple[str, str | None], float], conditions: Conditions) -> list[Breach]:
    """Rates against times, and samples against steps, within one clock."""
    found = []
    batch = (conditions.batch_size_per_device or 0) * (conditions.devices or 0)
    for region in {region for _, region in values}:
        for one, many in (("image", "images"), ("sample", "samples"), ("step", "steps")):
            seconds, rate = values.get((f"s_per_{one}", region)), values.get((f"{many}_per_s", region))
            if seconds and rate and not _agree(seconds * rate, 1):
                params = {"seconds": seconds, "rate": rate, "product": seconds * rate, "what": one}
                found.append(Breach("impossible-reciprocal", params))
        steps, samples = values.get(("steps_per_s", region)), values.get(("samples_per_s", region))
        if steps and samples and batch and not _agree(samples, steps * batch):
            params = {"samples": samples, "steps": steps, "batch": batch, "product": steps * batch}
            found.append(Breach("impossible-batch", params))
    return found


def _too_much_memory(device: DeviceInfo, details: Mapping[str, Any]) -> list[Breach]:
    used = details.get("peak_memory_bytes")
    if not isinstance(used, int | float) or not device.memory_bytes or used <= device.memory_bytes:
        return []
    gib = 2**30
    return [Breach("impossible-memory", {"used_gib": used / gib, "available_gib": device.memory_bytes / gib})]


def _too_fast(
    values: Mapping[tuple[str, str | None], float], conditions: Conditions, device: DeviceInfo
) -> list[Breach]:
    """Implied TFLOP/s of one device above what it can do."""
    each, peak = flops_per_sample(conditions), peak_tflops(device.name, conditions.precision)
    rates = [value for (name, _), value in values.items() if name == "samples_per_s"]
    if each is None or peak is None or not rates:
        return []
    devices = conditions.devices or 1
    implied = max(rates) / devices * each / 1e12
    if implied <= peak:
        return []
    params = {"rate": max(rates), "devices": devices, "gflop": each / 1e9, "tflops": implied, "peak": peak}
    return [Breach("impossible-flops", params)]


def _agree(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * abs(b)
