"""Home: the article's three workloads, each against a baseline of the reader's choice, with verdicts."""

import streamlit as st

from app import comparison, state
from app.compare_card import card
from app.components import error_text, escape
from app.i18n import N_, _
from app.more import more
from data.errors import StoreError

BARS_SHOW: dict[comparison.BarsShow, str] = {
    "values": N_("Published values"),
    "rate": N_("Per second"),
    "seconds": N_("Seconds each"),
    "speedup": N_("Speed-up"),
}

st.markdown(
    _(
        "Published speeds of first-generation Gaudi, Gaudi2 and A100, with the conditions they were taken under. "
        "The colour says whether a bar can be compared with the blue one: :green[**green**] like for like, "
        ":orange[**orange**] with caveats, :gray[**grey**] not at all."
    )
)

state.choose_from_address("bars", list(BARS_SHOW), "values")
with st.container(horizontal=True, vertical_alignment="bottom"):
    labels = {name: _(text) for name, text in BARS_SHOW.items()}
    show = st.segmented_control(_("Bars show"), list(labels), format_func=labels.__getitem__, key="bars", required=True)
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

try:
    own = {name: comparison.own_results(name) for name in comparison.CHARTED_METRICS}
except StoreError as error:
    own = {}  # Published numbers need no database.
    hidden = _("Your own runs are not shown here.")
    st.caption(f":material/info: {hidden} {escape(error_text(error.message_id, error.params))}")

cards = st.grid(3, min_column_width=340)
for workload in comparison.CHARTED_METRICS:
    with cards.cell(), st.container(border=True):
        card(workload, own.get(workload, []), show or "values", per_device=per_device, log_scale=log_scale)

more([item for items in own.values() for item in items])
