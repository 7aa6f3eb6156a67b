"""One run in full: result, timing, samples, settings, environment, errors, and how to repeat it."""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime

import streamlit as st

from app import charts, limits, run_detail, run_progress, state
from app.components import damage_stays_here, error_message, escape, heading, sendable, shortened, status_badge
from app.export_menu import export_menu
from app.i18n import _
from app.image_actions import image_actions
from app.two_runs import OTHER_PARAMETER, beside
from app.words import FIELDS, PHASES, SERIES, WORKLOADS, word
from data.differences import flat
from data.messages import FIELD_NAMES
from data.store import Store
from runners.calibrate import WORKLOAD as CALIBRATION
from runners.errors import RecordError
from runners.paths import var_dir
from runners.records import Record, Series
from runners.reproduce import shell_command
from runners.rundir import RunDir
from runners.tensorboard_files import FOLDER as TENSORBOARD_FOLDER

IMAGE_WIDTH_PX = 256
BEFORE_MEASURING = "warm-up"
FIRST_CHARTS = 2


def show(store: Store, run_id: str) -> None:
    """Draws the run, or says why it cannot be shown."""
    st.button(_("All runs"), icon=":material/arrow_back:", key="explorer_back", on_click=_close)
    try:
        run = store.run_dir(run_id)
    except RecordError as error:
        error_message(error)
        return
    if not run.has_record():
        run_progress.follow(run)
        return
    try:
        record = state.finished_record(run.path)
    except RecordError as error:
        error_message(error)
        return
    with damage_stays_here(run_id):
        _record(store, run, record)


def _record(store: Store, run: RunDir, record: Record) -> None:
    _heading(record)
    run_detail.error_details(record)
    if not record.metrics:
        # Nothing was measured, so the left half would be empty.
        _images(run, record)
        _repeat(run, record)
        _facts(record)
        return
    left, right = st.columns(2, gap="large")
    with left, damage_stays_here(run.run_id):
        _images(run, record)
        run_detail.clocks(record)
        run_detail.warnings(record)
        limits.show(record)
        run_detail.stage_times(record)
        _samples(record)
    with right, damage_stays_here(run.run_id):
        run_detail.standing(record)
        beside(store, run, record)
        _repeat(run, record)
        _facts(record)


def _close() -> None:
    st.query_params.pop(state.RUN_PARAMETER, None)
    st.query_params.pop(OTHER_PARAMETER, None)


def _heading(record: Record) -> None:
    title = str(record.spec.get("prompt") or word(WORKLOADS, record.workload))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(escape(shortened(title, 200)), anchor=False, width="stretch")
        status_badge(record.status)
        export_menu([record.run_id])
    try:
        created = datetime.fromisoformat(record.created_utc).strftime("%Y-%m-%d %H:%M UTC")
    except (TypeError, ValueError):
        created = escape(str(record.created_utc))
    st.caption(" · ".join((word(WORKLOADS, record.workload), escape(str(record.device.name)), created)))


def _images(run: RunDir, record: Record) -> None:
    paths = run_detail.image_paths(record, run.path)
    if not paths:
        return
    with st.grid("auto", min_column_width=IMAGE_WIDTH_PX):
        for index, path in enumerate(paths):
            with st.container():
                st.image(str(path), width=IMAGE_WIDTH_PX, alt=run_detail.image_alt(record, index))
                image_actions(record, path, index, "explorer")


def _samples(record: Record) -> None:
    """Every sample as it arose; the stages have a chart of their own."""
    shown = [
        series
        for series in record.series
        if series.name not in run_detail.STAGES and series.phase != "stage-pass" and len(series.values) > 1
    ]
    if not shown:
        return
    if record.workload == CALIBRATION:
        return  # dozens of sizes; what they come to is in its table
    heading(_("Every sample"))
    names = list(dict.fromkeys(series.name for series in shown))
    for name in names[:FIRST_CHARTS]:
        _samples_chart(record.run_id, [series for series in shown if series.name == name])
    if len(names) > FIRST_CHARTS:
        with st.expander(_("More of each step"), icon=":material/show_chart:"):
            for name in names[FIRST_CHARTS:]:
                _samples_chart(record.run_id, [series for series in shown if series.name == name])


