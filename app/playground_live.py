"""The Playground's other side: what is being generated now, the newest result, and the gallery of past images."""

from pathlib import Path

import streamlit as st

from app import playground_form, run_detail, state
from app.components import empty_state, error_message, escape, status_badge
from app.i18n import _, ngettext
from app.words import PROGRESS, word
from runners.errors import RecordError, RunnersError
from runners.paths import runs_dir
from runners.progress import Progress, read_progress
from runners.records import Record
from runners.rundir import RunDir, find_run, list_runs
from runners.specs import TextToImageSpec

POLL_S = 0.5
GALLERY_RUNS = 24
IMAGE_WIDTH_PX = 320


def submit(fields: dict[str, object]) -> RunnersError | None:
    """Hands the form's fields to the worker and makes the new run the one that is shown."""
    try:
        run = state.worker().submit(fields)
    except RunnersError as error:
        return error
    st.session_state[state.PLAYGROUND_RUN] = run.run_id
    return None


def live_run() -> RunDir | None:
    """The run to follow: this tab's own while it is under way, else what the worker is at, asked for in any tab."""
    worker = state.worker().state()
    pending = [run_id for run_id in (worker.run_id, *worker.waiting) if run_id]
    own = st.session_state.get(state.PLAYGROUND_RUN)
    for run_id in ([own] if own in pending else pending):
        run = run_or_none(run_id)
        if run is not None and not run.has_record():
            return run
    return None


def run_or_none(run_id: str | None) -> RunDir | None:
    """The folder of a run, or None where it is gone."""
    try:
        return find_run(runs_dir(), run_id) if run_id else None
    except RecordError:
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
    for run in reversed(list_runs(runs_dir())):
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


def follow(run: RunDir) -> None:
    """Shows a run's progress and looks again twice a second, until it has ended."""
    st.fragment(_progress, run_every=POLL_S)(run.run_id)


def _progress(run_id: str) -> None:
    run = run_or_none(run_id)
    if run is None or run.has_record():
        st.session_state[state.PLAYGROUND_RUN] = run_id
        state.run_ended()
        st.rerun()
        return
    progress = read_progress(run)
    with st.container(border=True):
        st.markdown(f"**{escape(_prompt_of(run))}**")
        st.progress(progress.fraction, text=progress_text(progress, run_id))
        if progress.preview_path is not None:
            _preview(progress.preview_path)
        st.button(
            _("Cancel"),
            icon=":material/stop_circle:",
            key=f"playground_cancel_{run_id}",
            on_click=state.worker().cancel,
            args=(run_id,),
            disabled=run.cancel_asked(),
        )


def progress_text(progress: Progress, run_id: str) -> str:
    """Where the run is, in words: phase, step, time left."""
    worker = state.worker().state()
    if progress.status in ("queued", "done"):
        if worker.run_id == run_id and worker.status == "starting":
            return _("Starting the generation process; the first image takes longer.")
        ahead = worker.waiting.index(run_id) + 1 if run_id in worker.waiting else 0
        if not ahead:
            return _("About to start")
        return ngettext("Waiting for {count} other image run.", "Waiting for {count} other image runs.", ahead).format(
            count=ahead
        )
    text = word(PROGRESS, progress.phase)
    if progress.phase == "download" and progress.steps:
        return f"{text}: {progress.step / 2**20:,.0f} / {progress.steps / 2**20:,.0f} MiB"
    if progress.status == "running" and progress.steps:
        text += ", " + _("step {step} of {steps}").format(step=progress.step, steps=progress.steps)
        if progress.batches > 1:
            text += ", " + _("batch {batch} of {batches}").format(batch=progress.batch + 1, batches=progress.batches)
    if progress.seconds_left is not None:
        text += ", " + _("about {seconds} s left").format(seconds=f"{max(0.0, progress.seconds_left):.0f}")
    return text


def _preview(path: Path) -> None:
    try:
        content = path.read_bytes()
    except OSError:
        return  # Replaced or removed between two looks; the next one shows it.
    st.image(content, width=IMAGE_WIDTH_PX, caption=_("Rough preview"), alt=_("Rough preview of the image so far"))


def _prompt_of(run: RunDir) -> str:
    try:
        return str(run.request().fields.get("prompt", TextToImageSpec().prompt))
    except RunnersError:
        return run.run_id


def result(run: RunDir, record: Record) -> None:
    """The images of a finished run, how long they took, and where that stands."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{escape(str(record.spec.get('prompt', '')))}**", width="stretch")
            status_badge(record.status)
        run_detail.error_details(record)
        paths = run_detail.image_paths(record, run.path)
        with st.grid("auto", min_column_width=200):
            for index, path in enumerate(paths):
                with st.container():
                    st.image(str(path), width=IMAGE_WIDTH_PX, alt=run_detail.image_alt(record, index))
        if paths:
            _image_actions(record, paths[0], 0, "result")
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
        empty_state(_("Your images will be kept here. Press “Generate” to make the first one."), icon=":material/image:")
        return
    with st.grid("auto", min_column_width=150):
        for run, record in past:
            for index, path in enumerate(run_detail.image_paths(record, run.path)):
                with st.container(border=True):
                    st.image(str(path), width="stretch", alt=run_detail.image_alt(record, index))
                    st.caption(escape(_shortened(str(record.spec.get("prompt", "")))))
                    _image_actions(record, path, index, "gallery")


def _image_actions(record: Record, path: Path, index: int, place: str) -> None:
    key = f"{place}-{record.run_id}-{index}"
    with st.container(horizontal=True):
        st.button(
            _("Again with this seed"),
            icon=":material/replay:",
            key=f"playground_again_{key}",
            help=_("Puts this image's settings and its seed {seed} into the form.").format(
                seed=run_detail.seed_of(record, index)
            ),
            on_click=_again,
            args=(dict(record.spec), run_detail.seed_of(record, index)),
        )
        st.download_button(
            _("PNG"),
            data=path.read_bytes,
            file_name=f"likeforlike-{record.run_id[:8]}-{index}.png",
            mime="image/png",
            icon=":material/download:",
            key=f"playground_download_{key}",
            help=_("Download the image; its settings are in the file."),
            on_click="ignore",
        )


def _again(fields: dict[str, object], seed: int) -> None:
    # One image: an image's seed gives the same start at every batch size.
    playground_form.fill({**fields, "seed": seed, "images": 1, "batch_size": 1})


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
