"""What a set of runs shares, and what differs between them: said once, and in columns."""

import dataclasses
from collections.abc import Callable, Sequence

from data.exports.selection import ChosenRun
from data.messages import FIELD_NAMES, METRIC_NAMES
from runners.records import Conditions, Metric, Record


def split(runs: Sequence[ChosenRun]) -> tuple[dict[str, object], list[str]]:
    """The conditions that all runs share, and the names of those that differ; what nobody states is in neither."""
    shared: dict[str, object] = {}
    differing: list[str] = []
    for item in dataclasses.fields(Conditions):
        values = [getattr(run.record.conditions, item.name) for run in runs]
        if all(value == values[0] for value in values):
            if values[0] is not None:
                shared[item.name] = values[0]
        else:
            differing.append(item.name)
    return shared, differing


def headline(record: Record) -> Metric | None:
    """The first metric: the one that the run is about."""
    return next((metric for metric in record.metrics if metric.value == metric.value), None)


def number(value: float) -> str:
    """Four significant digits, and thousands set apart."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def measured(metric: Metric | None, nothing: str) -> str:
    """A metric's value with unit and interval."""
    if metric is None:
        return nothing
    interval = f" ({number(metric.interval[0])} to {number(metric.interval[1])})" if metric.interval else ""
    return f"{number(metric.value)} {metric.unit}".rstrip() + interval


def field_name(name: str, translate: Callable[[str], str]) -> str:
    """A condition's name in the reader's language."""
    return translate(FIELD_NAMES.get(name, name.replace("_", " ")))


def metric_name(name: str, translate: Callable[[str], str]) -> str:
    """A metric's name in the reader's language."""
    return translate(METRIC_NAMES.get(name, name.replace("_", " ")))


def cell(value: object, nothing: str) -> str:
    """A condition's value as text."""
    if value is None:
        return nothing
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
