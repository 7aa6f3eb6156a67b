"""Impossible among others: what one number alone does not show, and what published numbers break.

`runners.plausibility` holds the rules that a record breaks by itself, and marks it when it is written or imported. Here
they are applied to published rows too, and beside them two rules that need a second number. Whoever breaks one carries
it in `Measurement.warnings`, so that `data.comparability` forbids every comparison with it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from data.measurements import PROJECTED, Measurement
from runners.plausibility import Breach, breaches
from runners.records import Conditions, DeviceInfo, Metric

SCALING_MARGIN = 1.05
"""Over n times one device's rate; so much may two runs differ for other reasons."""
COPY_DIGITS = 5
"""Two devices may well agree to fewer digits; within one source and under equal conditions three are enough."""
COPY_DIGITS_IN_SOURCE = 3
COPIED = "flag-copied-placeholder"
Key = tuple[str, str, str | None]


def judged(items: Sequence[Measurement], others: Iterable[Measurement] = ()) -> list[Measurement]:
    """The measurements with what they break among their warnings.

    Args:
        items: What is judged; they are also held against each other.
        others: What they are held against besides, such as the published numbers.
    """
    found = breaches_among(items, others)
    return [_with(item, found.get(_key(item), ())) for item in items]


def breaches_among(items: Sequence[Measurement], others: Iterable[Measurement] = ()) -> dict[Key, tuple[Breach, ...]]:
    """What each measurement breaks, by id, metric and clock; those that break nothing are left out."""
    usable = [item for item in items if _usable(item)]
    known = [*(item for item in others if _usable(item)), *usable]
    found: dict[Key, tuple[Breach, ...]] = {}
    for rule in (_alone(usable), _scaling(usable, known), _copies(usable, known)):
        for item, breach in rule:
            found[_key(item)] = (*found.get(_key(item), ()), breach)
    return found


def _with(item: Measurement, found: Sequence[Breach]) -> Measurement:
    if not found:
        return item
    return replace(item, warnings=tuple(dict.fromkeys((*item.warnings, *(breach.message_id for breach in found)))))


def _key(item: Measurement) -> Key:
    return item.id, item.metric, item.conditions.timed_region


def _usable(item: Measurement) -> bool:
    return item.value is not None and math.isfinite(item.value) and item.value > 0


def _alone(items: Iterable[Measurement]) -> Iterator[tuple[Measurement, Breach]]:
    """Published numbers, which no run has marked yet."""
    for item in items:
        if item.origin != "published" or item.meaning is None:
            continue
        name, value = item.metric.removeprefix(PROJECTED).removesuffix("_per_device"), _number(item)
        if item.meaning.kind == "throughput" and item.meaning.higher_is_better:
            value = _total(item)
        metric = Metric(
            name=name,
            value=value,
            unit=item.unit,
            n=1,
            higher_is_better=item.meaning.higher_is_better,
            timed_region=item.conditions.timed_region,
        )
        device = DeviceInfo(kind=item.device_kind, name=item.label)
        for breach in breaches(item.conditions, device, [metric], {}):
            yield item, breach


def _scaling(items: Iterable[Measurement], known: Iterable[Measurement]) -> Iterator[tuple[Measurement, Breach]]:
    """More than n times the rate of one device, under conditions that are equal but for the number of devices."""
    ones: dict[tuple[object, ...], Measurement] = {}
    for item in known:
        if _is_rate(item) and item.conditions.devices == 1:
            ones.setdefault(_alike(item), item)
    for item in items:
        devices = item.conditions.devices or 1
        one = ones.get(_alike(item)) if _is_rate(item) and devices > 1 else None
        if one is None:
            continue
        share = _least(item) / (devices * _most(one))
        if share > SCALING_MARGIN:
            params = {"value": _total(item), "unit": item.unit, "devices": devices}
            yield item, Breach("impossible-scaling", {**params, "share": share, "one": _number(one), "other": one.id})


def _copies(items: Iterable[Measurement], known: Sequence[Measurement]) -> Iterator[tuple[Measurement, Breach]]:
    """The same value to the last digit as another device's: somebody filled a table in.

    Of two in one list the later is the copy; one that is known as such stays the only one.
    """
    first: dict[tuple[object, ...], list[Measurement]] = {}
    places = {id(item): place for place, item in enumerate(known)}
    for item in known:
        first.setdefault((item.metric, item.value, item.conditions), []).append(item)
    for item in items:
        if COPIED in item.flags:
            continue
        for other in first.get((item.metric, item.value, item.conditions), []):
            if COPIED in other.flags or other.device_id == item.device_id or places[id(other)] >= places[id(item)]:
                continue
            in_source = item.source_id is not None and item.source_id == other.source_id
            if _digits(_number(item)) >= (COPY_DIGITS_IN_SOURCE if in_source else COPY_DIGITS):
                params = {"value": f"{_number(item):.10g}", "unit": item.unit, "other_device": other.label}
                yield item, Breach("impossible-copy", {**params, "other": other.id})
                break


def _is_rate(item: Measurement) -> bool:
    return item.meaning is not None and item.meaning.kind == "throughput" and item.meaning.higher_is_better


def _alike(item: Measurement) -> tuple[object, ...]:
    """What has to be equal for one to be n times the other: all conditions, the device, and who measured."""
    return item.metric, item.device_id, item.source_id, item.origin, _without_devices(item.conditions)


def _without_devices(conditions: Conditions) -> Conditions:
    return replace(conditions, devices=None)


def _number(item: Measurement) -> float:
    assert item.value is not None  # noqa: S101 - `_usable` has looked
    return item.value


def _total(item: Measurement) -> float:
    per_device = item.scope == "per-device"
    return _number(item) * (item.conditions.devices or 1) if per_device else _number(item)


def _least(item: Measurement) -> float:
    """The total at the lower end of its interval, where there is one."""
    return _total(item) * (item.interval[0] / _number(item) if item.interval else 1.0)


def _most(item: Measurement) -> float:
    return _number(item) * (item.interval[1] / _number(item) if item.interval else 1.0)


def _digits(value: float) -> int:
    """Significant digits of a number as it is written shortest."""
    written = f"{value:.12g}".partition("e")[0].replace(".", "").replace("-", "").lstrip("0")
    return len(written.rstrip("0")) or 1
