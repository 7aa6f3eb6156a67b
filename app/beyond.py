"""Beyond the article: every published number that can be compared with a chosen one, the fairest first."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import pandas as pd
import streamlit as st

from app import charts, comparison, state
from app.comparison import Row
from app.components import escape, reasons, verdict_badge
from app.i18n import _, ngettext
from app.match_reference import match_button
from app.source_line import source_line
from app.words import VERDICTS, WORKLOADS, word
from data.catalogue import Catalogue
from data.comparability import compare
from data.measurements import Measurement

WORKLOAD_KEY, ROW_KEY, DEVICES_KEY, TABLE_KEY = (f"beyond_{name}" for name in ("workload", "row", "devices", "table"))
DEFAULT_ROW = "seed-sd-g2-bs8-latency"
MAX_BARS = 12


def beyond(own: Sequence[Measurement]) -> None:
    """Draws the section.

    Args:
        own: The reader's own results of all workloads, which may be the chosen number too.
    """
    catalogue = state.catalogue()
    workload = st.segmented_control(
        _("Workload"),
        list(comparison.CHARTED_METRICS),
        format_func=lambda name: word(WORKLOADS, name),
        key=WORKLOAD_KEY,
        default="text-to-image",
        required=True,
    )
    pool = _pool(catalogue, str(workload))
    mine = [item for item in own if item.conditions.workload == workload]
    chosen = _choose([*comparison.published(catalogue, str(workload)), *mine])
    found = (
        _among_published(catalogue, str(workload), chosen.id)
        if chosen.origin == "published"
        else _comparable(pool, chosen)
    )
    others = len(pool) - len(found) - (chosen in pool)
    if not found:
        st.caption(_("No published number can be compared with it."))
        return
    found = _filtered(found)
    _chart(found, chosen)
    hidden = ngettext(
        "{count} published number cannot be compared with it and is left out.",
        "{count} published numbers cannot be compared with it and are left out.",
        others,
    )
    st.caption(hidden.format(count=others))
    _table(found, catalogue)


def _pool(catalogue: Catalogue, workload: str) -> list[Measurement]:
    return [item for item in catalogue.measurements if item.conditions.workload == workload and item.value is not None]


def _choose(candidates: Sequence[Measurement]) -> Measurement:
    by_id = {item.id: item for item in candidates if item.value is not None}
    if st.session_state.get(ROW_KEY) not in by_id:
        st.session_state[ROW_KEY] = DEFAULT_ROW if DEFAULT_ROW in by_id else next(iter(by_id))
    labels = {item_id: comparison.name(item) for item_id, item in by_id.items()}
    return by_id[st.selectbox(_("Compare with"), list(labels), format_func=labels.__getitem__, key=ROW_KEY)]


def _comparable(pool: Sequence[Measurement], chosen: Measurement) -> list[Row]:
    """The rows with a ratio, the fairest first, the faster first among equals."""
    rows = [Row(measurement=item, verdict=compare(item, chosen)) for item in pool if item.id != chosen.id]
    usable = [row for row in rows if row.verdict is not None and row.verdict.ratio is not None]
    return sorted(usable, key=lambda row: (row.verdict.weight[:3], -(row.verdict.ratio or 0.0)) if row.verdict else ())


@lru_cache(maxsize=64)
def _among_published(catalogue: Catalogue, workload: str, chosen_id: str) -> list[Row]:
    # Some hundred verdicts that are the same for every reader.
    return _comparable(_pool(catalogue, workload), catalogue.measurement(chosen_id))


def _filtered(found: list[Row]) -> list[Row]:
    names = sorted({row.measurement.label for row in found})
    chosen = st.multiselect(_("Devices"), names, key=DEVICES_KEY, placeholder=_("All"))
    return [row for row in found if not chosen or row.measurement.label in chosen]


def _chart(found: Sequence[Row], chosen: Measurement) -> None:
    """One bar per device: its fairest number, so that a device with many rows does not fill the chart."""
    fairest: dict[str, Row] = {}
    for row in found:
        fairest.setdefault(row.measurement.device_id, row)
    shown = [Row(measurement=chosen, verdict=None), *list(fairest.values())[:MAX_BARS]]
    st.plotly_chart(
        charts.bars(comparison.bars(shown, "speedup", per_device=False)),
        key="beyond-chart",
        config=charts.CONFIG,
        alt=comparison.summary(shown),
    )


def _table(found: Sequence[Row], catalogue: Catalogue) -> None:
    # Columns are named by ids and only called by words: in another language two words may be one.
    labels = {
        "device": _("Device"),
        "ratio": _("Ratio"),
        "verdict": _("Verdict"),
        "value": _("Value"),
        "unit": _("Unit"),
        "batch": _("Batch"),
        "devices": _("Devices"),
        "precision": _("Precision"),
        "software": _("Software"),
        "date": _("Date"),
    }
    levels = {level: word(VERDICTS, level) for level in VERDICTS}
    frame = pd.DataFrame([_line(row, catalogue, levels) for row in found], columns=list(labels))
    event = st.dataframe(
        frame,
        key=TABLE_KEY,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            **{name: st.column_config.Column(label) for name, label in labels.items()},
            "ratio": st.column_config.NumberColumn(labels["ratio"], format="%.2f×"),
            "value": st.column_config.NumberColumn(labels["value"], format="%.4g"),
        },
        placeholder="–",
        alt=_("Table of published numbers"),
    )
    selected = event.selection.rows
    if selected and selected[0] < len(found):
        _details(found[selected[0]], catalogue)
    else:
        st.caption(_("Select a row to see why, and where it was published."))


def _line(row: Row, catalogue: Catalogue, levels: Mapping[str, str]) -> tuple[object, ...]:
    item, conditions = row.measurement, row.measurement.conditions
    return (
        item.label,
        row.verdict.ratio if row.verdict else None,
        levels[row.tone],
        item.value,
        item.unit,
        conditions.batch_size_per_device,
        conditions.devices,
        conditions.precision,
        conditions.software,
        catalogue.by_id[item.id].date,
    )


def _details(row: Row, catalogue: Catalogue) -> None:
    reference = catalogue.by_id[row.measurement.id]
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{escape(comparison.name(row.measurement))}**", width="content")
            if row.verdict is not None:
                verdict_badge(row.verdict.level)
        raw = f"{reference.metric} = {reference.value:g} {reference.unit}" if reference.value is not None else "–"
        st.caption(escape(_("As published: {raw}; {model}").format(raw=raw, model=reference.model_as_published)))
        if row.verdict is not None:
            reasons(row.verdict)
        if reference.caveat:
            st.caption(escape(reference.caveat))
        source_line([row.measurement], catalogue)
        st.caption(escape(reference.revision))
        match_button(reference, "beyond")
