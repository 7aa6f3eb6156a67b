"""Home: the article's three workloads, each against a baseline of the reader's choice, with verdicts."""

import streamlit as st

from app import comparison, headline, state
from app.amounts import SHOWS, Show
from app.compare_card import Bars, card
from app.components import error_text, escape
from app.i18n import _
from app.more import more
from data.errors import StoreError

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
    log_scale = st.toggle(
        _("Logarithmic"),
        key="log_scale",
        bind="query-params",
        help=_("Equal ratios have equal lengths; where bars begin means nothing then."),
    )
state.keep_in_address("bars", "values")

for problem in state.catalogue_problems():
    st.warning(escape(problem.text(_)), icon=":material/report:")

workloads = TIMED_WORKLOADS if show == "time-to-train" else tuple(comparison.CHARTED_METRICS)
try:
    own = {name: comparison.own_results(name, show) for name in workloads}
except StoreError as error:
    own = {}  # Published numbers need no database.
    hidden = _("Your own runs are not shown here.")
    st.caption(f":material/info: {hidden} {escape(error_text(error.message_id, error.params))}")

cards = st.grid(len(workloads), min_column_width=340)
for workload in workloads:
    with cards.cell(), st.container(border=True):
        card(workload, own.get(workload, []), Bars(show=show, per_device=per_device, log_scale=log_scale))
if show == "time-to-train":
    st.caption(_("The article gives no training time for T5, and images are not trained here."))

more([item for items in own.values() for item in items])
