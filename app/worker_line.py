"""One line about the generation worker: whether a model is loaded, and why it stopped last time."""

from collections.abc import Callable

import streamlit as st

from app import state
from app.components import error_message
from app.i18n import _
from app.playground_form import current_fields
from app.run_progress import POLL_S
from runners.errors import RunnersError
from runners.queue import QueueState

ERROR_KEY = "playground_worker_error"


def worker_line() -> None:
    """Draws the line; it says nothing while the worker is busy, since the run itself is shown then."""
    loading = _is_loading(state.queue().state())
    st.fragment(_line, run_every=POLL_S if loading else None)(loading)


def _is_loading(found: QueueState) -> bool:
    return found.worker == "loading" or (found.worker == "starting" and found.current is None)


def _line(was_loading: bool) -> None:
    found = state.queue().state()
    if was_loading and not _is_loading(found):
        st.rerun()
    error = st.session_state.pop(ERROR_KEY, None) or found.last_error
    if error is not None:
        error_message(error)
    with st.container(horizontal=True, vertical_alignment="center"):
        if found.worker == "idle":
            st.caption(_("A model is loaded; the next image starts at once."), width="stretch")
            _button("unload", _("Unload"), ":material/eject:", _unload, _("Gives its memory and the device back now."))
        elif _is_loading(found):
            st.caption(_("Loading the model …"), width="stretch")
        elif found.worker == "stopped" and found.current is None:
            st.caption(_("No model is loaded; the first image takes longer."), width="stretch")
            help_text = _("Loads the chosen model before you ask for an image.")
            _button("load", _("Load now"), ":material/input:", _load, help_text)


def _button(name: str, label: str, icon: str, action: Callable[[], None], help_text: str) -> None:
    st.button(label, icon=icon, key=f"playground_{name}_model", type="tertiary", on_click=action, help=help_text)


def _load() -> None:
    fields = current_fields()
    wanted = {name: fields[name] for name in ("weights", "precision") if fields.get(name)}
    try:
        state.queue().load(wanted)
    except RunnersError as error:
        st.session_state[ERROR_KEY] = error


def _unload() -> None:
    state.queue().unload()
