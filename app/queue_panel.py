"""The queue on a page: what goes on, what waits, and the means to change the order, stop, repeat and pause."""

from collections.abc import Callable

import streamlit as st

from app import state
from app.components import damage_stays_here, error_message, escape, shortened
from app.i18n import _, ngettext
from app.run_progress import POLL_S, progress_text, run_name, run_or_none
from runners.errors import RunnersError
from runners.progress import read_progress
from runners.queue import QueueState
from runners.rundir import RunDir

SHOWN = 8
STOP_ICON = ":material/stop_circle:"
ERROR_KEY = "queue_error"


def panel(detail: Callable[[RunDir], None] | None = None) -> None:
    """Draws the queue; it looks again by itself while anything goes on or waits.

    Args:
        detail: Draws more of the run that goes on, below its progress.
    """
    state.look_after_queue()
    found = state.queue().state()
    busy = found.current is not None or (found.waiting and not found.paused)
    st.fragment(_panel, run_every=POLL_S * 2 if busy else None)(bool(busy), detail)


def _panel(was_busy: bool, detail: Callable[[RunDir], None] | None) -> None:
    state.look_after_queue()
    found = state.queue().state()
    if was_busy and found.current is None and not found.waiting:
        # The last run has ended: the page around shows its result, and nobody needs to look again and again.
        state.run_ended()
        st.rerun()
    _heading(found)
    error = st.session_state.pop(ERROR_KEY, None)
    if error is not None:
        error_message(error)
    if found.current is not None:
        _current(found.current, detail)
    for number, run_id in enumerate(found.waiting[:SHOWN]):
        _waiting(run_id, first=number == 0, last=number == len(found.waiting) - 1)
    hidden = len(found.waiting) - SHOWN
    if hidden > 0:
        st.caption(ngettext("and {count} more run", "and {count} more runs", hidden).format(count=hidden))
    if found.current is None and not found.waiting:
        st.caption(_("Nothing runs and nothing waits."))


def _heading(found: QueueState) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(_("Queue"), icon=":material/format_list_numbered:", anchor=False, width="stretch")
        if found.paused:
            st.badge(_("Paused"), icon=":material/pause:", color="orange")
            _button("queue_resume", _("Resume"), ":material/play_arrow:", "resume")
        elif found.waiting:
            _button("queue_pause", _("Pause"), ":material/pause:", "pause", help_text=pause_help())


def pause_help() -> str:
    """What pausing does."""
    return _("What goes on is finished; benchmarks that wait do not start until you resume. Images are still made.")


def _current(run_id: str, detail: Callable[[RunDir], None] | None) -> None:
    run = run_or_none(run_id)
    if run is None:
        return
    progress = read_progress(run)
    asked = run.cancel_asked()
    with st.container(border=True), damage_stays_here(run_id):
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container(width="stretch"):
                _title(run)
                text = _("Stopping at the next step …") if asked else progress_text(progress, run_id)
                st.progress(progress.fraction, text=text)
            _button(f"queue_cancel_{run_id}", _("Cancel"), STOP_ICON, "cancel", run_id, disabled=asked, only_icon=True)
        if detail is not None:
            detail(run)


def _waiting(run_id: str, *, first: bool, last: bool) -> None:
    run = run_or_none(run_id)
    if run is None:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch"):
            _title(run)
        _button(f"queue_up_{run_id}", _("Sooner"), ":material/arrow_upward:", "move", run_id, -1, disabled=first)
        _button(f"queue_down_{run_id}", _("Later"), ":material/arrow_downward:", "move", run_id, 1, disabled=last)
        _button(f"queue_remove_{run_id}", _("Remove"), ":material/close:", "remove", run_id, only_icon=True)


def _title(run: RunDir) -> None:
    st.markdown(escape(shortened(run_name(run), 120)))


def _button(
    key: str,
    label: str,
    icon: str,
    method: str,
    *arguments: object,
    disabled: bool = False,
    only_icon: bool | None = None,
    help_text: str | None = None,
) -> None:
    icons_only = only_icon if only_icon is not None else method == "move"
    st.button(
        "" if icons_only else label,
        icon=icon,
        key=key,
        help=help_text or (label if icons_only else None),
        on_click=do,
        args=(method, *arguments),
        disabled=disabled,
        type="tertiary" if icons_only else "secondary",
        width="content",
    )


def do(method: str, *arguments: object) -> None:
    """Has the queue do something, for a button; why it could not is shown in the panel."""
    try:
        getattr(state.queue(), method)(*arguments)
    except RunnersError as error:
        # It may have started, ended or vanished since the page was drawn.
        st.session_state[ERROR_KEY] = error
