"""The race: published rates replayed in real time, beside this machine generating for real in a lane of its own."""

import time
from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import comparison, state
from app.components import error_message, escape, plain_device_name
from app.i18n import _, ngettext
from app.run_progress import run_or_none
from data.comparability import compare
from data.measurements import Measurement
from runners.errors import RecordError, RunnersError
from runners.progress import read_progress

GOAL_IMAGES = 16
LOOK_S = 0.5
FACTORS = (1, 2, 5, 10, 30)
START_KEY, RUN_KEY, PAST_KEY, PAST_FACTOR_KEY = "race_start", "race_run", "race_past_s", "race_past_factor"
WAITING_KEY, RACED_MODEL_KEY = "race_waits", "race_raced_model"
LANES_KEY, FACTOR_KEY, MODEL_KEY = "race_lanes", "race_factor", "race_model"
DEFAULT_LANES = ("seed-sd-g1-bs8-latency", "seed-sd-a100-bs1-latency", "seed-sd-g2-bs8-latency")
MODELS: Mapping[str, dict[str, Any]] = {
    "bundled": {"weights": "bundled"},
    "architecture": {"weights": "architecture", "width": 512, "height": 512, "steps": 50, "guidance": 7.5},
}


def race() -> None:
    """Draws contestants, controls and lanes."""
    catalogue = state.catalogue()
    lanes = {
        item.id: item
        for item in catalogue.measurements
        if item.metric == "s_per_image" and item.value and item.conditions.model == "stable-diffusion-1"
    }
    default = [lane for lane in DEFAULT_LANES if lane in lanes]
    chosen = st.multiselect(
        _("Contestants"),
        list(lanes),
        default=default,
        format_func=lambda lane: comparison.name(lanes[lane]),
        key=LANES_KEY,
        max_selections=6,
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            _("Replay speed"),
            FACTORS,
            format_func=lambda value: f"{value}×",
            key=FACTOR_KEY,
            default=1,
            required=True,
            on_change=_keep_place,
            help=_("Speeds all replayed lanes up together. The live lane is always as fast as it is."),
        )
        titles = _titles()
        model = st.selectbox(
            _("This machine generates with"), list(titles), format_func=titles.__getitem__, key=MODEL_KEY
        )
        st.button(
            _("Start the race"), type="primary", icon=":material/flag:", key="race_go", on_click=_start, args=(model,)
        )
    if st.session_state.get(RUN_KEY) is None and START_KEY in st.session_state:
        st.caption(_("This machine could not start; only the replay runs."))
    racing = [lanes[lane] for lane in chosen]
    running = START_KEY in st.session_state and not _is_over(racing)
    st.fragment(_lanes, run_every=LOOK_S if running else None)(racing, running=running)


def _titles() -> dict[str, str]:
    return {"bundled": _("bundled small model"), "architecture": _("Stable Diffusion 1.x, random weights")}


def _start(model: str) -> None:
    st.session_state[START_KEY] = time.time()
    st.session_state[PAST_KEY], st.session_state[PAST_FACTOR_KEY] = 0.0, _factor()
    st.session_state[RACED_MODEL_KEY] = model
    st.session_state[RUN_KEY], st.session_state[WAITING_KEY] = None, False
    fields = {**MODELS[model], "prompt": "a red circle on a white background", "images": GOAL_IMAGES, "previews": False}
    try:
        st.session_state[RUN_KEY] = state.queue().submit("text-to-image", fields, source="playground").run_id
        st.session_state[WAITING_KEY] = True
    except RunnersError as error:
        error_message(error)


def _factor() -> int:
    return int(st.session_state.get(FACTOR_KEY) or 1)


def _replayed_s() -> float:
    """How far the replay is: real seconds, each as long as the factor that was set then."""
    if START_KEY not in st.session_state:
        return 0.0
    past_s, factor = st.session_state.get(PAST_KEY, 0.0), st.session_state.get(PAST_FACTOR_KEY, 1)
    return float(past_s) + (time.time() - float(st.session_state[START_KEY])) * int(factor)


def _wait_for_the_live_lane() -> None:
    """Published rates know no loading of a model, so the replay begins with this machine's first batch."""
    run = run_or_none(st.session_state.get(RUN_KEY))
    if run is None or run.has_record() or read_progress(run).status not in ("queued", "loading"):
        st.session_state[WAITING_KEY] = False
    st.session_state[START_KEY] = time.time()


def _keep_place() -> None:
    """Another speed counts from now on: no lane may jump."""
    if START_KEY in st.session_state:
        st.session_state[PAST_KEY] = _replayed_s()
        st.session_state[START_KEY], st.session_state[PAST_FACTOR_KEY] = time.time(), _factor()


def _lanes(lanes: list[Measurement], *, running: bool) -> None:
    if st.session_state.get(WAITING_KEY):
        _wait_for_the_live_lane()
    replayed_s = _replayed_s()
    st.caption(
        _("First to {count} images. Published lanes are replayed from published rates, {factor}×.").format(
            count=GOAL_IMAGES, factor=_factor()
        )
    )
    for item in lanes:
        _replayed(item, replayed_s)
    _live()
    if running and _is_over(lanes):
        st.rerun()  # nothing moves any more, so nobody needs to look again


def _replayed(item: Measurement, seconds: float) -> None:
    assert item.value is not None  # noqa: S101 - lanes without a value are not offered
    images = min(GOAL_IMAGES, seconds / item.value)
    whole_s = GOAL_IMAGES * item.value
    parts = [f"**{escape(comparison.name(item))}**", _("replayed"), _images(int(images))]
    if images >= GOAL_IMAGES:
        parts.append(_("done in {seconds:.1f} s").format(seconds=whole_s))
    st.progress(images / GOAL_IMAGES, text=" · ".join(parts))


def _live() -> None:
    run = run_or_none(st.session_state.get(RUN_KEY))
    name = f"**{escape(plain_device_name(state.device().name))}**"
    if run is None:
        st.progress(0.0, text=" · ".join((name, _("live"), _("not started"))))
        return
    if not run.has_record():
        progress = read_progress(run)
        waiting = progress.status in ("queued", "loading")
        # A batch is an image here; the one that is being made does not count yet.
        told = _("getting ready") if waiting else _images(progress.batch)
        st.progress(0.0 if waiting else progress.fraction, text=" · ".join((name, _("live"), told)))
        return
    try:
        record = state.finished_record(run.path)
    except RecordError as error:
        error_message(error)
        return
    own = comparison.charted_measurement(record)
    if own is None or own.value is None:
        st.progress(0.0, text=" · ".join((name, _("live"), _("it did not finish"))))
        return
    st.progress(1.0, text=" · ".join((name, _("live"), _images(GOAL_IMAGES), f"{own.value:.2f} s/image")))
    reference = state.catalogue().measurement(DEFAULT_LANES[1])
    if compare(own, reference).ratio is None:
        st.caption(
            _("Another task than the published one, so the lanes show no ratio: see the Compare page's verdicts.")
        )


def _is_over(lanes: list[Measurement]) -> bool:
    run = run_or_none(st.session_state.get(RUN_KEY))
    seconds = _replayed_s()
    replayed = all(item.value is not None and seconds > GOAL_IMAGES * item.value for item in lanes)
    return replayed and (run is None or run.has_record())


def _images(count: int) -> str:
    return ngettext("{count} image", "{count} images", count).format(count=count)
