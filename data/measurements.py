"""A measurement: one number with everything that a comparison has to know about it.

A reference row and a metric of our own run become the same type here, so that `data.comparability` makes no difference
between a published number and a measured one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from runners.audit import GRADES
from runners.plausibility import marked
from runners.records import Conditions, Metric, Record

Kind = Literal["throughput", "step-rate", "latency", "time-to-train", "time-to-similar-loss", "quality"]
Origin = Literal["published", "measured", "projected"]
Scope = Literal["total", "per-device"]

PROJECTED = "projected_"
"""Prefix of metrics that are extrapolated from a shorter run, such as projected_time_to_train_s."""


@dataclass(frozen=True, kw_only=True)
class MetricMeaning:
    """What a metric's name says, so that two names for one quantity can be compared."""

    kind: Kind
    """Which column of the comparability table applies."""
    quantity: str
    """images, samples, steps, batch, training, …: metrics of the same quantity and kind can be compared."""
    unit: str
    higher_is_better: bool
    scope: Scope = "total"


_RATES: tuple[tuple[str, Kind, str], ...] = (
    ("image", "throughput", "images"),
    ("sample", "throughput", "samples"),
    ("step", "step-rate", "steps"),
)
_TIMES: tuple[tuple[str, Kind, str], ...] = (
    ("batch_latency_s", "latency", "batch"),
    ("time_to_train_s", "time-to-train", "training"),
    ("time_to_similar_loss_s", "time-to-similar-loss", "training"),
)


def _meanings() -> dict[str, MetricMeaning]:
    table = {
        name: MetricMeaning(kind=kind, quantity=quantity, unit="s", higher_is_better=False)
        for name, kind, quantity in _TIMES
    }
    for noun, kind, quantity in _RATES:
        rate, seconds = f"{quantity}_per_s", f"s_per_{noun}"
        table[rate] = MetricMeaning(kind=kind, quantity=quantity, unit=f"{quantity}/s", higher_is_better=True)
        table[f"{rate}_per_device"] = replace(table[rate], scope="per-device")
        table[seconds] = MetricMeaning(kind=kind, quantity=quantity, unit=f"s/{noun}", higher_is_better=False)
    table["final_loss"] = MetricMeaning(kind="quality", quantity="loss", unit="", higher_is_better=False)
    return table


SERIOUS = ("C", "D")
METRIC_MEANINGS: Mapping[str, MetricMeaning] = _meanings()
"""Canonical metrics. A name that is not here (a printed ratio, a memory size, a load time) yields no speed-up."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One value of one metric under stated conditions."""

    id: str
    """Id of the reference row, or of the run."""
    label: str
    """The device, as a person calls it; used in sentences."""
    device_id: str
    """`device_id` of devices.csv for references; the driver's name for runs."""
    device_kind: str
    """hpu, cuda, rocm, xpu, mps, cpu or none."""
    metric: str
    value: float | None
    """None: not available."""
    unit: str
    interval: tuple[float, float] | None = None
    """95 % interval; None where none is known."""
    scope: Scope = "total"
    """Whether the value is the sum over all devices or belongs to one."""
    conditions: Conditions
    assumed_fields: tuple[str, ...] = ()
    """Conditions that the source does not state and that are reconstructed."""
    flags: tuple[str, ...] = ()
    """Message ids of remarks on the source."""
    source_id: str | None = None
    """`source_id` of sources.csv; None for our own runs."""
    origin: Origin = "measured"
    status: str = "ok"
    """Status of the run; references are always ok."""
    warnings: tuple[str, ...] = ()
    """What the run itself found wrong with its measurement: keys of `runners.messages`."""
    grade: str | None = None
    """A to D: how far a run can be relied on; None for published numbers and imported runs."""

    @property
    def meaning(self) -> MetricMeaning | None:
        """What the metric's name says, or None where it is not a comparable quantity."""
        return METRIC_MEANINGS.get(self.metric.removeprefix(PROJECTED))


def measurements_of(record: Record) -> list[Measurement]:
    """All metrics of a run as measurements, in the record's order."""
    record = marked(record)
    return [
        measurement_of(
            run_id=record.run_id,
            device_name=record.device.name,
            device_kind=record.device.kind,
            status=record.status,
            warnings=doubts(record.audit.warnings, record.audit.reasons),
            grade=record.audit.grade,
            conditions=record.conditions,
            metric=metric,
        )
        for metric in record.metrics
    ]


def doubts(warnings: Sequence[str], reasons: Sequence[str]) -> tuple[str, ...]:
    """What a comparison with a run has to say: its own remarks, and what gave it the grade C or D."""
    serious = (reason for reason in reasons if GRADES.get(reason, "A") in SERIOUS)
    return tuple(dict.fromkeys((*warnings, *serious)))


def measurement_of(
    *,
    run_id: str,
    device_name: str,
    device_kind: str,
    status: str,
    warnings: tuple[str, ...],
    grade: str | None,
    conditions: Conditions,
    metric: Metric,
) -> Measurement:
    """One metric of a run; the metric's own timed region wins over that of the run."""
    if metric.timed_region is not None:
        conditions = replace(conditions, timed_region=metric.timed_region)
    meaning = METRIC_MEANINGS.get(metric.name.removeprefix(PROJECTED))
    return Measurement(
        id=run_id,
        label=device_name,
        device_id=device_name,
        device_kind=device_kind,
        metric=metric.name,
        value=_number(metric.value),
        unit=metric.unit,
        interval=metric.interval,
        scope=meaning.scope if meaning else "total",
        conditions=conditions,
        origin="projected" if metric.name.startswith(PROJECTED) else "measured",
        status=status,
        warnings=warnings,
        grade=grade,
    )


def _number(value: float | None) -> float | None:
    """None for what is not a number: records and the index write it as empty."""
    return None if value is None or math.isnan(value) else value
