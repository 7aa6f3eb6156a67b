"""Measurements -> the rows of a comparison: value, conditions in words, verdict against the chosen baseline.

Speed-ups come from `Verdict.ratio` and from nowhere else, so a forbidden pair cannot get one.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app import charts, state
from app.components import plain_device_name
from app.i18n import _, ngettext, translate_message
from app.words import VERDICTS, word
from data.catalogue import Catalogue
from data.comparability import Finding, Verdict, compare
from data.measurements import Measurement, measurements_of
from data.messages import FIELD_NAMES
from runners.records import Record

BarsShow = Literal["values", "rate", "seconds", "speedup"]

# The metric that a workload is charted by: what its source publishes.
CHARTED_METRICS = {
    "bert-pretraining": "samples_per_s",
    "text-to-image": "s_per_image",
    "t5-finetuning": "samples_per_s",
}
ARTICLE_TIER = "article"
PUBLISHED_CLOCK = "denoise+vae"
TRAINING_CLOCKS = ("training-steps",)
MAX_OWN_ROWS = 3
# What can be chosen as a baseline, and is looked through for runs that can be compared.
MAX_OWN_CONFIGURATIONS = 12


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement of a comparison."""

    measurement: Measurement
    verdict: Verdict | None
    """None for the baseline, which is not compared with itself."""

    @property
    def own(self) -> bool:
        """Whether it was measured here rather than published."""
        return self.measurement.origin != "published"

    @property
    def tone(self) -> charts.Tone:
        """What the bar's colour says."""
        return self.verdict.level if self.verdict else "baseline"


def published(catalogue: Catalogue, workload: str) -> list[Measurement]:
    """The article's rows, which a workload's chart shows, in the catalogue's order.

    The catalogue's other rows answer when a fairer pair is looked for.
    """
    metric = CHARTED_METRICS[workload]
    return [
        item
        for item in catalogue.measurements
        if item.conditions.workload == workload
        and item.metric == metric
        and catalogue.by_id[item.id].tier == ARTICLE_TIER
    ]


def own_results(workload: str) -> list[Measurement]:
    """The reader's own newest result of each device and configuration, on the published clock where a run has two.

    Raises:
        StoreError: The database is in other hands, or cannot be opened.
    """
    clocks = (PUBLISHED_CLOCK, *TRAINING_CLOCKS)
    found = state.own_measurements(
        workload, CHARTED_METRICS[workload], timed_regions=clocks, limit=MAX_OWN_CONFIGURATIONS
    )
    return [_with_plain_name(item) for item in found]


def charted_measurement(record: Record) -> Measurement | None:
    """A run's value of the metric that its workload is charted by, on the published clock where there are two."""
    metric = CHARTED_METRICS.get(record.workload)
    found = [item for item in measurements_of(record) if item.metric == metric]
    on_published_clock = [item for item in found if item.conditions.timed_region == PUBLISHED_CLOCK]
    return next((_with_plain_name(item) for item in on_published_clock or found), None)


def rows(measurements: Sequence[Measurement], baseline: Measurement) -> list[Row]:
    """Every measurement with its verdict against the baseline."""
    return [
        Row(measurement=item, verdict=None if item is baseline else compare(item, baseline)) for item in measurements
    ]


def drawn(found: Sequence[Row]) -> list[Row]:
    """The rows that get a bar: all published ones, the baseline, and the newest own ones that can be compared."""
    own = [row for row in found if row.own and row.verdict is not None and row.tone != "not-comparable"][:MAX_OWN_ROWS]
    return [row for row in found if not row.own or row.verdict is None or row in own]


def listed(found: Sequence[Row]) -> list[Row]:
    """The newest own runs that cannot be compared with the baseline: words say so, a bar would say otherwise."""
    return [row for row in found if row.own and row.tone == "not-comparable"][:MAX_OWN_ROWS]


def cut_note() -> str:
    """What stands under an own bar that is cut off, and in the chart's description."""
    return _("Bar cut off: it is longer than the axis.")


def title(item: Measurement) -> str:
    """The device's name; the reader's own is said to be so."""
    return _("Yours: {device}").format(device=item.label) if item.origin != "published" else item.label


def conditions(item: Measurement) -> str:
    """Batch size, devices and precision in one line; for own runs also what published rows share."""
    found = item.conditions
    batch = found.batch_size_per_device
    parts = [_("batch {count}").format(count=batch) if batch is not None else _("batch not published")]
    if found.devices is None:
        parts.append(_("devices not published"))
    elif found.devices > 1:
        parts[0] = f"{parts[0]} × {_devices(found.devices)}"
    else:
        parts.append(_devices(found.devices))
    parts.append(found.precision or _("precision not published"))
    if item.origin != "published" and found.width_px:
        parts.append(f"{found.width_px}×{found.height_px}")
    if item.origin != "published" and found.steps:
        parts.append(ngettext("{count} step", "{count} steps", found.steps).format(count=found.steps))
    return " · ".join(parts)


def name(item: Measurement) -> str:
    """Device and conditions in one line, for lists to choose from."""
    return f"{title(item)}, {conditions(item)}"


def unit(item: Measurement, *, per_device: bool, show: BarsShow = "values") -> str:
    """The unit as it stands behind a value."""
    shown = item.unit
    if _is_turned(item, show) and item.meaning is not None:
        noun = item.meaning.quantity
        shown = f"s/{noun.removesuffix('s')}" if show == "seconds" else f"{noun}/s"
    return _("{unit} per device").format(unit=shown) if per_device and _is_total(item) else shown


