"""What the length of a bar can be: the value as published, its other forms, or the ratio of a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app import charts
from app.i18n import N_, _
from data.measurements import METRIC_MEANINGS, PROJECTED, Measurement

Show = Literal["values", "rate", "seconds", "time-to-train", "speedup"]

SHOWS: dict[Show, str] = {
    "values": N_("Published values"),
    "rate": N_("Per second"),
    "seconds": N_("Seconds each"),
    "time-to-train": N_("Time to train"),
    "speedup": N_("Speed-up"),
}
TIMES_TO_TRAIN = ("time_to_similar_loss_s", "time_to_train_s", f"{PROJECTED}time_to_train_s")
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A measurement's value as a bar shows it."""

    value: float | None
    """None: not available."""
    unit: str
    text: str
    """Value and unit for people."""
    higher_is_better: bool
    interval: tuple[float, float] | None = None


def amount(item: Measurement, show: Show, *, per_device: bool) -> Amount:
    """The value of a measurement in the form that was asked for.

    Args:
        item: A speed or a time; `show` "speedup" gives it as published.
        show: Which form. A rate becomes the time for one piece and the other way round, which is 1 / value.
        per_device: Whether a sum over several devices is divided by them, or the time that goes with it multiplied.
    """
    meaning = item.meaning
    higher = meaning is None or meaning.higher_is_better
    if meaning is not None and meaning.quantity == "training":
        return _built(item, lambda value: value / SECONDS_PER_HOUR, "h", False, as_text=hours)
    devices = item.conditions.devices or 1 if per_device and is_total(item) else 1
    unit = item.unit
    if meaning is not None and meaning.kind in ("throughput", "step-rate"):
        wants_rate = {"rate": True, "seconds": False}.get(show, higher)
        if wants_rate != higher:
            unit = _other_unit(item.metric, higher=wants_rate) or unit
            return _built(item, lambda value: 1 / _per_device(value, devices, higher), unit, wants_rate, devices)
    return _built(item, lambda value: _per_device(value, devices, higher), unit, higher, devices)


def is_total(item: Measurement) -> bool:
    """Whether the value is a sum over several devices."""
    return item.scope == "total" and (item.conditions.devices or 1) > 1


def hours(value: float) -> str:
    """A time in hours as people say it: 8 h 53 min."""
    minutes = round(value * 60)
    if minutes < 1:
        return f"{charts.format_number(value * SECONDS_PER_HOUR)} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _per_device(value: float, devices: int, higher: bool) -> float:
    return value / devices if higher else value * devices


def _built(
    item: Measurement,
    convert: Callable[[float], float],
    unit: str,
    higher: bool,
    devices: int = 1,
    as_text: Callable[[float], str] | None = None,
) -> Amount:
    shown_unit = _("{unit} per device").format(unit=unit) if devices > 1 else unit
    usable = item.value is not None and item.value > 0
    value = convert(item.value) if item.value is not None and usable else item.value
    interval = None
    if item.interval is not None and item.interval[0] > 0:
        low, high = sorted(convert(bound) for bound in item.interval)
        interval = (low, high)
    if value is None:
        text = _("not available")
    else:
        text = as_text(value) if as_text else f"{charts.format_number(value)} {shown_unit}"
    return Amount(value=value, unit=shown_unit, text=text, higher_is_better=higher, interval=interval)


def _other_unit(metric: str, *, higher: bool) -> str | None:
    """The unit of the same quantity as a rate, or as the time for one."""
    quantity = METRIC_MEANINGS[metric.removeprefix(PROJECTED)].quantity
    return next(
        (
            meaning.unit
            for meaning in METRIC_MEANINGS.values()
            if meaning.quantity == quantity and meaning.higher_is_better == higher
        ),
        None,
    )
