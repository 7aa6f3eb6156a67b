"""A prompt becomes an image on this machine, is timed, and stands beside the published numbers."""

import streamlit as st

from app import playground_live, run_progress
from app.components import empty_state, error_message
from app.i18n import _
from app.playground_form import form

left, right = st.columns([2, 3], gap="large")
with left:
    fields = form()
    problem = playground_live.submit(fields) if fields is not None else None
    if problem is not None:
        error_message(problem)

with right:
    running = run_progress.live_run()
    newest = playground_live.newest_result()
    if running is not None:
        run_progress.follow(running)
    elif newest is not None:
        playground_live.result(*newest)
    else:
        empty_state(
            _("Nothing generated yet. Describe an image, or pick an example prompt, and press “Generate”."),
            icon=":material/draw:",
        )

playground_live.gallery()
