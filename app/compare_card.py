"""One card of the Compare page: a workload's question, its chart against a baseline, the reasons, the sources."""

from collections.abc import Sequence
from functools import lru_cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import charts, comparison, state
from app.comparison import BarsShow, Row
from app.components import escape, verdict_badge, verdict_details
from app.i18n import N_, _, translate_message
from app.match_reference import match_button
from app.words import WORKLOADS, word
from data.better_pair import BetterPair, better_pair
from data.catalogue import Catalogue
from data.measurements import Measurement

ICONS = {
    "bert-pretraining": ":material/menu_book:",
    "text-to-image": ":material/image:",
    "t5-finetuning": ":material/summarize:",
}
QUESTIONS = {
    "bert-pretraining": N_("How many texts per second does training a language model from scratch get through?"),
    "text-to-image": N_("How long does one image of Stable Diffusion take?"),
    "t5-finetuning": N_("How many articles per second does teaching T5-3B to summarize get through?"),
}
FASTER = {True: N_("Longer bars are faster."), False: N_("Shorter bars are faster.")}
# The article is remembered for "Gaudi2 against A100", so that is the pair that a visitor finds.
DEFAULT_BASELINES = {
    "bert-pretraining": "seed-bert-a100-bs32-throughput",
    "text-to-image": "seed-sd-a100-bs1-latency",
    "t5-finetuning": "seed-t5-a100-bs16-throughput",
}


def card(
    workload: str, own: Sequence[Measurement], show: BarsShow, *, per_device: bool, log_scale: bool = False
) -> None:
    """Draws the card of one workload.

    Args:
        workload: Which of the charted workloads.
        own: The reader's own results for it.
        show: What the bars' lengths are.
        per_device: Whether sums over several devices are divided by them.
        log_scale: Whether equal ratios have equal lengths.
    """
    catalogue = state.catalogue()
    measurements = [*comparison.published(catalogue, workload), *own]
    st.subheader(word(WORKLOADS, workload), icon=ICONS[workload], anchor=False)
    st.markdown(_(QUESTIONS[workload]))
    if not any(item.value is not None for item in measurements):
        st.caption(_("No number is known for this workload."))
        return
    baseline = _choose_baseline(workload, measurements)
    rows = comparison.rows(measurements, baseline)
    drawn, listed = comparison.drawn(rows), comparison.listed(rows)
    _chart(workload, drawn, show, per_device=per_device, log_scale=log_scale)
    _not_drawn(listed)
    _caveats(drawn, catalogue)
    _reasons(workload, [*drawn, *listed])
    _sources(workload, drawn, catalogue)


def baseline_key(workload: str) -> str:
    """The name of the baseline's choice, in the session and in the address."""
    return f"{workload}-baseline"


def _choose_baseline(workload: str, measurements: Sequence[Measurement]) -> Measurement:
    by_id = {item.id: item for item in measurements if item.value is not None}
    key, default = baseline_key(workload), DEFAULT_BASELINES[workload]
    default = default if default in by_id else next(iter(by_id))
    state.choose_from_address(key, list(by_id), default)
    if st.session_state[key] not in by_id:  # an own run that has been deleted since
        st.session_state[key] = default
    labels = {item_id: comparison.name(item) for item_id, item in by_id.items()}
    chosen = st.selectbox(
        _("Compare with"),
        list(labels),
        format_func=labels.__getitem__,
        key=key,
        help=_("The baseline: the bar that all others are compared with."),
    )
    state.keep_in_address(key, default)
    return by_id[chosen]


def _chart(workload: str, rows: Sequence[Row], show: BarsShow, *, per_device: bool, log_scale: bool) -> None:
    first = rows[0].measurement
    if show == "speedup":
        caption = _("Times as fast as the baseline. Longer bars are faster.")
    else:
        unit = comparison.unit(first, per_device=per_device, show=show)
        caption = f"{unit}. {_(FASTER[not unit.startswith('s/')])}"
    st.caption(caption)
    st.plotly_chart(
        charts.bars(
            comparison.bars(rows, show, per_device=per_device), cut_note=comparison.cut_note(), log_scale=log_scale
        ),
        key=f"chart-{workload}",
        config=charts.CONFIG,
        alt=f"{_(QUESTIONS[workload])} {comparison.summary(rows, show, per_device=per_device)}",
    )


