"""The frame around every page: names, navigation, device and language. `streamlit run` finds this file by itself."""

from pathlib import Path

import streamlit as st

from app import state
from app.components import device_badge, error_message, language_choice
from app.i18n import _

# A file of our own: for an icon by name the browser would ask a server on the internet.
st.set_page_config(page_title="LikeForLike", page_icon=Path(__file__).parent / "app" / "icon.svg", layout="wide")

page = st.navigation(
    [
        st.Page(
            "app/views/compare.py",
            title=_("Compare"),
            icon=":material/balance:",
            default=True,
            help=_("Published speeds of accelerators side by side, and which pairs can be compared at all."),
        ),
        st.Page(
            "app/views/playground.py",
            title=_("Playground"),
            icon=":material/draw:",
            help=_("Generate an image from a prompt on this machine, and see how long it took."),
        ),
        st.Page(
            "app/views/benchmarks.py",
            title=_("Benchmarks"),
            icon=":material/speed:",
            help=_("Run a workload in the background, with the settings of a published number or your own."),
        ),
        st.Page(
            "app/views/explorer.py",
            title=_("Explorer"),
            icon=":material/table_chart:",
            help=_("Every run of this machine: find it, open it, see its numbers and how to repeat it."),
        ),
        st.Page(
            "app/views/sql.py",
            title=_("SQL"),
            icon=":material/database:",
            help=_("Questions of your own about all runs, in SQL, with charts and downloads; nothing can be changed."),
        ),
    ],
    position="top",
)

with st.container(horizontal=True, vertical_alignment="center"):
    st.title(page.title, icon=page.icon, width="stretch")
    device_badge()
    language_choice()

problem = state.storage_problem()
if problem is not None:
    # Refused here: later a run, a note or a favourite would be lost.
    error_message(problem)
    st.stop()
page.run()
