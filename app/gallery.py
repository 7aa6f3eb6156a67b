"""All past images: found by words, kept as favourites, deleted and brought back, taken along as one file."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app import image_actions, run_detail, state
from app.components import damage_stays_here, empty_state, error_message, escape, shortened
from app.i18n import _, ngettext
from app.run_progress import run_or_none
from data.errors import StoreError
from runners.errors import RecordError
from runners.paths import runs_dir
from runners.records import Record
from runners.rundir import RunDir, has_runs

PER_PAGE = 24
SEARCH_KEY, FAVOURITES_KEY, PAGE_KEY, DELETED_KEY = (
    "gallery_" + name for name in ("search", "stars", "page", "deleted")
)


@dataclass(frozen=True)
class Shown:
    """One image of the gallery."""

    run: RunDir
    record: Record
    index: int
    path: Path
    favourite: bool


def gallery() -> None:
    """Draws the gallery."""
    st.subheader(_("Gallery"), icon=":material/photo_library:", anchor=False)
    _undo()
    if not has_runs(runs_dir()):
        _nothing_yet()
        return
    try:
        store = state.store()
        everything = store.images()
        if not everything:
            _nothing_yet()
            return
        text, favourites = _tools()
        found = store.images(text=text, favourites=favourites) if text or favourites else everything
    except StoreError as error:
        error_message(error)
        return
    if not found:
        empty_state(_("No image matches. Shorten the search, or show all."), icon=":material/filter_alt_off:")
        return
    pages = -(-len(found) // PER_PAGE)
    page = min(st.session_state.get(PAGE_KEY, 1), pages)
    shown = _images(found[(page - 1) * PER_PAGE : page * PER_PAGE])
    _grid(shown)
    with st.container(horizontal=True, vertical_alignment="center"):
        count = ngettext("{count} image", "{count} images", len(found)).format(count=len(found))
        st.caption(count, width="stretch")
        if pages > 1:
            st.pagination(pages, key=PAGE_KEY)
        st.download_button(
            _("Download these"),
            data=lambda: zipped(shown),
            file_name="likeforlike-images.zip",
            mime="application/zip",
            icon=":material/folder_zip:",
            key="gallery_zip",
            on_click="ignore",
            help=_("The images of this page as one zip file; each file holds its settings."),
        )


def zipped(images: Sequence[Shown]) -> bytes:
    """The images as one zip file, built when somebody downloads it."""
    target = io.BytesIO()
    # PNG is compressed by itself.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for image in images:
            if image.path.is_file():
                archive.write(image.path, f"{image.record.run_id}-{image.index:03d}.png")
    return target.getvalue()


def _nothing_yet() -> None:
    empty_state(_("Your images will be kept here. Press “Generate” to make the first one."), icon=":material/image:")


def _tools() -> tuple[str, bool]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            _("Search"),
            key=SEARCH_KEY,
            placeholder=_("Words of the prompt, a device, a tag"),
            icon=":material/search:",
            label_visibility="collapsed",
            on_change=_to_first_page,
            persist_state="session",
        )
        favourites = st.toggle(_("Favourites"), key=FAVOURITES_KEY, on_change=_to_first_page, persist_state="session")
    return text.strip(), favourites


def _to_first_page() -> None:
    st.session_state.pop(PAGE_KEY, None)


def _images(rows: Sequence[dict[str, object]]) -> list[Shown]:
    """The images of these rows that are really there."""
    found = []
    for row in rows:
        run = run_or_none(str(row["run_id"]))
        if run is None:
            continue
        try:
            record = state.finished_record(run.path)
        except RecordError:
            continue  # The Explorer lists it among the problems.
        names = [str(item.path) for item in record.artifacts if item.kind == "image"]
        path = run.path.resolve() / str(row["path"])
        if row["path"] in names and path in run_detail.image_paths(record, run.path):
            found.append(Shown(run, record, names.index(str(row["path"])), path, bool(row["favourite"])))
    return found


def _grid(images: Sequence[Shown]) -> None:
    with st.grid("auto", min_column_width=150):
        for image in images:
            with st.container(border=True), damage_stays_here(image.run.run_id):
                st.image(str(image.path), width="stretch", alt=run_detail.image_alt(image.record, image.index))
                st.caption(escape(shortened(str(image.record.spec.get("prompt", "")))))
                with st.container(horizontal=True, gap="xsmall"):
                    _star(image)
                    image_actions.menu(image.record, image.path, image.index, "gallery", on_delete=_delete)


def _star(image: Shown) -> None:
    key = f"star-{image.record.run_id}-{image.index}"
    st.button(
        "",
        icon=":material/star:" if image.favourite else ":material/star_border:",
        key=key,
        type="tertiary",
        help=_("No favourite any more") if image.favourite else _("Keep as a favourite"),
        on_click=_annotate,
        args=(image.record.run_id,),
        kwargs={"favourite": not image.favourite},
    )


def _annotate(run_id: str, **changes: object) -> None:
    try:
        state.store().annotate(run_id, **changes)
    except (StoreError, RecordError, OSError) as error:
        st.session_state[DELETED_KEY] = None
        st.toast(escape(str(error)), icon=":material/error:")


def _delete(run_id: str) -> None:
    st.session_state[DELETED_KEY] = run_id
    _annotate(run_id, deleted=True)


def _undo() -> None:
    run_id = st.session_state.get(DELETED_KEY)
    if run_id is None:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(_("Deleted. Its files stay on disk."), width="stretch")
        st.button(_("Undo"), icon=":material/undo:", key="gallery_undo", on_click=_bring_back, args=(run_id,))


def _bring_back(run_id: str) -> None:
    st.session_state[DELETED_KEY] = None
    _annotate(run_id, deleted=False)
