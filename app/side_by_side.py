"""Two settings side by side: the same prompt and seed, one thing changed, both images and both times."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import charts, comparison, playground_form, run_detail, run_progress, state
from app.components import (
    damage_stays_here,
    error_message,
    escape,
    reasons,
    status_badge,
    verdict_badge,
)
from app.i18n import _
from app.words import FIELDS, word
from data.comparability import compare
from runners.errors import RecordError, RunnersError
from runners.paths import runs_dir
from runners.records import Record, new_run_id
from runners.rundir import RunDir, list_runs
from runners.spec_fields import Field, fields_of
from runners.specs import TextToImageSpec

FIELD_KEY, VALUE_KEY = "playground_side_field", "playground_side_value"
CHANGEABLE = ("guidance", "steps", "scheduler", "precision", "weights", "negative_prompt")
LOOKED_AT = 100
FIELDS_BY_NAME = {field.name: field for field in fields_of(TextToImageSpec)}


def controls(fields: dict[str, Any]) -> None:
    """Draws the choice of what to change; the button puts both runs into the queue.

    Args:
        fields: The form's values: the first of the two settings.
    """
    with st.expander(_("Side by side"), icon=":material/compare:", key="playground_side"):
        st.caption(_("Makes the image twice from the same seed, the second time with one setting changed."))
        name = st.selectbox(
            _("What to change"),
            CHANGEABLE,
            format_func=lambda item: word(FIELDS, item),
            key=FIELD_KEY,
            persist_state="session",
        )
        value = _value_input(FIELDS_BY_NAME[name])
        pressed = st.button(_("Generate both"), icon=":material/compare:", key="playground_side_start", width="stretch")
    if not pressed:
        return
    if value is None or value == fields.get(name):
        st.warning(_("Give a value that differs from the one in the form."), icon=":material/info:")
        return
    problem = _submit(fields, {**fields, name: value})
    if problem is not None:
        error_message(problem)


def partner(run: RunDir) -> RunDir | None:
    """The other run of a pair, or None."""
    group_id = _group(run)
    if group_id is None:
        return None
    newest = list_runs(runs_dir())[: -LOOKED_AT - 1 : -1]
    return next((other for other in newest if other.run_id != run.run_id and _group(other) == group_id), None)


def pair_result(runs: Sequence[RunDir]) -> None:
    """Both images with their times, and how the times compare."""
    records: list[Record] = []
    with st.container(border=True):
        for column, run in zip(st.columns(2), sorted(runs, key=lambda item: item.run_id), strict=True):
            with column, damage_stays_here(run.run_id):
                if not run.has_record():
                    run_progress.follow(run)
                    continue
                try:
                    records.append(state.finished_record(run.path))
                except RecordError as error:
                    error_message(error)
                    continue
                _one(run, records[-1], runs)
        if len(records) == len(runs):
            _times(*records)


def _value_input(field: Field) -> Any:
    label = word(FIELDS, field.name)
    key = f"{VALUE_KEY}_{field.name}"
    if field.limits.choices:
        return st.selectbox(label, field.limits.choices, key=key, persist_state="session")
    if field.type is str:
        return st.text_input(label, key=key, persist_state="session") or None
    step = 1 if field.type is int else 0.5
    return st.number_input(label, value=None, step=step, key=key, persist_state="session")


def _submit(first: dict[str, Any], second: dict[str, Any]) -> RunnersError | None:
    for fields in (first, second):
        if (problem := playground_form.check(fields)) is not None:
            return problem
    group_id = new_run_id()
    try:
        for number, chosen in enumerate((first, second)):
            fields = {**chosen, "previews": False}  # they would be drawn while the clock runs
            run = state.queue().submit(
                playground_form.WORKLOAD, fields, source="playground", group_id=group_id, repeat=number
            )
    except RunnersError as error:
        return error
    st.session_state[state.PLAYGROUND_RUN] = run.run_id
    st.rerun()


def _group(run: RunDir) -> str | None:
    try:
        request = run.request()
    except RunnersError:
        return None
    return request.group_id if request.source == "playground" else None


def _one(run: RunDir, record: Record, runs: Sequence[RunDir]) -> None:
    st.markdown(f"**{escape(_what_is_its_own(record, runs))}**")
    if record.status != "ok":
        status_badge(record.status)
    run_detail.error_details(record)
    for index, path in enumerate(run_detail.image_paths(record, run.path)[:1]):
        st.image(str(path), width="stretch", alt=run_detail.image_alt(record, index))
    own = comparison.charted_measurement(record)
    if own is not None and own.value is not None:
        st.metric(_("Time per image"), f"{charts.format_number(own.value)} s")


def _what_is_its_own(record: Record, runs: Sequence[RunDir]) -> str:
    """The settings in which the two differ, with this run's values."""
    specs = []
    for run in runs:
        try:
            specs.append(run.request().fields)
        except RunnersError:
            specs.append({})
    names = [name for name in CHANGEABLE if len({str(spec.get(name)) for spec in specs}) > 1]
    values = [f"{word(FIELDS, name)}: {_said(record, name)}" for name in names]
    return " · ".join(values) or run_detail.image_alt(record, 0)


def _said(record: Record, name: str) -> str:
    value = record.spec.get(name)
    if value is None:
        value = getattr(record.conditions, name, None)
    return str(value) if value not in (None, "") else _("the model's own")


def _times(first: Record, second: Record) -> None:
    one, other = comparison.charted_measurement(first), comparison.charted_measurement(second)
    if one is None or other is None:
        return
    verdict = compare(other, one)
    with st.container(horizontal=True, vertical_alignment="center"):
        verdict_badge(verdict.level)
        if verdict.ratio is not None:
            ratio = charts.format_ratio(verdict.ratio)
            st.markdown(
                _("The second is {ratio} as fast as the first, from one image each.").format(ratio=f"**{ratio}**")
            )
    reasons(verdict)
