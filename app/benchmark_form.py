"""The Benchmarks page's form, made from a workload's specification: help, units, limits and presets come from there."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import state
from app.components import error_message, escape
from app.i18n import _
from app.words import FIELDS, WORKLOADS, word
from runners.errors import DoesNotFit, RunnersError, SpecError
from runners.preflight_training import refuse_at_once
from runners.records import new_run_id
from runners.registry import WORKLOADS as REGISTRY
from runners.registry import make_spec, preset_fields, workload
from runners.rundir import RunDir
from runners.spec_fields import Field, fields_of
from runners.specs import SPECS, TrainingSpec

PREFIX = "benchmarks_"
WORKLOAD_KEY = PREFIX + "workload"
PRESET_KEY = PREFIX + "preset"
REPEATS_KEY = PREFIX + "repeats"
LIMIT_KEY = PREFIX + "limit_min"
OWN = ""
MAX_REPEATS = 20
# What most people change; everything else is one click away.
MAIN_FIELDS = ("weights", "model", "batch_size", "precision", "steps", "images", "devices", "data", "seconds", "device")
HIDDEN_FIELDS = ("previews",)
BENCHMARK_FIELDS: dict[str, dict[str, Any]] = {"text-to-image": {"previews": False}}
"""What a benchmark sets by itself: previews would be drawn while the clock runs."""


def form() -> list[RunDir]:
    """Draws the form, and puts its runs into the queue when the button was pressed.

    Returns:
        The runs that were accepted now.
    """
    chosen = _workload_input()
    _preset_input(chosen)
    fields = [field for field in fields_of(SPECS[chosen]) if field.name not in HIDDEN_FIELDS]
    main = [field for field in fields if field.name in MAIN_FIELDS]
    _inputs(chosen, main)
    with st.expander(_("More settings"), icon=":material/tune:", key=PREFIX + "more"):
        _inputs(chosen, [field for field in fields if field not in main])
        with st.grid(2, min_column_width=150):
            st.number_input(
                _("Repeat in fresh processes"),
                min_value=1,
                max_value=MAX_REPEATS,
                key=REPEATS_KEY,
                help=_("Each repetition is a run of its own: it shows how much results differ from start to start."),
                persist_state="session",
            )
            st.number_input(
                _("Time limit (min)"),
                value=None,
                min_value=1,
                max_value=100_000,
                step=1,
                key=LIMIT_KEY,
                placeholder=_("none"),
                help=_("The run is stopped after this time and recorded as timed out."),
                persist_state="session",
            )
    values = current_values(chosen)
    problem = _problem(chosen, values)
    pressed = st.button(_("Start"), type="primary", icon=":material/play_arrow:", key=PREFIX + "start", width="stretch")
    if problem is not None:
        error_message(problem)
        return []
    return _submit(chosen, values) if pressed else []


def fill(name: str, values: Mapping[str, Any], preset: str | None = None) -> None:
    """Puts a workload and its values into the form; call from a callback, before the widgets are drawn."""
    st.session_state[WORKLOAD_KEY] = name
    st.session_state[_key(name, PRESET_KEY)] = preset
    for field in fields_of(SPECS[name]):
        st.session_state[_key(name, field.name)] = _shown(field, values.get(field.name, field.default))


def current_values(name: str) -> dict[str, Any]:
    """The form's values as the specification's fields; what was left empty is left to the specification."""
    values = {field.name: st.session_state.get(_key(name, field.name)) for field in fields_of(SPECS[name])}
    kept = {key: value for key, value in values.items() if value is not None and value != OWN}
    return {**kept, **BENCHMARK_FIELDS.get(name, {})}


def _workload_input() -> str:
    names = [name for name in REGISTRY if name in SPECS]
    st.session_state.setdefault(WORKLOAD_KEY, names[0])
    st.session_state.setdefault(REPEATS_KEY, 1)
    chosen: str = st.selectbox(
        _("Workload"), names, format_func=lambda name: word(WORKLOADS, name), key=WORKLOAD_KEY, persist_state="session"
    )
    st.caption(_(workload(chosen).summary))
    for field in fields_of(SPECS[chosen]):
        # A new visitor starts from the workload's first preset, which is one that this machine can run.
        first = preset_fields(chosen, next(iter(workload(chosen).presets), None))
        st.session_state.setdefault(_key(chosen, field.name), _shown(field, first.get(field.name, field.default)))
    return chosen


def _preset_input(name: str) -> None:
    titles = {key: _(preset.title) for key, preset in workload(name).presets.items()}
    if not titles:
        return
    st.session_state.setdefault(_key(name, PRESET_KEY), next(iter(titles)))
    st.selectbox(
        _("Start from"),
        list(titles),
        format_func=titles.__getitem__,
        index=None,
        key=_key(name, PRESET_KEY),
        on_change=_use_preset,
        args=(name,),
        placeholder=_("settings of your own"),
        help=_("Fills the form with the settings of a published number, or with what this machine runs in minutes."),
        persist_state="session",
    )


def _use_preset(name: str) -> None:
    preset = st.session_state[_key(name, PRESET_KEY)]
    if preset is not None:
        fill(name, preset_fields(name, preset), preset)


def _inputs(name: str, fields: list[Field]) -> None:
    texts = [field for field in fields if field.type is str and not field.limits.choices]
    for field in texts:
        _input(name, field)
    with st.grid(2, min_column_width=150):
        for field in fields:
            if field not in texts:
                _input(name, field)


def _input(name: str, field: Field) -> None:
    label = word(FIELDS, field.name)
    if field.limits.unit:
        label = f"{label} ({field.limits.unit})"
    key, help_text = _key(name, field.name), _(field.limits.help)
    if field.limits.choices:
        options = [OWN, *field.limits.choices] if field.optional else list(field.limits.choices)
        st.selectbox(
            label,
            options,
            format_func=lambda value: value or _("the device's own"),
            key=key,
            help=help_text,
            persist_state="session",
        )
    elif field.type is bool:
        st.toggle(label, key=key, help=help_text, persist_state="session")
    elif field.type is str or field.name == "seed":
        # Beyond 2^53 a number does not survive the browser, so the seed is a text.
        st.text_input(label, key=key, help=help_text, persist_state="session")
    else:
        st.number_input(
            label,
            value=None,
            step=1 if field.type is int else 0.5,
            format="%d" if field.type is int else "%g",
            key=key,
            placeholder=_("the model's own"),
            help=help_text,
            persist_state="session",
        )


def _shown(field: Field, value: Any) -> Any:
    if value is None:
        return OWN if field.limits.choices else None
    if field.type is float:
        return float(value)
    return str(value) if field.name == "seed" else value


def _key(name: str, part: str) -> str:
    return f"{PREFIX}{name}_{part.removeprefix(PREFIX)}"


def _problem(name: str, values: Mapping[str, Any]) -> RunnersError | None:
    try:
        spec = make_spec(name, values)
        if isinstance(spec, TrainingSpec):
            refuse_at_once(spec)
    except (SpecError, DoesNotFit) as error:
        return error
    return None


def _submit(name: str, values: Mapping[str, Any]) -> list[RunDir]:
    repeats = int(st.session_state[REPEATS_KEY])
    limit_min = st.session_state.get(LIMIT_KEY)
    group_id = new_run_id() if repeats > 1 else None
    accepted: list[RunDir] = []
    try:
        for number in range(repeats):
            accepted.append(
                state.queue().submit(
                    name,
                    values,
                    preset=_unchanged_preset(name, values),
                    source="benchmarks",
                    timeout_s=limit_min * 60.0 if limit_min else None,
                    group_id=group_id,
                    repeat=number,
                )
            )
    except RunnersError as error:
        error_message(error)
    if accepted:
        st.toast(_("In the queue: {name}").format(name=escape(word(WORKLOADS, name))), icon=":material/playlist_add:")
    return accepted


def _unchanged_preset(name: str, values: Mapping[str, Any]) -> str | None:
    """The chosen preset, where the form still says what it says: the record must not name it otherwise."""
    preset: str | None = st.session_state.get(_key(name, PRESET_KEY))
    if preset is None:
        return None
    wanted = {**preset_fields(name, preset), **BENCHMARK_FIELDS.get(name, {})}
    same = make_spec(name, wanted) == make_spec(name, values)
    return preset if same else None
