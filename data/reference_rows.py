"""One CSV row -> a typed device, source or reference, or the reason why it is none."""

import dataclasses
import math
from typing import Any, get_args

from data.csv_rows import BadCell, Row, Table
from data.measurements import METRIC_MEANINGS, Scope
from data.references import Device, Reference, Source
from data.rules import FLAG_EFFECTS
from data.vocabulary import (
    CONDITION_WORDS,
    DEVICE_KINDS,
    OTHER_METRICS,
    ROUNDING,
    STATUSES,
    TIERS,
    WARMUP_RULE,
    WORKLOADS,
    converted,
    needed_for,
)
from runners.records import Conditions

CONDITION_FIELDS = tuple(field.name for field in dataclasses.fields(Conditions))


def source_from(row: Row) -> Source:
    """A row of sources.csv. BadCell says what is wrong with it."""
    return Source(
        source_id=row.text("source_id"),
        title=row.text("title"),
        publisher=row.text("publisher"),
        reference=row.text("reference"),
        date=row.optional_date("date"),
        revision=row.text("revision"),
    )


def device_from(row: Row, sources: Table[Source]) -> Device:
    """A row of devices.csv. BadCell says what is wrong with it, FollowUp that another row is."""
    memory_gb = row.number("memory_gb")
    if memory_gb is not None and not row.cells["memory_source_id"]:
        raise BadCell("row-memory-source")
    return Device(
        device_id=row.text("device_id"),
        name=row.text("name"),
        family=row.text("family"),
        vendor=row.text("vendor"),
        kind=row.choice("kind", DEVICE_KINDS),
        product=row.cells["product"],
        memory_gb=memory_gb,
        memory_source_id=row.reference("memory_source_id", sources) if memory_gb is not None else None,
        year=row.whole("year"),
        note=row.cells["note"],
    )


def reference_from(row: Row, devices: Table[Device], sources: Table[Source]) -> Reference:
    """A row of results.csv. BadCell says what is wrong with it, FollowUp that another row is."""
    scope: Any = row.choice("scope", get_args(Scope))
    reference = Reference(
        id=row.text("id"),
        device_id=row.reference("device_id", devices),
        device_as_published=row.cells["device_as_published"],
        model_as_published=row.cells["model_as_published"],
        metric=row.text("metric"),
        unit=row.text("unit"),
        value=row.number("value"),
        scope=scope,
        status=row.choice("status", STATUSES),
        canonical_metric=row.optional("canonical_metric"),
        canonical_value=row.number("canonical_value"),
        canonical_unit=row.optional("canonical_unit"),
        baseline_id=row.optional("baseline_id"),
        conditions=_conditions(row),
        assumed_fields=row.several("assumed_fields", CONDITION_FIELDS),
        assumed_source_ids=row.references("assumed_source_ids", sources),
        source_id=row.reference("source_id", sources),
        locator=row.cells["locator"],
        date=row.optional_date("date"),
        revision=row.text("revision"),
        tier=row.choice("tier", TIERS),
        flags=row.several("flags", FLAG_EFFECTS),
        caveat=row.cells["caveat"],
        line=row.line,
    )
    _check(reference)
    return reference


def _conditions(row: Row) -> Conditions:
    return Conditions(
        workload=row.choice("workload", WORKLOADS),
        model=row.optional("model"),
        weights=row.optional_choice("weights", CONDITION_WORDS["weights"]),
        width_px=row.whole("width_px"),
        height_px=row.whole("height_px"),
        sequence_length=row.whole("sequence_length"),
        target_length=row.whole("target_length"),
        steps=row.whole("steps"),
        scheduler=row.optional_choice("scheduler", CONDITION_WORDS["scheduler"]),
        guidance=row.number("guidance"),
        batch_size_per_device=row.whole("batch_size_per_device"),
        devices=row.whole("devices"),
        precision=row.optional_choice("precision", CONDITION_WORDS["precision"]),
        tf32=row.boolean("tf32"),
        timed_region=row.optional_choice("timed_region", CONDITION_WORDS["timed_region"]),
        warmup_rule=row.pattern("warmup_rule", WARMUP_RULE) if row.cells["warmup_rule"] else None,
        gradient_checkpointing=row.boolean("gradient_checkpointing"),
        optimizer=row.optional("optimizer"),
        learning_rate=row.number("learning_rate"),
        mode=row.optional_choice("mode", CONDITION_WORDS["mode"]),
        software=row.optional("software"),
        software_year=row.whole("software_year"),
        epochs=row.number("epochs"),
    )


def _check(item: Reference) -> None:
    """What one cell alone cannot tell."""
    if (item.value is None) != (item.status == "not available"):
        raise BadCell("row-value-status")
    if item.canonical_metric is None:
        if item.canonical_value is not None or item.canonical_unit is not None:
            raise BadCell("row-canonical-alone")
    else:
        _check_canonical(item, item.canonical_metric)
    for name in item.assumed_fields:
        if getattr(item.conditions, name) is None:
            raise BadCell("row-assumed-empty", value=name)
    if item.assumed_fields and not item.assumed_source_ids:
        raise BadCell("row-assumed-source")
    if item.conditions.workload != "other" and (item.conditions.model is None or item.conditions.devices is None):
        raise BadCell("row-benchmark")


def _check_canonical(item: Reference, metric: str) -> None:
    meaning = METRIC_MEANINGS.get(metric)
    if meaning is None and metric not in OTHER_METRICS:
        raise BadCell("row-canonical-metric", value=metric)
    unit = meaning.unit if meaning else OTHER_METRICS[metric]
    if item.canonical_unit != unit:
        raise BadCell("row-canonical-unit", canonical=metric, unit=unit, value=item.canonical_unit or "")
    if (item.canonical_value is None) != (item.value is None):
        raise BadCell("row-canonical-empty")
    if item.value is not None and item.canonical_value is not None:
        _check_value(item, metric, item.value, item.canonical_value, unit)


def _check_value(item: Reference, metric: str, value: float, canonical_value: float, unit: str) -> None:
    conditions = item.conditions
    needed = needed_for(item.unit, unit)
    if any(getattr(conditions, name) is None for name in needed):
        raise BadCell("row-conversion-needs", published_unit=item.unit, unit=unit, needed=", ".join(needed))
    batch_size = conditions.batch_size_per_device
    if batch_size is not None and item.scope == "total":
        batch_size *= conditions.devices or 1
    known = converted(value, item.unit, unit, batch_size=batch_size, steps=conditions.steps)
    if known is None:
        raise BadCell("row-no-conversion", published_unit=item.unit, unit=unit)
    expected, tolerance = known
    if metric.endswith("_per_device") and item.scope == "total" and conditions.devices is not None:
        expected, tolerance = expected / conditions.devices, max(tolerance, ROUNDING)
    if not math.isclose(canonical_value, expected, rel_tol=tolerance):
        raise BadCell(
            "row-canonical-value",
            value=f"{canonical_value:g}",
            published=f"{value:g}",
            published_unit=item.unit,
            expected=f"{expected:.6g}",
            unit=unit,
        )
