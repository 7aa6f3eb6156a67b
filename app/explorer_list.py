"""The Explorer's table: all runs, filtered, newest first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import state
from app.components import empty_state, escape, shortened
from app.export_menu import export_menu
from app.i18n import _, ngettext, translate_message
from app.words import METRICS, STATUSES, WORKLOADS, word
from data.ingest import Problem
from data.store import Store
from runners.plausibility import PREFIX as IMPOSSIBLE

if TYPE_CHECKING:
    import pandas as pd

# The one notice that asks for a look: a damaged file was moved away. That an index was made is no news.
REBUILT = "store-rebuilt-broken"
TABLE_KEY, TEXT_KEY = "explorer_table", "explorer_text"
MAX_SEARCH_CHARACTERS = 200
SYMBOLS = {"ok": "✓", "failed": "✗", "cancelled": "–", "timeout": "✗", "lost": "?"}


def show(store: Store) -> None:
    """Draws filters and table."""
    for notice in (item for item in store.notices if item.message_id == REBUILT):
        st.caption(f":material/info: {escape(translate_message(notice.message_id, notice.params))}")
    _unfinished(store)
    problems = store.problems()
    values = store.filter_values()
    if not any(values.values()):
        empty_state(
            _("No runs yet. Generate an image in the Playground, or run a workload from a shell; it appears here."),
            icon=":material/table_chart:",
            link_page="app/views/playground.py",
            link_label=_("Open the Playground"),
        )
    else:
        _table(store.runs(**_filters(values)))
    _problems(problems)


def _filters(values: dict[str, list[Any]]) -> dict[str, Any]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if TEXT_KEY not in st.session_state:
            st.session_state[TEXT_KEY] = st.query_params.get("text", "")[:MAX_SEARCH_CHARACTERS]
        text = st.text_input(
            _("Search"),
            key=TEXT_KEY,
            max_chars=MAX_SEARCH_CHARACTERS,
            placeholder=_("Prompt, device, model, error or id"),
            icon=":material/search:",
            persist_state="session",
        )
        _into_address("text", [text.strip()] if text.strip() else [])
        with st.popover(_("Filters"), icon=":material/filter_alt:"):
            chosen = {
                "workloads": _choices(_("Workload"), "workloads", values["workloads"], WORKLOADS),
                "statuses": _choices(_("Status"), "statuses", values["statuses"], STATUSES),
                "devices": _choices(_("Device"), "devices", values["devices"], {}),
                "models": _choices(_("Model"), "models", values["models"], {}),
                "precisions": _choices(_("Precision"), "precisions", values["precisions"], {}),
                "batch_sizes": _choices(_("Batch"), "batch_sizes", values["batch_sizes"], {}),
                "origins": _choices(_("Origin"), "origins", values["origins"], {}),
            }
    return {**chosen, "text": text.strip()}


def _choices(label: str, name: str, options: list[Any], words: dict[str, str]) -> list[Any]:
    """One filter; the address holds what is chosen (`?models=a&models=b`), so that a link shows the same."""
    by_text = {str(value): value for value in options}
    key = f"explorer_{name}"
    if key not in st.session_state:
        st.session_state[key] = [asked for asked in st.query_params.get_all(name) if asked in by_text]
    labels = {text: word(words, text) for text in by_text}
    chosen = st.multiselect(
        label,
        list(by_text),
        format_func=lambda text: labels.get(text, text),
        key=key,
        placeholder=_("All"),
        persist_state="session",
    )
    _into_address(name, chosen)
    return [by_text[text] for text in chosen if text in by_text]


def _into_address(name: str, values: list[str]) -> None:
    if not values and name in st.query_params:
        del st.query_params[name]
    elif values and st.query_params.get_all(name) != values:
        st.query_params[name] = values


def _table(runs: "pd.DataFrame") -> None:
    if runs.empty:
        empty_state(_("No run matches. Remove a filter or shorten the search."), icon=":material/filter_alt_off:")
        return
    count = ngettext(
        "{count} run. Select it to see it in full.", "{count} runs. Select one to see it in full.", len(runs)
    )
    ids = list(runs["run_id"])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(count.format(count=len(runs)), width="stretch")
        export_menu(ids)
    st.dataframe(
        table(runs),
        key=TABLE_KEY,
        hide_index=True,
        on_select=lambda: _open_selected(ids),
        selection_mode="single-row",
        column_config={
            _("Created (UTC)"): st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
            _("Value"): st.column_config.NumberColumn(format="%.4g"),
        },
        placeholder="–",
        alt=_("Table of runs"),
    )


def table(runs: "pd.DataFrame") -> "pd.DataFrame":
    """The columns that are shown, in words of the reader's language."""
    shown = runs.assign(
        status=[_status(*pair) for pair in zip(runs["status"], runs["grade_reasons"], strict=True)],
        workload=[word(WORKLOADS, name) for name in runs["workload"]],
        metric=[_metric(name) for name in runs["metric"]],
    )
    names = {
        "status": _("Status"),
        "workload": _("Workload"),
        "prompt": _("Prompt"),
        "value": _("Value"),
        "unit": _("Unit"),
        "grade": _("Grade"),
        "metric": _("Metric"),
        "model": _("Model"),
        "batch_size_per_device": _("Batch"),
        "precision": _("Precision"),
        "device_name": _("Device"),
        "created_utc": _("Created (UTC)"),
    }
    return shown[list(names)].rename(columns=names)


def _status(name: str, reasons: Sequence[str]) -> str:
    """How the run ended; of one whose numbers cannot be true, that."""
    if any(reason.startswith(IMPOSSIBLE) for reason in reasons):
        return "⚠ " + _("Impossible")
    return f"{SYMBOLS.get(name, '')} {word(STATUSES, name)}".strip()


def _metric(name: object) -> str:
    # A run that ended badly has no metric; pandas gives None or NaN for it.
    return word(METRICS, name) if isinstance(name, str) else ""


def _open_selected(ids: Sequence[str]) -> None:
    rows = st.session_state[TABLE_KEY].selection.rows
    if rows:
        st.query_params[state.RUN_PARAMETER] = ids[rows[0]]


def _unfinished(store: Store) -> None:
    waiting = store.unfinished()
    for run in waiting[:3]:
        name = str(run.fields.get("prompt") or word(WORKLOADS, run.workload or run.run_id))
        st.page_link(
            "app/views/explorer.py",
            label=_("Under way: {name}").format(name=escape(shortened(name, 80))),
            icon=":material/play_circle:",
            query_params={state.RUN_PARAMETER: run.run_id},
        )
    if len(waiting) > 3:
        st.caption(ngettext("and {count} more", "and {count} more", len(waiting) - 3).format(count=len(waiting) - 3))


def _problems(problems: Sequence[Problem]) -> None:
    if not problems:
        return
    title = ngettext("{count} record cannot be read", "{count} records cannot be read", len(problems)).format(
        count=len(problems)
    )
    with st.expander(title, icon=":material/report:"):
        for problem in problems:
            st.markdown(escape(translate_message(problem.message_id, problem.params)))