def value(item: Measurement, *, per_device: bool, show: BarsShow = "values") -> float | None:
    """The value as charted: as published, or divided by the devices that it is a sum over, or its reciprocal."""
    found = item.value
    if found is not None and per_device and _is_total(item):
        found /= item.conditions.devices or 1
    return 1 / found if found and _is_turned(item, show) else found


def _is_turned(item: Measurement, show: BarsShow) -> bool:
    """Whether a rate is shown as a time for each, or the other way round."""
    meaning = item.meaning
    if meaning is None or meaning.kind != "throughput":
        return False
    return show == ("seconds" if meaning.higher_is_better else "rate")


def bars(found: Sequence[Row], show: BarsShow, *, per_device: bool) -> list[charts.Bar]:
    """The rows as bars of a chart."""
    return [_speedup_bar(row) if show == "speedup" else _value_bar(row, show, per_device=per_device) for row in found]


def strong_reasons(found: Sequence[Row]) -> list[str]:
    """For each other published device without a row free of strong reservations: the heaviest reason, as a sentence.

    Where a device also has a row at the baseline's own settings, the reader has a fair bar to look at.
    """
    baseline = next(row.measurement for row in found if row.verdict is None)
    sentences: dict[str, str | None] = {}
    for row in found:
        device = row.measurement.device_id
        if row.verdict is None or row.own or row.measurement.value is None or device == baseline.device_id:
            continue
        heavy = heaviest(row.verdict)
        if heavy is None:
            sentences[device] = None
        else:
            sentences.setdefault(device, translate_message(heavy.message_id, heavy.params))
    return [sentence for sentence in sentences.values() if sentence]


def heaviest(verdict: Verdict) -> Finding | None:
    """The finding that decides: it forbids the comparison or weighs strongly; None where there is none such."""
    return next((item for item in verdict.findings if item.severity in ("forbid", "caveat-strong")), None)


def own_line(row: Row) -> str:
    """An own run and its value, where there is no bar to say so."""
    amount = value(row.measurement, per_device=False)
    text = _("not available") if amount is None else f"{charts.format_number(amount)} {row.measurement.unit}"
    return f"{title(row.measurement)}, {text}"


def forbidding_line(row: Row) -> str:
    """The conditions of an own run that cannot be compared, and what forbids it."""
    heavy = heaviest(row.verdict) if row.verdict else None
    reason = translate_message(heavy.message_id, heavy.params) if heavy else ""
    return " · ".join((conditions(row.measurement), _("Not comparable: {reason}").format(reason=reason)))


def short_verdict(row: Row) -> str:
    """The verdict in two or three words, naming what weighs most: what a reader sees at the bar."""
    heavy = heaviest(row.verdict) if row.verdict and row.verdict.level == "caveats" else None
    if heavy is None:
        return word(VERDICTS, row.tone)
    if heavy.field == "batch_size_per_device" and heavy.value_a and heavy.value_b:
        return _("batch {a} against {b}").format(a=heavy.value_a, b=heavy.value_b)
    return _("other {field}").format(field=word(FIELD_NAMES, heavy.field))


def summary(found: Sequence[Row], show: BarsShow = "values", *, per_device: bool = False) -> str:
    """The chart in one sentence, for readers who cannot see it."""
    shown = bars(found, show, per_device=per_device)
    limit = charts.cut_off_at(shown)
    parts = []
    for row, bar in zip(found, shown, strict=True):
        amount = value(row.measurement, per_device=False)
        text = _("not available") if amount is None else f"{charts.format_number(amount)} {row.measurement.unit}"
        cut = limit is not None and bar.own and bar.value is not None and bar.value > limit
        parts.append(f"{name(row.measurement)}: {text}" + (f" ({cut_note()})" if cut else ""))
    return "; ".join(parts)


def _value_bar(row: Row, show: BarsShow, *, per_device: bool) -> charts.Bar:
    amount = value(row.measurement, per_device=per_device, show=show)
    shown = unit(row.measurement, per_device=per_device, show=show)
    verdict = short_verdict(row)
    ratio = row.verdict.ratio if row.verdict else None
    mark = f"{charts.format_ratio(ratio)} · {verdict}" if ratio is not None else verdict
    return charts.Bar(
        title=title(row.measurement),
        conditions=conditions(row.measurement),
        value=amount,
        value_text=_("not available") if amount is None else f"{charts.format_number(amount)} {shown}",
        mark=mark if amount is not None else "",
        tone=row.tone,
        own=row.own,
        hover=_hover(row),
        interval=None if per_device or show != "values" else row.measurement.interval,
    )


def _speedup_bar(row: Row) -> charts.Bar:
    ratio = row.verdict.ratio if row.verdict else 1.0
    available = row.measurement.value is not None
    return charts.Bar(
        title=title(row.measurement),
        conditions=conditions(row.measurement),
        value=ratio,
        value_text=charts.format_ratio(ratio)
        if ratio is not None
        else (_("no ratio") if available else _("not available")),
        mark=short_verdict(row) if available else "",
        tone=row.tone,
        own=row.own,
        hover=_hover(row),
    )


def _hover(row: Row) -> str:
    lines = [f"<b>{html.escape(title(row.measurement))}</b>", conditions(row.measurement)]
    amount = row.measurement.value
    if amount is not None:
        lines.append(f"{charts.format_number(amount)} {row.measurement.unit}")
    lines.append(word(VERDICTS, row.tone))
    return "<br>".join(lines)


def _with_plain_name(item: Measurement) -> Measurement:
    return replace(item, label=plain_device_name(item.label))


def _devices(count: int) -> str:
    return ngettext("{count} device", "{count} devices", count).format(count=count)


def _is_total(item: Measurement) -> bool:
    return item.scope == "total" and (item.conditions.devices or 1) > 1
