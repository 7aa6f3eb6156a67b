"""A prompt becomes an image on this machine, is timed, and stands beside the published numbers."""

import streamlit as st

from app import gallery, image_actions, playground_live, run_progress, side_by_side
from app.components import empty_state, error_message
from app.i18n import _
from app.playground_form import current_fields, form
from app.png_drop import png_drop
from app.worker_line import worker_line
from runners.errors import RunnersError

left, right = st.columns([2, 3], gap="large")
with left:
    fields = form(png_drop)
    answer = image_actions.submit(fields) if fields is not None else None
    if isinstance(answer, RunnersError):
        error_message(answer)
    worker_line()
    side_by_side.controls(current_fields())

with right:
    running = run_progress.live_run()
    newest = playground_live.newest_result()
    shown = running or (newest[0] if newest is not None else None)
    other = side_by_side.partner(shown) if shown is not None else None
    if shown is not None and other is not None:
        side_by_side.pair_result([shown, other])
    elif running is not None:
        run_progress.follow(running)
    elif newest is not None:
        playground_live.result(*newest)
    else:
        empty_state(
            _("Nothing generated yet. Describe an image, or pick an example prompt, and press “Generate”."),
            icon=":material/draw:",
        )

gallery.gallery()
