"""What can be done with one image of a run: make it again, download it, look at its run."""

from pathlib import Path

import streamlit as st

from app import playground_form, run_detail
from app.i18n import _
from runners.records import Record

PLAYGROUND = "app/views/playground.py"
GALLERY = "gallery"


def image_actions(record: Record, path: Path, index: int, place: str) -> None:
    """A row of buttons.

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
            _("Again with this seed") if place != GALLERY else _("Again"),
            icon=":material/replay:",
            type="tertiary" if place == GALLERY else "secondary",
            key=f"again-{key}",
            help=_("Puts this image's settings and its seed {seed} into the form.").format(seed=seed),
            on_click=_again,
            args=(dict(record.spec), seed),
        ):
            st.switch_page(PLAYGROUND)
        st.download_button(
            _("PNG"),
            data=path.read_bytes,
            file_name=f"likeforlike-{record.run_id[:8]}-{index}.png",
            mime="image/png",
            icon=":material/download:",
            type="tertiary" if place == GALLERY else "secondary",
            key=f"download-{key}",
            help=_("Download the image; its settings are in the file."),
            on_click="ignore",
        )


def _again(fields: dict[str, object], seed: int) -> None:
    # One image: an image's seed gives the same start at every batch size.
    playground_form.fill({**fields, "seed": seed, "images": 1, "batch_size": 1})
