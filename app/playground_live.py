"""The Playground's other side: the newest result and the gallery of past images."""

import streamlit as st

from app import playground_form, run_detail, state
from app.components import damage_stays_here, empty_state, error_message, escape, shortened, status_badge
from app.i18n import _
from app.image_actions import GALLERY, image_actions
from app.run_progress import run_or_none
from runners.errors import RecordError, RunnersError
from runners.paths import runs_dir
from runners.records import Record
from runners.rundir import RunDir, list_runs

GALLERY_RUNS = 24
GALLERY_FOLDERS = 300
IMAGE_WIDTH_PX = 320


def submit(fields: dict[str, object]) -> RunnersError | None:
    """Puts the form's fields into the queue and makes the new run the one that is shown."""
    try:
        run = state.queue().submit(playground_form.WORKLOAD, fields, source="playground")
    except RunnersError as error:
        return error
    st.session_state[state.PLAYGROUND_RUN] = run.run_id
    return None


def newest_result() -> tuple[RunDir, Record] | None:
    """The run to show: the one that this tab asked for, else the newest that ended."""
    own = run_or_none(st.session_state.get(state.PLAYGROUND_RUN))
    candidates = [own] if own is not None else []
    candidates += [run for run, _record in past_runs()[:1]]
    for run in candidates:
        if run.has_record():
            try:
                return run, state.finished_record(run.path)
            except RecordError as error:
                error_message(error)
    return None


def past_runs() -> list[tuple[RunDir, Record]]:
    """Runs with images, newest first; they come from the folders, so they are there after a restart too."""
    found: list[tuple[RunDir, Record]] = []
    # The newest folders only: after thousands of runs without an image the page must not read them all.
    for run in list_runs(runs_dir())[: -GALLERY_FOLDERS - 1 : -1]:
        if len(found) == GALLERY_RUNS:
            break
        if not run.has_record() or run.annotations().get("deleted"):
            continue
        try:
            record = state.finished_record(run.path)
        except RecordError:
            continue  # The Explorer lists it among the problems.
        if record.workload == playground_form.WORKLOAD and run_detail.image_paths(record, run.path):
            found.append((run, record))
    return found


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


def gallery() -> None:
    """Past images, newest first."""
    st.subheader(_("Gallery"), icon=":material/photo_library:", anchor=False)
    past = past_runs()
    if not past:
        empty_state(
            _("Your images will be kept here. Press “Generate” to make the first one."), icon=":material/image:"
        )
        return
    with st.grid("auto", min_column_width=150):
        for run, record in past:
            for index, path in enumerate(run_detail.image_paths(record, run.path)):
                with st.container(border=True), damage_stays_here(run.run_id):
                    st.image(str(path), width="stretch", alt=run_detail.image_alt(record, index))
                    st.caption(escape(shortened(str(record.spec.get("prompt", "")))))
                    image_actions(record, path, index, GALLERY)
