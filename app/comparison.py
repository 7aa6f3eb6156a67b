"""Measurements -> the rows of a comparison: value, conditions in words, verdict against the chosen baseline.

Speed-ups come from `Verdict.ratio` and from nowhere else, so a forbidden pair cannot get one.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app import amounts, charts, state
from app.amounts import Show
from app.components import plain_device_name
from app.i18n import _, ngettext, translate_message
from app.words import VERDICTS, word
from data.catalogue import Catalogue
from data.comparability import Verdict, compare
from data.measurements import Measurement, measurements_of
from data.messages import FIELD_NAMES
from data.plausibility import judged
from runners.records import Record

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
    def look(self) -> charts.Look:
        """How the bar is filled: a projection is no measurement, and neither is a published number."""
        return {"published": "published", "projected": "projected"}.get(self.measurement.origin, "own")  # type: ignore[return-value]

    @property
    def tone(self) -> charts.Tone:
        """What the bar's colour says."""
        return self.verdict.level if self.verdict else "baseline"


def published(catalogue: Catalogue, workload: str, show: Show = "values") -> list[Measurement]:
    """The article's rows, which a workload's chart shows, in the catalogue's order.

    The catalogue's other rows answer when a fairer pair is looked for.
    """
    metrics = charted_metrics(workload, show)
    return [
        item
        for item in catalogue.measurements
        if item.conditions.workload == workload
        and item.metric in metrics
        and catalogue.by_id[item.id].tier == ARTICLE_TIER
    ]


def charted_metrics(workload: str, show: Show) -> tuple[str, ...]:
    """The metrics that a workload's chart shows."""
    return amounts.TIMES_TO_TRAIN if show == "time-to-train" else (CHARTED_METRICS[workload],)


def own_results(workload: str, show: Show = "values") -> list[Measurement]:
    """The reader's own newest result of each device and configuration, on the published clock where a run has two.

    Raises:
        StoreError: The database is in other hands, or cannot be opened.
    """
    clocks = (PUBLISHED_CLOCK, *TRAINING_CLOCKS)
    found = [
        item
        for metric in charted_metrics(workload, show)
        for item in state.own_measurements(workload, metric, timed_regions=clocks, limit=MAX_OWN_CONFIGURATIONS)
    ]
    return [_with_plain_name(item) for item in judged(found, state.catalogue().measurements)]


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
    if item.origin == "projected":
        return _("Yours, projected: {device}").format(device=item.label)
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
    trained = item.meaning is not None and item.meaning.quantity == "training"
    if found.steps and (trained or item.origin != "published"):
        parts.append(ngettext("{count} step", "{count} steps", found.steps).format(count=f"{found.steps:,}"))
    return " · ".join(parts)


def name(item: Measurement) -> str:
    """Device and conditions in one line, for lists to choose from."""
    return f"{title(item)}, {conditions(item)}"


def bars(found: Sequence[Row], show: Show, *, per_device: bool) -> list[charts.Bar]:
    """The rows as bars of a chart."""
    return [_speedup_bar(row) if show == "speedup" else _value_bar(row, show, per_device=per_device) for row in found]


def own_line(row: Row) -> str:
    """An own run and its value, where there is no bar to say so."""
    return f"{title(row.measurement)}, {amounts.amount(row.measurement, 'values', per_device=False).text}"


def forbidding_line(row: Row) -> str:
    """The conditions of an own run that cannot be compared, and what forbids it."""
    heavy = row.verdict.heaviest if row.verdict else None
    reason = translate_message(heavy.message_id, heavy.params) if heavy else ""
    return " · ".join((conditions(row.measurement), _("Not comparable: {reason}").format(reason=reason)))


def short_verdict(row: Row) -> str:
    """The verdict in two or three words, naming what weighs most: what a reader sees at the bar."""
    heavy = row.verdict.heaviest if row.verdict and row.verdict.level == "caveats" else None
    if heavy is None:
        return word(VERDICTS, row.tone)
    if heavy.field == "batch_size_per_device" and heavy.value_a and heavy.value_b:
        return _("batch {a} against {b}").format(a=heavy.value_a, b=heavy.value_b)
    return _("other {field}").format(field=word(FIELD_NAMES, heavy.field))


def mark(row: Row) -> str:
    """Who it is and the ratio, for the button that opens the verdict."""
    ratio = row.verdict.ratio if row.verdict else None
    batch = row.measurement.conditions.batch_size_per_device
    who = (
        title(row.measurement)
        if batch is None
        else _("{device}, batch {count}").format(device=title(row.measurement), count=batch)
    )
    return f"{who} · {charts.format_ratio(ratio)}" if ratio is not None else who


def summary(found: Sequence[Row], show: Show = "values", *, per_device: bool = False) -> str:
    """The chart in one sentence, for readers who cannot see it."""
    shown = bars(found, show, per_device=per_device)
    limit = charts.cut_off_at(shown)
    parts = []
    for row, bar in zip(found, shown, strict=True):
        text = amounts.amount(row.measurement, show, per_device=per_device).text
        cut = limit is not None and bar.own and bar.value is not None and bar.value > limit
        parts.append(f"{name(row.measurement)}: {text}" + (f" ({cut_note()})" if cut else ""))
    return "; ".join(parts)


def _value_bar(row: Row, show: Show, *, per_device: bool) -> charts.Bar:
    shown = amounts.amount(row.measurement, show, per_device=per_device)
    verdict = short_verdict(row)
    ratio = row.verdict.ratio if row.verdict else None
    text = f"{charts.format_ratio(ratio)} · {verdict}" if ratio is not None else verdict
    return charts.Bar(
        title=title(row.measurement),
        conditions=conditions(row.measurement),
        value=shown.value,
        value_text=shown.text,
        mark=text if shown.value is not None else "",
        tone=row.tone,
        look=row.look,
        hover=_hover(row, shown.text),
        interval=shown.interval,
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
        look=row.look,
        hover=_hover(row, amounts.amount(row.measurement, "values", per_device=False).text),
        interval=row.verdict.interval if row.verdict else None,
    )


def _hover(row: Row, text: str) -> str:
    who = f"<b>{html.escape(title(row.measurement))}</b>"
    lines = [who, conditions(row.measurement), html.escape(text), word(VERDICTS, row.tone)]
    if row.measurement.grade:
        lines.append(html.escape(_("Grade {grade}").format(grade=row.measurement.grade)))
    return "<br>".join(lines)


def _with_plain_name(item: Measurement) -> Measurement:
    return replace(item, label=plain_device_name(item.label))


def _devices(count: int) -> str:
    return ngettext("{count} device", "{count} devices", count).format(count=count)
