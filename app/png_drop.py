"""A PNG dropped into the form: its settings come back, and what cannot be taken over is named."""

import streamlit as st

from app import playground_form
from app.components import error_message, escape
from app.i18n import _
from app.words import FIELDS, word
from runners.errors import SpecError
from runners.png_settings import PngSettings, read_png_settings

FILE_KEY, FOUND_KEY = "playground_png", "playground_png_found"
MAX_UPLOAD_MB = 50


def png_drop() -> None:
    """Draws the place to drop a file, and what was found in the last one."""
    with st.popover(_("From a PNG"), icon=":material/file_open:"):
        st.file_uploader(
            _("Settings from an image file"),
            type=["png"],
            key=FILE_KEY,
            on_change=_read,
            max_upload_size=MAX_UPLOAD_MB,
            help=_("A file made here, by AUTOMATIC1111, Forge, SD.Next, Fooocus, ComfyUI or InvokeAI."),
        )
        found = st.session_state.get(FOUND_KEY)
        if isinstance(found, SpecError):
            error_message(found)
        elif isinstance(found, PngSettings):
            _show(found)


def _show(found: PngSettings) -> None:
    names = ", ".join(word(FIELDS, name) for name in found.fields)
    st.success(
        _("Taken over from {program}: {names}.").format(program=found.origin, names=escape(names)),
        icon=":material/check:",
    )
    if found.left_out:
        st.markdown(_("Not taken over, so the image will differ:"))
        st.markdown(
            "\n".join(f"- {escape(word(FIELDS, name))}: {escape(value or '-')}" for name, value in found.left_out)
        )


def _read() -> None:
    uploaded = st.session_state.get(FILE_KEY)
    if uploaded is None:
        st.session_state.pop(FOUND_KEY, None)
        return
    try:
        found = read_png_settings(uploaded.getvalue())
    except SpecError as error:
        st.session_state[FOUND_KEY] = error
        return
    st.session_state[FOUND_KEY] = found
    # What the file does not say stays as it is in the form, except how many: a file is one image.
    playground_form.fill({**playground_form.current_fields(), **found.fields, "images": 1, "batch_size": 1})
