"""Taking results out: the runs of a view as a bundle, a table, a report or Markdown, made when they are asked for."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from app.components import error_message
from app.i18n import N_, _, translator
from data.errors import StoreError
from runners.errors import RunnersError
from runners.paths import runs_dir

FORMATS = {
    ".zip": (N_("Bundle"), N_("All files of the runs; another LikeForLike opens and merges it"), "application/zip"),
    ".html": (N_("Report"), N_("Charts, conditions and verdicts in one file that needs nothing else"), "text/html"),
    ".csv": ("CSV", N_("One row for each number, with its conditions"), "text/csv"),
    ".parquet": ("Parquet", N_("The same, with types"), "application/vnd.apache.parquet"),
    ".json": ("JSON", N_("The whole records with every sample"), "application/json"),
}
KEY = "export"
CHOSEN_KEY = "export_markdown"


def export_menu(run_ids: Sequence[str]) -> None:
    """Draws the menu for some runs, in their order."""
    if not run_ids:
        return
    with st.popover(_("Export"), icon=":material/download:"):
        for suffix, (name, about, mime) in FORMATS.items():
            st.download_button(
                _(name),
                _maker(tuple(run_ids), suffix),
                f"likeforlike{suffix}",
                mime,
                help=_(about),
                icon=":material/download:",
                key=f"{KEY}{suffix}",
                on_click="ignore",
                width="stretch",
            )
        if st.toggle(_("Markdown table to paste"), key=CHOSEN_KEY):
            _markdown(run_ids)


def _maker(run_ids: Sequence[str], suffix: str) -> Callable[[], bytes]:
    """Makes the file when its button is pressed: nobody wants five files for each look at a list."""
    translate = translator()

    def make() -> bytes:
        from data import bundle
        from data.exports.formats import WRITERS
        from data.exports.report import to_html
        from data.exports.selection import choose

        if suffix == ".zip":
            with tempfile.TemporaryDirectory(prefix="likeforlike-export-") as folder:
                target = Path(folder) / "bundle.zip"
                bundle.write(run_ids, runs_dir(), target)
                return target.read_bytes()
        runs = choose(runs_dir(), run_ids)
        return to_html(runs, translate=translate).encode() if suffix == ".html" else WRITERS[suffix](runs)

    return make


def _markdown(run_ids: Sequence[str]) -> None:
    from data.exports.markdown import to_markdown
    from data.exports.selection import choose

    try:
        text = to_markdown(choose(runs_dir(), run_ids), _)
    except (StoreError, RunnersError) as error:
        error_message(error)
        return
    st.code(text, language="markdown", wrap_lines=True)
