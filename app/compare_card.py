"""One card of the Compare page: a workload's question, its chart against a baseline, and verdicts that open."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import amounts, charts, comparison, state
from app.amounts import Show
from app.comparison import Row
from app.components import VERDICT_ICONS, escape, reasons, verdict_sentence
from app.i18n import N_, _, translate_message
from app.match_reference import match_button
from app.source_line import source_line
from app.words import WORKLOADS, word
from data.better_pair import BetterPair, better_pair
from data.catalogue import Catalogue
from data.measurements import Measurement
from data.messages import FIELD_NAMES

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
TIME_QUESTION = N_("How long does training BERT take until its loss is about the same?")
FASTER = {True: N_("Longer bars are faster."), False: N_("Shorter bars are faster.")}
# The article is remembered for "Gaudi2 against A100", so that is the pair that a visitor finds.
TALKED_OF = "gaudi2"
DEFAULT_BASELINES = {
    "bert-pretraining": "seed-bert-a100-bs32-throughput",
    "text-to-image": "seed-sd-a100-bs1-latency",
    "t5-finetuning": "seed-t5-a100-bs16-throughput",
}


@dataclass(frozen=True, kw_only=True)
class Bars:
    """What the reader has chosen for all cards."""

    show: Show = "values"
    per_device: bool = False
    log_scale: bool = False


def card(workload: str, own: Sequence[Measurement], chosen: Bars) -> None:
    """Draws the card of one workload.

    Args:
        workload: Which of the charted workloads.
        own: The reader's own results for it, of the metrics that are shown.
        chosen: How bars are drawn.
    """
    catalogue = state.catalogue()
    measurements = [*comparison.published(catalogue, workload, chosen.show), *own]
    question = TIME_QUESTION if chosen.show == "time-to-train" else QUESTIONS[workload]
    st.subheader(word(WORKLOADS, workload), icon=ICONS[workload], anchor=False)
    st.markdown(_(question))
    if not any(item.value is not None for item in measurements):
        st.caption(_("No number is known for this workload."))
        return
    baseline = _choose_baseline(workload, measurements)
    rows = comparison.rows(measurements, baseline)
    drawn, listed = comparison.drawn(rows), comparison.listed(rows)
    _chart(workload, question, drawn, chosen)
    _not_drawn(listed)
    _verdicts(workload, [*drawn, *listed], baseline, catalogue)


def baseline_key(workload: str) -> str:
    """The name of the baseline's choice, in the session and in the address."""
    return f"{workload}-baseline"


def _choose_baseline(workload: str, measurements: Sequence[Measurement]) -> Measurement:
    by_id = {item.id: item for item in measurements if item.value is not None}
    key, default = baseline_key(workload), DEFAULT_BASELINES[workload]
    default = default if default in by_id else next(iter(by_id))
    state.choose_from_address(key, list(by_id), default)
    if st.session_state[key] not in by_id:  # an own run that has been deleted since, or another metric's
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


