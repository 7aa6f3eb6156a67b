"""Beside another run: what differs between two runs, how their speeds relate, and their images with a similarity."""

from pathlib import Path

import streamlit as st

from app import charts, comparison, run_detail, state
from app.components import error_message, escape, heading, reasons, shortened, verdict_badge
from app.i18n import _
from app.words import FIELDS, word
from data.comparability import compare
from data.differences import Difference, differing, similarity, speed_ratio
from data.messages import FIELD_NAMES
from data.store import Store
from runners.errors import RecordError
from runners.records import Record
from runners.rundir import RunDir
from runners.stats import MINIMUM_FOR_INTERVAL, RatioEstimate

OTHER_PARAMETER = "with"
OFFERED = 100
MOST_IMAGES = 4
IMAGE_WIDTH_PX = 160


def beside(store: Store, run: RunDir, record: Record) -> None:
    """Draws the choice of the other run, and the comparison once there is one; the address holds it (`with=`)."""
    frame = store.runs(workloads=[record.workload], statuses=["ok"], limit=OFFERED)
    labels = {str(row.run_id): _label(row) for row in frame.itertuples() if row.run_id != record.run_id}
    asked = st.query_params.get(OTHER_PARAMETER)
    if asked and asked not in labels and asked != record.run_id:
        labels[asked] = asked  # an older one, or one that is not ok: the link still opens it
    if not labels:
        return
    heading(_("Beside another run"))
    options = list(labels)
    chosen = st.selectbox(
        _("The other run"),
        options,
        index=options.index(asked) if asked in options else None,
        format_func=labels.__getitem__,
        placeholder=_("Choose a run"),
        key=f"explorer_with_{record.run_id}",
        label_visibility="collapsed",
    )
    if chosen is None:
        st.query_params.pop(OTHER_PARAMETER, None)
        return
    st.query_params[OTHER_PARAMETER] = chosen
    try:
        other_run = store.run_dir(chosen)
        other = state.finished_record(other_run.path)
    except RecordError as error:
        error_message(error)
        return
    _ratio(record, other)
    _differences(differing(record, other))
    _images(run, record, other_run, other)


def _label(row: object) -> str:
    made = getattr(row, "created_utc", None)
    when = f"{made:%Y-%m-%d %H:%M}" if made is not None and made == made else ""
    title = getattr(row, "prompt", None) or getattr(row, "model", None) or ""
    return " · ".join(part for part in (when, shortened(str(title), 40), str(getattr(row, "device_name", ""))) if part)


def _ratio(a: Record, b: Record) -> None:
    """The plain sentence, where the verdict allows one; else why not."""
    mine, theirs = comparison.charted_measurement(a), comparison.charted_measurement(b)
    if mine is None or theirs is None:
        return
    verdict = compare(mine, theirs)
    verdict_badge(verdict.level)
    if verdict.ratio is not None:
        st.markdown(_sentence(speed_ratio(a, b), verdict.ratio))
    if verdict.findings:
        with st.expander(_("Reasons"), icon=":material/rule:", expanded=verdict.ratio is None):
            reasons(verdict)


def _sentence(estimate: RatioEstimate | None, recorded: float) -> str:
    """How the speeds relate: by the samples, or where a record has none by the values that it holds."""
    if estimate is None:
        return _("This run is {ratio} as fast as the other; without samples nothing says how sure that is.").format(
            ratio=f"**{charts.format_ratio(recorded)}**"
        )
    ratio = f"**{charts.format_ratio(estimate.ratio)}**"
    if estimate.interval is None:
        return _("This run is {ratio} as fast as the other; with fewer than {n} samples there is no interval.").format(
            ratio=ratio, n=MINIMUM_FOR_INTERVAL
        )
    low, high = (charts.format_ratio(bound) for bound in estimate.interval)
    if not estimate.differs:
        return _("No difference in speed that these samples can show (95 %: {low} to {high}).").format(
            low=low, high=high
        )
    return _("This run is {ratio} as fast as the other (95 %: {low} to {high}).").format(
        ratio=ratio, low=low, high=high
    )


def _differences(found: list[Difference]) -> None:
    if not found:
        st.caption(_("Settings and environment are the same."))
        return
    names = {**FIELD_NAMES, **FIELDS}
    st.table(
        {
            _("What differs"): [escape(word(names, item.name)) for item in found],
            _("This run"): [escape(_text(item.value_a)) for item in found],
            _("The other run"): [escape(_text(item.value_b)) for item in found],
        },
        border="horizontal",
    )


def _text(value: object) -> str:
    return "–" if value is None or value == "" else shortened(str(value), 120)


def _images(run: RunDir, a: Record, other_run: RunDir, b: Record) -> None:
    pairs = [
        (index, one, there)
        for index, one in enumerate(run_detail.image_paths(a, run.path))
        for place, there in enumerate(run_detail.image_paths(b, other_run.path))
        if run_detail.seed_of(a, index) == run_detail.seed_of(b, place)
    ]
    for index, one, there in pairs[:MOST_IMAGES]:
        left, right = st.columns(2)
        left.image(str(one), width=IMAGE_WIDTH_PX, alt=run_detail.image_alt(a, index))
        right.image(str(there), width=IMAGE_WIDTH_PX, alt=run_detail.image_alt(b, index))
        st.caption(_similarity_text(run_detail.seed_of(a, index), one, there))


def _similarity_text(seed: int, one: Path, there: Path) -> str:
    found = similarity_of_files(str(one), str(there))
    if found is None:
        return _("Seed {seed}: images of different sizes.").format(seed=seed)
    if found[0] == float("inf"):
        return _("Seed {seed}: the same image, pixel for pixel.").format(seed=seed)
    return _("Seed {seed}: PSNR {psnr:.1f} dB, SSIM {ssim:.3f} (1 is equal).").format(
        seed=seed, psnr=found[0], ssim=found[1]
    )


@st.cache_data(show_spinner=False, max_entries=200)
def similarity_of_files(one: str, there: str) -> tuple[float, float] | None:
    """PSNR in dB and SSIM of two PNG files, or None where their sizes differ; images of a run never change."""
    import numpy as np
    from PIL import Image

    with Image.open(one) as first, Image.open(there) as second:
        found = similarity(np.asarray(first.convert("RGB")), np.asarray(second.convert("RGB")))
    return (found.psnr_db, found.ssim) if found else None
