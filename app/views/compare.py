"""Home: the article's three workloads, each against a baseline of the reader's choice, with verdicts."""

import streamlit as st

from app import comparison, headline, state
from app.amounts import SHOWS, TIMES_TO_TRAIN, Show
from app.compare_card import Bars, card
from app.components import error_text, escape
from app.i18n import _
from app.more import more
from data.errors import StoreError
from data.measurements import Measurement

TIMED_WORKLOADS = ("bert-pretraining",)

headline.draw(state.catalogue())

state.choose_from_address("bars", list(SHOWS), "values")
with st.container(horizontal=True, vertical_alignment="bottom"):
    labels = {name: _(text) for name, text in SHOWS.items()}
    show: Show = (
        st.segmented_control(_("Bars show"), list(labels), format_func=labels.__getitem__, key="bars", required=True)
        or "values"
    )
    per_device = st.toggle(
        _("Per device"),
        key="per_device",
        bind="query-params",
        help=_("Training numbers are sums over 8 devices. This divides them; speed-ups are per device anyway."),
    )
    log = st.toggle(
        _("Logarithmic"),
        key="log",
        bind="query-params",
        help=_("For bars of very different lengths: equal steps are equal ratios."),
    )
state.keep_in_address("bars", "values")

for problem in state.catalogue_problems():
    st.warning(escape(problem.text(_)), icon=":material/report:")

own: list[Measurement] = []
try:
    own = state.own_measurements([*set(comparison.CHARTED_METRICS.values()), *TIMES_TO_TRAIN])
except StoreError as error:
    # Published numbers need no database.
    hidden = _("Your own runs are not shown here.")
    st.caption(f":material/info: {hidden} {escape(error_text(error.message_id, error.params))}")

workloads = TIMED_WORKLOADS if show == "time-to-train" else tuple(comparison.CHARTED_METRICS)
cards = st.grid(len(workloads), min_column_width=340)
for workload in workloads:
    metrics = comparison.charted_metrics(workload, show)
    mine = [item for item in own if item.conditions.workload == workload and item.metric in metrics]
    with cards.cell(), st.container(border=True):
        card(workload, comparison.newest_per_configuration(mine), Bars(show=show, per_device=per_device, log=log))
if show == "time-to-train":
    st.caption(_("No training time is published for T5 in the article, and images need no training here."))

more([item for item in own if item.metric in comparison.CHARTED_METRICS.values()])
