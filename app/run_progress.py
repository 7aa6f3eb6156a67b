"""A run while it goes on, followed from its folder: any tab shows it, and a reload loses nothing."""

from pathlib import Path

import streamlit as st

from app import state
from app.components import damage_stays_here, escape, shortened
from app.i18n import _, ngettext
from app.words import PROGRESS, WORKLOADS, word
from runners.errors import RecordError, RunnersError
from runners.paths import runs_dir
from runners.progress import Progress, read_progress
from runners.rundir import RunDir, find_run

POLL_S = 0.5
PREVIEW_WIDTH_PX = 320


def live_run() -> RunDir | None:
    """The image run to follow: this tab's own while it is under way, else what was asked for in any tab."""
    state.look_after_queue()
    queue = state.queue().state()
    pending = [run_id for run_id in (queue.current, *queue.waiting) if run_id]
    own = st.session_state.get(state.PLAYGROUND_RUN)
    for run_id in [own] if own in pending else pending:
        run = run_or_none(run_id)
        if run is not None and not run.has_record() and is_image_run(run):
            return run
    return None


def is_image_run(run: RunDir) -> bool:
    """Whether a run was asked for in the Playground; a damaged one may have been, and can be cancelled there."""
    try:
        return run.request().source == "playground"
    except RunnersError:
        return True


def run_or_none(run_id: str | None) -> RunDir | None:
    """The folder of a run, or None where it is gone."""
    try:
        return find_run(runs_dir(), run_id) if run_id else None
    except RecordError:
        return None


def follow(run: RunDir) -> None:
    """Shows a run's progress and looks again twice a second, until it has ended."""
    st.fragment(_progress, run_every=POLL_S)(run.run_id)


def _progress(run_id: str) -> None:
    run = run_or_none(run_id)
    state.look_after_queue()
    if run is None or run.has_record():
        st.session_state[state.PLAYGROUND_RUN] = run_id
        state.run_ended()
        st.rerun()
    with st.container(border=True):
        asked = run.cancel_asked()
        with damage_stays_here(run_id):
            _bar(run, asked=asked)
        st.button(
            _("Cancel"),
            icon=":material/stop_circle:",
            key=f"cancel-{run_id}",
            on_click=state.queue().cancel,
            args=(run_id,),
            disabled=asked,
        )


def _bar(run: RunDir, *, asked: bool) -> None:
    progress = read_progress(run)
    st.markdown(f"**{escape(shortened(run_name(run), 200))}**")
    text = _("Stopping at the next step …") if asked else progress_text(progress, run.run_id)
    st.progress(progress.fraction, text=text)
    if progress.preview_path is not None:
        _preview(progress.preview_path)


def progress_text(progress: Progress, run_id: str) -> str:
    """Where the run is, in words: phase, step, time left."""
    if progress.status in ("queued", "done"):
        return waiting_text(progress, run_id)
    text = word(PROGRESS, progress.phase)
    if progress.phase == "download" and progress.steps:
        return f"{text}: {progress.step / 2**20:,.0f} / {progress.steps / 2**20:,.0f} MiB"
    if progress.status == "running" and progress.steps:
        text += ", " + _("step {step} of {steps}").format(step=progress.step, steps=progress.steps)
        if progress.batches > 1:
            text += ", " + _("batch {batch} of {batches}").format(batch=progress.batch + 1, batches=progress.batches)
    if progress.seconds_left is not None:
        text += ", " + time_left(progress.seconds_left)
    return text


def waiting_text(progress: Progress, run_id: str) -> str:
    """What a run waits for, in words."""
    queue = state.queue().state()
    if queue.current == run_id:
        if progress.holder is not None:
            return _("Waiting for the device: {holder} has it.").format(holder=escape(progress.holder))
        if queue.worker == "starting":
            return _("Starting the generation process; the first image takes longer.")
        return _("About to start")
    if run_id not in queue.waiting:
        return _("About to start")
    current = run_or_none(queue.current)
    if current is not None and not is_image_run(current):
        return _("Waiting for the benchmark that is running: {name}.").format(name=escape(shortened(run_name(current))))
    before = queue.waiting.index(run_id) + (queue.current is not None)
    return ngettext("Waiting for {count} other image run.", "Waiting for {count} other image runs.", before).format(
        count=before
    )


def time_left(seconds: float) -> str:
    """A rough time, as exact as an estimate deserves."""
    if seconds < 90:
        return _("about {seconds} s left").format(seconds=f"{max(0.0, seconds):.0f}")
    return _("about {minutes} min left").format(minutes=f"{seconds / 60:.0f}")


def _preview(path: Path) -> None:
    try:
        content = path.read_bytes()
    except OSError:
        return  # Replaced or removed between two looks; the next one shows it.
    st.image(content, width=PREVIEW_WIDTH_PX, caption=_("Rough preview"), alt=_("Rough preview of the image so far"))


def run_name(run: RunDir) -> str:
    """What a run is, in a line: an image's prompt, or a benchmark's workload with what it is run with."""
    try:
        request = run.request()
    except RunnersError:
        return run.run_id
    if request.source == "playground" and request.fields.get("prompt"):
        return str(request.fields["prompt"])
    parts = [word(WORKLOADS, request.workload)]
    if request.fields.get("weights"):
        parts.append(str(request.fields["weights"]))
    if request.fields.get("batch_size"):
        parts.append(_("batch {batch}").format(batch=request.fields["batch_size"]))
    if request.fields.get("precision"):
        parts.append(str(request.fields["precision"]))
    if request.repeat:
        parts.append(_("repetition {number}").format(number=request.repeat + 1))
    return " · ".join(parts)
