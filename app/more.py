"""What stands below the Compare page's three cards: one part at a time, made when it is asked for."""

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
    "training-time": N_("Training time"),
    "drift": N_("How a number changed"),
}
KEY = "more"
DEFAULT = "notes"
"""Text only: a first page with one more chart and a table takes noticeably longer."""


def more(own: Sequence[Measurement]) -> None:
    """Draws the choice of parts and the chosen one.

    Args:
        own: The reader's own results of all workloads.
    """
    state.choose_from_address(KEY, list(PARTS), DEFAULT)
    labels = {name: _(text) for name, text in PARTS.items()}
    chosen = st.segmented_control(
        _("More"), list(labels), format_func=labels.__getitem__, key=KEY, required=True, label_visibility="collapsed"
    )
    state.keep_in_address(KEY, DEFAULT)
    # Imported here: most readers of the first page never open most of them.
    from app.beyond import beyond
    from app.drift import drift
    from app.race import race
    from app.training_time import training_time

    parts: dict[str, Callable[[], None]] = {
        "beyond": lambda: beyond(own),
        "race": race,
        "notes": lambda: article_notes.inconsistencies(state.catalogue()),
        "memory": lambda: article_notes.memory(state.catalogue()),
        "training-time": training_time,
        "drift": drift,
    }
    with st.container(border=True):
        parts[str(chosen or DEFAULT)]()
