"""The Playground's other side: the newest result."""

import streamlit as st

from app import playground_form, run_detail, state
from app.components import damage_stays_here, error_message, escape, shortened, status_badge
from app.i18n import _
from app.image_actions import image_actions
from app.run_progress import run_or_none
from runners.errors import RecordError
from runners.paths import runs_dir
from runners.records import Record
from runners.rundir import RunDir, list_runs

LOOKED_AT = 300
IMAGE_WIDTH_PX = 320


def newest_result() -> tuple[RunDir, Record] | None:
    """The run to show: the one that this tab asked for, else the newest that ended."""
    own = run_or_none(st.session_state.get(state.PLAYGROUND_RUN))
    if own is not None and own.has_record() and not own.annotations().get("deleted"):
        try:
            return own, state.finished_record(own.path)
        except RecordError as error:
            error_message(error)
    return newest_past_run()


def newest_past_run() -> tuple[RunDir, Record] | None:
    """The newest run with an image; it comes from the folders, so it is there after a restart too."""
    # The newest folders only: after thousands of runs without an image the page must not read them all.
    for run in list_runs(runs_dir())[: -LOOKED_AT - 1 : -1]:
        if not run.has_record() or run.annotations().get("deleted"):
            continue
        try:
            record = state.finished_record(run.path)
        except RecordError:
            continue  # The Explorer lists it among the problems.
        if record.workload == playground_form.WORKLOAD and run_detail.image_paths(record, run.path):
            return run, record
    return None


def result(run: RunDir, record: Record) -> None:
    """The images of a finished run, how long they took, and where that stands."""
    with st.container(border=True), damage_stays_here(run.run_id):
        with st.container(horizontal=True, vertical_alignment="center"):
            prompt = shortened(str(record.spec.get("prompt", "")), 200)
            st.markdown(f"**{escape(prompt)}**", width="stretch")
            status_badge(record.status)
        run_detail.error_details(record)
        paths = run_detail.image_paths(record, run.path)
        with st.grid("auto", min_column_width=200):
            for index, path in enumerate(paths):
                with st.container():
                    st.image(str(path), width=IMAGE_WIDTH_PX, alt=run_detail.image_alt(record, index))
                    image_actions(record, path, index, "result")
        if record.metrics:
            run_detail.clocks(record)
            run_detail.warnings(record)
            run_detail.stage_times(record)
            run_detail.standing(record)
        st.page_link(
            "app/views/explorer.py",
            label=_("Open in the Explorer"),
            icon=":material/table_chart:",
            query_params={state.RUN_PARAMETER: record.run_id},
        )