def _not_drawn(rows: Sequence[Row]) -> None:
    """Own runs that cannot be compared with the baseline: what they gave, and why they have no bar."""
    for row in rows:
        st.page_link(
            "app/views/explorer.py",
            label=escape(comparison.own_line(row)),
            icon=":material/block:",
            query_params={state.RUN_PARAMETER: row.measurement.id},
        )
        st.caption(escape(comparison.forbidding_line(row)))


def _caveats(rows: Sequence[Row], catalogue: Catalogue) -> None:
    """What a reader must know before quoting a ratio from this chart, and the fairer pair where there is one."""
    for sentence in comparison.strong_reasons(rows):
        st.markdown(f":orange[:material/warning:] {escape(sentence)}")
    for pair in _fairer_pairs(rows, catalogue):
        between = _("A fairer pair: {a} against {b}.").format(a=comparison.name(pair.a), b=comparison.name(pair.b))
        sentence = translate_message(pair.verdict.message_id, pair.verdict.params)
        st.markdown(f":green[:material/balance:] {escape(between)} {escape(sentence)}")


def _fairer_pairs(rows: Sequence[Row], catalogue: Catalogue) -> list[BetterPair]:
    """Pairs that the catalogue holds and the chart does not show; a fairer bar in the chart speaks for itself."""
    baseline = next(row.measurement for row in rows if row.verdict is None)
    charted = {row.measurement.id for row in rows}
    found: dict[str, BetterPair] = {}
    for row in rows:
        if row.verdict is None or row.verdict.level == "like-for-like" or row.measurement.value is None:
            continue
        if row.own or baseline.origin != "published":
            pair = better_pair(row.measurement, baseline, catalogue.measurements)
        else:
            pair = _fairer_published(catalogue, row.measurement.id, baseline.id)
        if pair is not None and not (pair.a.id in charted and pair.b.id == baseline.id):
            found.setdefault(pair.a.id, pair)
    return list(found.values())


@lru_cache(maxsize=512)
def _fairer_published(catalogue: Catalogue, a_id: str, b_id: str) -> BetterPair | None:
    # Thousands of verdicts that are the same for every reader.
    return better_pair(catalogue.measurement(a_id), catalogue.measurement(b_id), catalogue.measurements)


def _reasons(workload: str, rows: Sequence[Row]) -> None:
    opened = _lazy_expander(_("Why these verdicts, and how to run it here"), ":material/rule:", f"reasons-{workload}")
    if opened is None:
        return
    with opened:
        for row in rows:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escape(comparison.title(row.measurement))}**", width="content")
                verdict_badge(row.tone)
            st.caption(escape(comparison.conditions(row.measurement)))
            if row.verdict is not None:
                verdict_details(row.verdict)
            reference = state.catalogue().by_id.get(row.measurement.id)
            if reference is not None and reference.value is not None:
                match_button(reference, workload)


def _sources(workload: str, rows: Sequence[Row], catalogue: Catalogue) -> None:
    opened = _lazy_expander(_("Sources"), ":material/link:", f"sources-{workload}")
    if opened is None:
        return
    with opened:
        ids = dict.fromkeys(row.measurement.source_id for row in rows if row.measurement.source_id)
        for source in (catalogue.sources[source_id] for source_id in ids):
            name = escape(source.title)
            linked = f"[{name}]({source.reference})" if source.reference.startswith("https://") else name
            date = source.date or _("date not found")
            st.markdown(f"{linked}, {escape(source.publisher)}, {date}")
            if source.revision:
                st.caption(escape(source.revision))
        if any(row.own for row in rows):
            st.markdown(_("Hatched bars: measured on this machine; each run is in the Explorer."))


def _lazy_expander(label: str, icon: str, key: str) -> DeltaGenerator | None:
    """An expander whose content is made when a reader opens it: some hundred elements that most never look at."""
    expander = st.expander(label, icon=icon, key=key, on_change="rerun")
    return expander if expander.open else None
