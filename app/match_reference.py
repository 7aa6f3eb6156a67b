"""“Run it here”: a local run with the settings of a published number, what cannot be matched first."""

import shlex

import streamlit as st

from app import state
from app.components import error_message, escape
from app.i18n import _, translate_message
from app.words import FIELDS, word
from data.matching import Match, match
from data.references import Reference
from runners.errors import RunnersError

BENCHMARKS = "app/views/benchmarks.py"


def match_button(reference: Reference, place: str) -> None:
    """Draws the button that opens the dialog."""
    if st.button(
        _("Run it here"),
        icon=":material/play_arrow:",
        key=f"match-{place}-{reference.id}",
        help=_("Starts a run on this machine with the settings of this published number."),
    ):
        st.dialog(_("Run it here"), width="medium")(_dialog)(reference)


def command(found: Match) -> str:
    """The shell command of the same run; on Gaudi and Gaudi2 it is the same one."""
    parts = ["python", "-m", "runners", "run", found.workload]
    for name, value in found.fields.items():
        parts += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(parts)


def _dialog(reference: Reference) -> None:
    found = match(reference, state.device())
    if found.unmatched:
        st.markdown(_("What differs from the published run:"))
        lines = [escape(translate_message(message_id, params)) for message_id, params in found.unmatched]
        st.markdown("\n".join(f"- {line}" for line in lines))
    if not found.fields:
        return
    names = [f"{word(FIELDS, name)}: {value}" for name, value in found.fields.items()]
    st.caption(escape(" · ".join(names)))
    st.code(command(found), language="shell", wrap_lines=True)
    if not st.button(_("Start"), type="primary", icon=":material/play_arrow:", key="match-start", width="stretch"):
        return
    try:
        state.queue().submit(found.workload, found.fields, source="benchmarks")
    except RunnersError as error:
        error_message(error)
        return
    st.switch_page(BENCHMARKS)