def _samples_chart(run_id: str, phases: Sequence[Series]) -> None:
    """One quantity over all its phases; two quantities would need two axes."""
    quantity = word(SERIES, phases[0].name)
    values = {
        f"{quantity} ({word(PHASES, series.phase)})" if series.phase == BEFORE_MEASURING else quantity: series.values
        for series in phases
    }
    st.plotly_chart(
        charts.samples(
            values,
            x_title=_("Sample"),
            y_title=f"{quantity} ({phases[0].unit})" if phases[0].unit else quantity,
            firsts=_firsts(phases),
            from_zero=phases[0].unit == "s",
        ),
        key=f"samples-{run_id}-{phases[0].name}",
        config=charts.CONFIG,
        alt=_("Samples in the order in which they were measured: {names}").format(names=", ".join(values)),
    )


def _firsts(phases: Sequence[Series]) -> list[int]:
    """Where each phase begins: the measured samples go on where the warm-up ended."""
    before = sum(len(series.values) for series in phases if series.phase == BEFORE_MEASURING)
    return [1 if series.phase == BEFORE_MEASURING else before + 1 for series in phases]


def _repeat(run: RunDir, record: Record) -> None:
    if record.origin != "measured":
        program = escape(record.origin.removeprefix("imported from "))
        st.caption(_("Imported from {program}, not measured here.").format(program=program))
        return
    heading(_("Repeat it from a shell"))
    st.code(sendable(shell_command(record)), language="shell", wrap_lines=True)
    st.caption(_("Its files: {path}").format(path=escape(relative_path(run))))
    if (run.path / TENSORBOARD_FOLDER).is_dir():
        # Of the environment that measured it: TensorBoard is among the packages that were set up.
        folder = f"{relative_path(run)}/{TENSORBOARD_FOLDER}"
        st.code(f".venv/bin/tensorboard --logdir {folder} --host localhost", language="shell", wrap_lines=True)
        st.caption(_("Its curves in TensorBoard, at the address that this command prints."))


def relative_path(run: RunDir) -> str:
    """The run's folder, seen from the folder that holds `var`: a page is shown to others, a home folder is not."""
    try:
        return str(run.path.resolve().relative_to(var_dir().resolve().parent))
    except ValueError:
        return run.run_id


def _facts(record: Record) -> None:
    with st.expander(_("Settings"), icon=":material/tune:"):
        _pairs({word(FIELDS, name): value for name, value in record.spec.items()})
    with st.expander(_("Conditions that comparisons look at"), icon=":material/rule:"):
        conditions = dataclasses.asdict(record.conditions)
        _pairs({word(FIELD_NAMES, name): value for name, value in conditions.items() if value is not None})
    with st.expander(_("Durations of the phases"), icon=":material/timer:"):
        _pairs({word(PHASES, phase.name): f"{charts.format_number(phase.duration_s)} s" for phase in record.phases})
    with st.expander(_("Environment"), icon=":material/computer:"):
        _pairs(flat(record.environment))
    with st.expander(_("How it was measured"), icon=":material/straighten:"):
        _pairs(
            {
                _("Waiting for the device"): record.audit.sync_policy,
                **flat(record.audit.readings),
                **flat(record.details),
            }
        )


def _pairs(values: Mapping[str, object]) -> None:
    if not values:
        st.caption(_("Nothing was recorded."))
        return
    st.table(
        {_("Name"): [escape(name) for name in values], _("Value"): [escape(_text(value)) for value in values.values()]},
        border="horizontal",
    )


def _text(value: object) -> str:
    if value is None or value == "":
        return "–"
    return str(value) if not isinstance(value, list | tuple) else ", ".join(str(item) for item in value)
