"""One CSV row -> a typed device, source or reference, or the reason why it is none."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, get_args

from data.measurements import METRIC_MEANINGS, Scope
from data.references import Device, Reference, Source
from data.rules import FLAG_EFFECTS
from runners.records import Conditions

WORKLOADS = ("text-to-image", "bert-pretraining", "t5-finetuning", "other")
TIERS = ("article", "same-harness", "same-task", "related")
STATUSES = ("published", "not available")
OTHER_METRICS = {"printed_speedup": "x", "device_memory_gb": "GB", "devices_per_server": "devices"}
"""Canonical metrics that are no speeds, with their units."""
CONDITION_FIELDS = tuple(field.name for field in dataclasses.fields(Conditions))
ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


class Row:
    """One CSV row: typed access to its cells, with reasons that name the column."""

    def __init__(self, cells: Mapping[str, str], line: int) -> None:
        """Takes the cells by column, and the line of the file."""
        self.cells = cells
        self.line = line

    def text(self, column: str) -> str:
        """A cell that must not be empty."""
        if not (value := self.cells[column]):
            raise ValueError(f"{column} is empty")
        return value

    def optional(self, column: str) -> str | None:
        """A cell that may be empty."""
        return self.cells[column] or None

    def choice(self, column: str, known: Any) -> str:
        """One of the known values."""
        if (value := self.text(column)) not in known:
            raise ValueError(f"{column} “{value}” is not one of {', '.join(known)}")
        return value

    def pattern(self, column: str, pattern: re.Pattern[str]) -> str:
        """A cell of that form."""
        if not pattern.fullmatch(value := self.text(column)):
            raise ValueError(f"{column} “{value}” is not of the form {pattern.pattern}")
        return value

    def number(self, column: str) -> float | None:
        """A number above zero, or None for an empty cell."""
        if not (value := self.cells[column]):
            return None
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"{column} “{value}” is not a number") from None
        if not math.isfinite(number) or number <= 0:
            raise ValueError(f"{column} “{value}” is not a number above zero")
        return number

    def whole(self, column: str) -> int | None:
        """A whole number above zero, or None for an empty cell."""
        number = self.number(column)
        if number is not None and number != int(number):
            raise ValueError(f"{column} “{self.cells[column]}” is not a whole number")
        return None if number is None else int(number)

    def boolean(self, column: str) -> bool | None:
        """A cell of true or false, or None for an empty cell."""
        value = self.cells[column]
        if value not in ("", "true", "false"):
            raise ValueError(f"{column} “{value}” is neither true nor false")
        return value == "true" if value else None

    def several(self, column: str, known: Any) -> tuple[str, ...]:
        """Known values, separated by semicolons."""
        values = tuple(item for item in self.cells[column].split(";") if item)
        for value in values:
            if value not in known:
                raise ValueError(f"{column} names “{value}”, which is not known")
        return values


def source_from(row: Row) -> Source:
    """A row of sources.csv. ValueError says what is wrong with it."""
    return Source(
        source_id=row.text("source_id"),
        title=row.text("title"),
        publisher=row.text("publisher"),
        reference=row.text("reference"),
        date=row.pattern("date", DATE),
        revision=row.text("revision"),
    )


def device_from(row: Row, sources: Mapping[str, Source]) -> Device:
    """A row of devices.csv. ValueError says what is wrong with it."""
    memory_gb = row.number("memory_gb")
    if memory_gb is None:
        raise ValueError("memory_gb is empty")
    return Device(
        device_id=row.text("device_id"),
        name=row.text("name"),
        family=row.text("family"),
        vendor=row.text("vendor"),
        kind=row.choice("kind", ("hpu", "cuda", "rocm", "xpu", "mps", "cpu")),
        product=row.cells["product"],
        memory_gb=memory_gb,
        memory_source_id=row.choice("memory_source_id", sources),
        year=row.whole("year"),
        note=row.cells["note"],
    )


def reference_from(row: Row, devices: Mapping[str, Device], sources: Mapping[str, Source]) -> Reference:
    """A row of results.csv. ValueError says what is wrong with it."""
    scope: Any = row.choice("scope", get_args(Scope))
    reference = Reference(
        id=row.text("id"),
        device_id=row.choice("device_id", devices),
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
        assumed_source_ids=row.several("assumed_source_ids", sources),
        source_id=row.choice("source_id", sources),
        date=row.pattern("date", DATE),
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
        weights=row.optional("weights"),
        width_px=row.whole("width_px"),
        height_px=row.whole("height_px"),
        sequence_length=row.whole("sequence_length"),
        target_length=row.whole("target_length"),
        steps=row.whole("steps"),
        scheduler=row.optional("scheduler"),
        guidance=row.number("guidance"),
        batch_size_per_device=row.whole("batch_size_per_device"),
        devices=row.whole("devices"),
        precision=row.optional("precision"),
        tf32=row.boolean("tf32"),
        timed_region=row.optional("timed_region"),
        warmup_rule=row.optional("warmup_rule"),
        gradient_checkpointing=row.boolean("gradient_checkpointing"),
        optimizer=row.optional("optimizer"),
        learning_rate=row.number("learning_rate"),
        mode=row.optional("mode"),
        software=row.optional("software"),
        software_year=row.whole("software_year"),
        epochs=row.number("epochs"),
    )


def _check(item: Reference) -> None:
    """What one cell alone cannot tell."""
    if (item.value is None) != (item.status == "not available"):
        raise ValueError("value must be empty exactly where status is “not available”")
    if item.canonical_metric is None:
        if item.canonical_value is not None or item.canonical_unit is not None:
            raise ValueError("canonical_value and canonical_unit need a canonical_metric")
    else:
        _check_canonical(item, item.canonical_metric)
    for name in item.assumed_fields:
        if getattr(item.conditions, name) is None:
            raise ValueError(f"assumed_fields names {name}, which is empty")
    if item.assumed_fields and not item.assumed_source_ids:
        raise ValueError("assumed_fields needs assumed_source_ids: where the values come from")
    if item.conditions.workload != "other" and (item.conditions.model is None or item.conditions.devices is None):
        raise ValueError("a benchmark row needs its model and number of devices")


def _check_canonical(item: Reference, metric: str) -> None:
    meaning = METRIC_MEANINGS.get(metric)
    if meaning is None and metric not in OTHER_METRICS:
        raise ValueError(f"canonical_metric “{metric}” is not known")
    unit = meaning.unit if meaning else OTHER_METRICS[metric]
    if item.canonical_unit != unit:
        raise ValueError(f"canonical_unit of {metric} must be “{unit}”, not “{item.canonical_unit}”")
    if (item.canonical_value is None) != (item.value is None):
        raise ValueError("canonical_value must be empty exactly where value is")
