"""Bringing results in: files are looked at first, what is missing is asked for, and nothing is stored before that."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import charts, state
from app.components import error_message, error_text, escape, heading
from app.i18n import N_, _, ngettext, translate_message
from app.words import METRICS, WORKLOADS, word
from data.messages import FIELD_NAMES
from data.vocabulary import CONDITION_WORDS
from data.vocabulary import WORKLOADS as WORKLOAD_NAMES
from runners.paths import runs_dir
from runners.plausibility import remarks

if TYPE_CHECKING:
    from data.importers.keep import FileResult
    from data.importers.plan import FilePlan
    from data.importers.reading import Source

FILES_KEY, DONE_KEY, PREFIX = "import_files", "import_done", "import_set_"
FOLDER_KEY, PLANS_KEY = "import_folder", "import_plans"
NOT_PUBLISHED = "not published"
SHOWN_RUNS = 200
STATES = {"new": N_("New"), "duplicate": N_("Already here"), "deleted": N_("Deleted here, comes back")}
FIELDS = {
    "device": N_("Device"),
    "device_kind": N_("Kind of device"),
    "created": N_("Date"),
    "throughput_unit": N_("Unit of the throughput"),
}
PLACEHOLDERS = {"created": "2026-11-30", "batch_size_per_device": "8", "devices": "8", "model": "stable-diffusion-1"}


def import_button() -> None:
    """Draws the button that opens the dialog, and what the last import did."""
    done = st.session_state.pop(DONE_KEY, None)
    if isinstance(done, str):
        st.toast(done, icon=":material/check_circle:")
    if st.button(_("Import results"), icon=":material/upload_file:", key="import_open"):
        st.session_state.pop(PLANS_KEY, None)  # what is here may have changed since the dialog was open last
        st.dialog(_("Import results"), width="large")(content)()


def content() -> None:
    """What the dialog shows."""
    # Imported here: nobody who only looks at runs reads files of other programs.
    from data.importers.draft import ImportRefused

    uploads = st.file_uploader(
        _("Result files"),
        accept_multiple_files=True,
        key=FILES_KEY,
        help=_(
            "Bundles of LikeForLike; transformers' and optimum-habana's results and trainer_state.json; TensorBoard "
            "events; optimum-benchmark; MLPerf summaries (with their system JSON) and training logs; codecarbon; "
            "diffusers benchmarks; PNGs of Stable Diffusion web interfaces. Larger files: python -m data import"
        ),
    )
    if not uploads:
        st.caption(_("Files are recognised by their content. You see what would be stored before anything is."))
        return
    sources = _on_disk(uploads)
    try:
        plans = _planned(sources, {})
        answers = _questions(plans)
        if answers:
            plans = _planned(sources, answers)
    except ImportRefused as error:
        error_message(error)
        return
    for plan in plans:
        _preview(plan)
    _confirm(plans)


def _on_disk(uploads: Sequence[Any]) -> list["Source"]:
    """The uploaded files as files, under names of ours; they go when others are uploaded, or with the session."""
    from data.importers.reading import Source

    key = tuple(upload.file_id for upload in uploads)
    kept = st.session_state.get(FOLDER_KEY)
    if kept is None or kept[0] != key:
        folder = tempfile.TemporaryDirectory(prefix="likeforlike-import-")
        kept = (key, folder)
        for number, upload in enumerate(uploads):
            (Path(folder.name) / str(number)).write_bytes(upload.getvalue())
        st.session_state[FOLDER_KEY] = kept
        st.session_state.pop(PLANS_KEY, None)
    return [Source(Path(kept[1].name) / str(number), upload.name) for number, upload in enumerate(uploads)]


def _planned(sources: Sequence["Source"], answers: Mapping[str, str]) -> list["FilePlan"]:
    """What the files would become; each set of answers is looked at once, since reading may take seconds.

    Raises:
        ImportRefused: An answer is none that can be given.
    """
    from data.importers.plan import make_plan

    kept: dict[tuple[tuple[str, str], ...], list[FilePlan]] = st.session_state.get(PLANS_KEY, {})
    key = tuple(sorted(answers.items()))
    if key not in kept:
        # The first one, without answers, says what is asked; besides it only the newest is needed.
        kept = {known: plans for known, plans in kept.items() if not known}
        kept[key] = make_plan(sources, answers, runs_dir())
        st.session_state[PLANS_KEY] = kept
    return kept[key]


def _questions(plans: Sequence["FilePlan"]) -> dict[str, str]:
    """Draws an input for each thing that no file says; the answers so far."""
    asked = list(dict.fromkeys(name for plan in plans for name in plan.asked))
    useful = list(dict.fromkeys(name for plan in plans for name in plan.useful))
    if not asked and not useful:
        return {}
    answers: dict[str, str] = {}
    heading(_("What the files do not say"))
    if asked:
        answers |= _inputs(asked)
    if useful:
        with st.expander(_("Worth adding, so that the numbers can be compared"), expanded=not asked):
            answers |= _inputs(useful)
    return {name: value for name, value in answers.items() if value.strip()}


def _inputs(names: Sequence[str]) -> dict[str, str]:
    answers = {}
    with st.grid("auto", min_column_width=200):
        for name in names:
            options = _options(name)
            label = _(FIELDS.get(name) or FIELD_NAMES.get(name, name))
            if options:
                value = st.selectbox(
                    label[:1].upper() + label[1:],
                    list(options),
                    index=None,
                    format_func=lambda option, words=options: words.get(option, option),  # type: ignore[misc]
                    accept_new_options=name == "device",
                    key=PREFIX + name,
                    placeholder=_("Choose or write") if name == "device" else _("Choose"),
                )
            else:
                value = st.text_input(
                    label[:1].upper() + label[1:], key=PREFIX + name, placeholder=PLACEHOLDERS.get(name)
                )
            answers[name] = str(value or "")
    return answers


def _options(name: str) -> Mapping[str, str]:
    """The answers to choose from, with the words for them; empty where any text is one."""
    nothing = {NOT_PUBLISHED: _("Not published")}
    if name == "workload":
        others = {"synthetic": word(WORKLOADS, "synthetic"), "other": _("Another task")}
        return {**{item: word(WORKLOADS, item) for item in WORKLOAD_NAMES}, **others, **nothing}
    if name == "device":
        return {**{item.name: item.name for item in state.catalogue().devices.values()}, **nothing}
    if name == "throughput_unit":
        return {unit: unit for unit in ("images/s", "samples/s", "tokens/s", "steps/s")}
    return {value: value for value in CONDITION_WORDS.get(name, ())}


def _preview(plan: "FilePlan") -> None:
    with st.container(border=True):
        st.markdown(f"**{escape(plan.source.name)}**" + (f" · {escape(plan.format)}" if plan.format else ""))
        if plan.problem:
            st.error(escape(error_text(*plan.problem)), icon=":material/error:")
            return
        if plan.companion_of:
            st.caption(_("Adds to {file}.").format(file=escape(plan.companion_of)))
            return
        _runs(plan)
        found = {name: params for run in plan.runs for name, params in remarks(run.record).items()}
        for name, params in found.items():
            st.caption(f":material/info: {escape(translate_message(name, params))}")
        if plan.asked:
            names = ", ".join(_(FIELDS.get(name) or FIELD_NAMES.get(name, name)) for name in plan.asked)
            st.warning(_("Needed before it can be stored: {names}.").format(names=names), icon=":material/edit:")


def _runs(plan: "FilePlan") -> None:
    rows = []
    for run in plan.runs[:SHOWN_RUNS]:
        record = run.record
        first = record.metrics[0] if record.metrics else None
        rows.append(
            {
                _("State"): _(STATES[run.state]),
                _("Run"): run.title or "–",
                _("Task"): word(WORKLOADS, record.workload),
                _("Device"): record.device.name,
                _("Quantity"): word(METRICS, first.name) if first else "–",
                _("Value"): f"{charts.format_number(first.value)} {first.unit}".strip() if first else "–",
            }
        )
    st.dataframe(rows, hide_index=True, alt=_("Runs that would be stored"))
    if len(plan.runs) > SHOWN_RUNS:
        rest = len(plan.runs) - SHOWN_RUNS
        st.caption(ngettext("and {count} more", "and {count} more", rest).format(count=rest))


def _confirm(plans: Sequence["FilePlan"]) -> None:
    ready = [plan for plan in plans if not plan.problem and not plan.asked]
    count = sum(run.state != "duplicate" for plan in ready for run in plan.runs)
    label = ngettext("Import {count} run", "Import {count} runs", count).format(count=count)
    if not st.button(label, type="primary", icon=":material/download_done:", key="import_go", disabled=not count):
        return
    from data.importers.draft import ImportRefused
    from data.importers.keep import store

    try:
        results = [store(plan, runs_dir()) for plan in ready]
    except ImportRefused as error:
        error_message(error)
        return
    state.run_ended()
    st.session_state.pop(FOLDER_KEY, None)
    st.session_state.pop(PLANS_KEY, None)
    problems = [result for result in results if result.problem]
    if problems:
        for result in problems:
            st.error(escape(error_text(*result.problem)), icon=":material/error:")  # type: ignore[misc]
        return
    st.session_state[DONE_KEY] = _said(results)
    st.rerun()


def _said(results: Sequence["FileResult"]) -> str:
    added = sum(len(result.added) + len(result.restored) for result in results)
    return ngettext("{count} run imported.", "{count} runs imported.", added).format(count=added)
