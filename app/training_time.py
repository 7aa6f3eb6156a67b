"""The article's training times as what they are: times to similar loss."""

import streamlit as st

from app import charts, comparison, state
from app.comparison import Row
from app.components import escape
from app.i18n import _, translate_message
from data.comparability import compare

METRIC = "time_to_similar_loss_s"
BASELINE = "seed-bert-g1-bs32-traintime"


def training_time() -> None:
    """Draws the three times with their verdicts against first-generation Gaudi."""
    catalogue = state.catalogue()
    found = [
        item
        for item in catalogue.measurements
        if item.metric == METRIC and item.value is not None and catalogue.by_id[item.id].tier == comparison.ARTICLE_TIER
    ]
    baseline = next((item for item in found if item.id == BASELINE), None)
    if baseline is None:
        st.caption(_("No number is known for this workload."))
        return
    rows = [Row(measurement=item, verdict=None if item is baseline else compare(item, baseline)) for item in found]
    bars = [
        charts.Bar(
            title=comparison.title(row.measurement),
            conditions=" · ".join((comparison.conditions(row.measurement), _steps(row))),
            value=(row.measurement.value or 0.0) / 3600,
            value_text=hours(row.measurement.value or 0.0),
            mark=_mark(row),
            tone=row.tone,
        )
        for row in rows
    ]
    st.markdown(_("How long BERT pretraining took until the loss was about the same, as published. Shorter is faster."))
    st.plotly_chart(
        charts.bars(bars),
        key="training-time",
        config=charts.CONFIG,
        alt="; ".join(f"{bar.title}, {bar.conditions}: {bar.value_text}" for bar in bars),
    )
    for row in rows:
        heavy = comparison.heaviest(row.verdict) if row.verdict else None
        if heavy is not None:
            st.markdown(f":orange[:material/warning:] {escape(translate_message(heavy.message_id, heavy.params))}")


def hours(seconds: float) -> str:
    """A duration as 8 h 53 min."""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _steps(row: Row) -> str:
    steps = row.measurement.conditions.steps
    return _("{count:,} steps").format(count=steps) if steps else _("steps not published")


def _mark(row: Row) -> str:
    if row.verdict is None or row.verdict.ratio is None:
        return comparison.short_verdict(row)
    return f"{charts.format_ratio(row.verdict.ratio)} · {comparison.short_verdict(row)}"
