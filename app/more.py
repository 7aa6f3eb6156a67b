"""What stands below the Compare page's cards: one part at a time, made when it is asked for."""

from collections.abc import Callable, Sequence

import streamlit as st

from app import article_notes, state
from app.i18n import N_, _
from data.measurements import Measurement

PARTS = {
    "notes": N_("Read before quoting"),
    "beyond": N_("Beyond the article"),
    "race": N_("Race"),
    "memory": N_("Memory"),
    "drift": N_("How a number changed"),
}
KEY = "more"


def more(own: Sequence[Measurement]) -> None:
    """Draws the choice of parts and the chosen one.

    Args:
        own: The reader's own results of all workloads.
    """
    st.subheader(_("Look further"), anchor=False)
    state.choose_from_address(KEY, list(PARTS), None)
    labels = {name: _(text) for name, text in PARTS.items()}
    chosen = st.segmented_control(
        _("Look further"), list(labels), format_func=labels.__getitem__, key=KEY, label_visibility="collapsed"
    )
    state.keep_in_address(KEY, None)
    if chosen is None:
        return
    # Imported here: most readers of the first page never open most of them.
    from app.beyond import beyond
    from app.drift import drift
    from app.race import race

    parts: dict[str, Callable[[], None]] = {
        "beyond": lambda: beyond(own),
        "race": race,
        "notes": lambda: article_notes.inconsistencies(state.catalogue()),
        "memory": lambda: article_notes.memory(state.catalogue()),
        "drift": drift,
    }
    with st.container(border=True):
        parts[chosen]()