def _chart(workload: str, question: str, rows: Sequence[Row], chosen: Bars) -> None:
    first = amounts.amount(rows[0].measurement, chosen.show, per_device=chosen.per_device)
    if chosen.show == "speedup":
        caption = _("Times as fast as the baseline. Longer bars are faster.")
    else:
        caption = f"{first.unit}. {_(FASTER[first.higher_is_better])}"
    if chosen.log_scale:
        caption = " ".join((caption, _("Logarithmic: equal steps are equal ratios.")))
    st.caption(caption)
    bars = comparison.bars(rows, chosen.show, per_device=chosen.per_device)
    st.plotly_chart(
        charts.kept_bars(tuple(bars), comparison.cut_note(), chosen.log_scale),
        key=f"chart-{workload}",
        config=charts.CONFIG,
        alt=f"{_(question)} {comparison.summary(rows, chosen.show, per_device=chosen.per_device)}",
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


def _verdicts(workload: str, rows: Sequence[Row], baseline: Measurement, catalogue: Catalogue) -> None:
    """A mark per bar; the chosen one opens into its sentence, its source and everything else about it."""
    marks = {row.measurement.id: row for row in rows if row.verdict is not None and row.measurement.value is not None}
    if not marks:
        return
    key = f"verdict-{workload}"
    if st.session_state.get(key) not in marks:
        st.session_state[key] = _telling(marks.values(), baseline)
    chosen = st.pills(
        _("What the verdict on each bar says"),
        list(marks),
        format_func=lambda item_id: f"{VERDICT_ICONS[marks[item_id].tone]} {comparison.mark(marks[item_id])}",
        key=key,
        required=True,
        label_visibility="collapsed",
    )
    _explanation(workload, marks[chosen or next(iter(marks))], baseline, catalogue)


def _telling(rows: Iterable[Row], baseline: Measurement) -> str:
    """The row that opens first: the device that the article is about, at the baseline's batch size if possible."""
    size = baseline.conditions.batch_size_per_device
    ranked = sorted(
        rows,
        key=lambda row: (
            row.measurement.device_id != TALKED_OF,
            row.measurement.conditions.batch_size_per_device != size,
        ),
    )
    return ranked[0].measurement.id


def _explanation(workload: str, row: Row, baseline: Measurement, catalogue: Catalogue) -> None:
    verdict, item = row.verdict, row.measurement
    if verdict is None:
        return
    sentences = [f"**{escape(verdict_sentence(verdict))}**"]
    if verdict.heaviest is not None:
        sentences.append(escape(translate_message(verdict.heaviest.message_id, verdict.heaviest.params)))
    elif verdict.differs:
        fields = ", ".join(word(FIELD_NAMES, name) for name in verdict.differs)
        sentences.append(escape(_("What differs, or is not known to agree: {fields}.").format(fields=fields)))
    better = _fairer(item, baseline, catalogue)
    if better is not None:
        sentences.append(f":green[:material/balance:] **{escape(fairer_sentence(better))}**")
    st.markdown(" ".join(sentences))
    source_line(
        [one for one in (item, baseline, *([better.a, better.b] if better else [])) if one.source_id], catalogue
    )
    opened = _lazy_expander(_("All reasons, and how to run it here"), ":material/rule:", f"reasons-{workload}")
    if opened is not None:
        with opened:
            _everything(workload, row, catalogue)


def _fairer(item: Measurement, baseline: Measurement, catalogue: Catalogue) -> BetterPair | None:
    if item.origin == baseline.origin == "published":
        return _fairer_published(catalogue, item.id, baseline.id)
    return better_pair(item, baseline, catalogue.measurements)


@lru_cache(maxsize=512)
def _fairer_published(catalogue: Catalogue, a_id: str, b_id: str) -> BetterPair | None:
    # Hundreds of verdicts that are the same for every reader.
    return better_pair(catalogue.measurement(a_id), catalogue.measurement(b_id), catalogue.measurements)


def fairer_sentence(better: BetterPair) -> str:
    """The sentence on a fairer pair, which names its two sides as people do."""
    names = {"a": comparison.name(better.a), "b": comparison.name(better.b)}
    return translate_message(better.message_id, {**better.params, **names})


def _everything(workload: str, row: Row, catalogue: Catalogue) -> None:
    if row.verdict is not None:
        reasons(row.verdict)
    reference = catalogue.by_id.get(row.measurement.id)
    if reference is None:
        st.page_link(
            "app/views/explorer.py",
            label=_("Open this run"),
            icon=":material/open_in_new:",
            query_params={state.RUN_PARAMETER: row.measurement.id},
        )
        return
    if reference.caveat:
        st.caption(escape(reference.caveat))
    match_button(reference, workload)


def _lazy_expander(label: str, icon: str, key: str) -> DeltaGenerator | None:
    """An expander whose content is made when a reader opens it: some hundred elements that most never look at."""
    expander = st.expander(label, icon=icon, key=key, on_change="rerun")
    return expander if expander.open else None
