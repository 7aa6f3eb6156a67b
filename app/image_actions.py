"""What can be done with one image of a run: make it again, vary it, take it along, say how it is made, measure it."""

import secrets
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app import playground_form, run_detail, state
from app.components import error_message, escape, sendable
from app.i18n import _
from runners.errors import RunnersError
from runners.records import Record
from runners.reproduce import python_snippet, shell_command
from runners.rundir import RunDir

PLAYGROUND = "app/views/playground.py"
BENCHMARKS = "app/views/benchmarks.py"
BENCHMARK_BATCHES = 8
PUBLISHED_WARMUP_BATCHES = 2


def image_actions(record: Record, path: Path, index: int, place: str) -> None:
    """The row below a large image: again, download, and a menu for the rest.

    Args:
        record: The run.
        path: The image's file.
        index: Which of the run's images it is.
        place: Where on the page; one image may be shown twice.
    """
    key = f"{place}-{record.run_id}-{index}"
    seed = run_detail.seed_of(record, index)
    with st.container(horizontal=True, gap="xsmall"):
        if st.button(
            _("Again with this seed"),
            icon=":material/replay:",
            key=f"again-{key}",
            help=_("Puts this image's settings and its seed {seed} into the form.").format(seed=seed),
            on_click=_use,
            args=(dict(record.spec), seed),
        ):
            st.switch_page(PLAYGROUND)
        _download(path, record, index, key)
        menu(record, path, index, place)


def menu(record: Record, path: Path, index: int, place: str, *, on_delete: Callable[[str], None] | None = None) -> None:
    """Everything that can be done with an image, behind one button."""
    key = f"{place}-{record.run_id}-{index}"
    titles = {
        "again": _("Again with this seed"),
        "vary": _("Vary the seed"),
        "how": _("How to make it again"),
        "benchmark": _("Measure these settings"),
        "explorer": _("Open in the Explorer"),
        "delete": _("Delete"),
    }
    if on_delete is None:
        del titles["delete"]
    chosen = st.menu_button(
        "",
        list(titles),
        format_func=titles.__getitem__,
        icon=":material/more_horiz:",
        key=f"menu-{key}",
        type="tertiary",
        help=_("More"),
        on_click=_before_drawing,
        args=(f"menu-{key}", record, index, on_delete),
    )
    if chosen in ("again", "vary"):
        st.switch_page(PLAYGROUND)
    elif chosen == "benchmark":
        _measure(record)
    elif chosen == "explorer":
        st.switch_page("app/views/explorer.py", query_params={state.RUN_PARAMETER: record.run_id})
    elif chosen == "how":
        st.dialog(_("How to make it again"), width="large")(_how)(record, path, index)


def submit(fields: dict[str, object]) -> RunDir | RunnersError:
    """Puts an image into the queue and makes it the one that this tab follows."""
    try:
        run = state.queue().submit(playground_form.WORKLOAD, fields, source="playground")
    except RunnersError as error:
        return error
    st.session_state[state.PLAYGROUND_RUN] = run.run_id
    return run


def _before_drawing(key: str, record: Record, index: int, on_delete: Callable[[str], None] | None) -> None:
    """What must happen before the page is drawn: widgets of the form cannot be filled afterwards."""
    chosen = st.session_state.get(key)
    if chosen == "again":
        _use(dict(record.spec), run_detail.seed_of(record, index))
    elif chosen == "vary":
        seed = secrets.randbelow(2**32)
        _use(dict(record.spec), seed)
        submit(playground_form.one_image(record.spec, seed))
    elif chosen == "delete" and on_delete is not None:
        on_delete(record.run_id)


def _use(fields: dict[str, object], seed: int) -> None:
    playground_form.fill(playground_form.one_image(fields, seed))


def _download(path: Path, record: Record, index: int, key: str) -> None:
    st.download_button(
        _("PNG"),
        data=path.read_bytes,
        file_name=f"likeforlike-{record.run_id[:8]}-{index}.png",
        mime="image/png",
        icon=":material/download:",
        key=f"download-{key}",
        help=_("Download the image; its settings are in the file."),
        on_click="ignore",
    )


def _how(record: Record, path: Path, index: int) -> None:
    st.image(str(path), width=160, alt=run_detail.image_alt(record, index))
    st.markdown(_("In a shell, in the folder of LikeForLike:"))
    st.code(sendable(shell_command(record)), language="shell", wrap_lines=True)
    snippet = python_snippet(record, index)
    if snippet is None:
        st.caption(_("There is no script for it: with random weights, or on a Gaudi, diffusers makes another image."))
    else:
        st.markdown(_("In Python, with diffusers alone:"))
        st.code(sendable(snippet), language="python", wrap_lines=True)
    st.caption(_("Both make the same pixels on the same device with the same software."))
    _download(path, record, index, f"dialog-{record.run_id}-{index}")


def _measure(record: Record) -> None:
    """The same settings as a benchmark: previews off, the published warm-up rule, enough batches for an interval."""
    spec = {name: value for name, value in record.spec.items() if value is not None}
    batch_size = int(spec.get("batch_size", 1))
    spec |= {
        "images": batch_size * (BENCHMARK_BATCHES + PUBLISHED_WARMUP_BATCHES),
        "warmup_batches": PUBLISHED_WARMUP_BATCHES,
        "previews": False,
    }
    try:
        state.queue().submit(record.workload, spec, source="benchmarks")
    except RunnersError as error:
        error_message(error)
        return
    st.toast(
        escape(_("In the queue: {batches} batches are measured.").format(batches=BENCHMARK_BATCHES)),
        icon=":material/playlist_add:",
    )
    st.switch_page(BENCHMARKS)
