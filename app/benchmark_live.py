"""The Benchmarks page's other side: the benchmark that goes on, with its charts and log, and the newest results."""

from collections.abc import Sequence

import streamlit as st

from app import charts, queue_panel, run_detail, state
from app.components import damage_stays_here, empty_state, escape, sendable, status_badge
from app.i18n import _
from app.words import WORKLOADS, word
from runners.errors import RecordError
from runners.paths import runs_dir
from runners.progress import read_curve
from runners.records import Record
from runners.rundir import RunDir, list_runs

RESULTS = 6
LOOKED_AT = 200
LOG_LINES = 12


def live(run: RunDir) -> None:
    """Pace, loss and the end of the log of a run that goes on."""
    curve = read_curve(run)
    if len(curve.step) > 2:
        has_loss = any(value is not None for value in curve.loss)
        columns = st.columns(2 if has_loss else 1)
        with columns[0]:
            _line(run, "rate", curve.step[1:], curve.steps_per_s[1:], _("Steps per second"))
        if has_loss:
            with columns[1]:
                _line(run, "loss", curve.step, curve.loss, _("Loss"))
    tail = "\n".join(run.log_tail().splitlines()[-LOG_LINES:])
    if tail.strip():
        with st.expander(_("End of the log"), icon=":material/receipt_long:", key=f"log-{run.run_id}"):
            st.code(sendable(tail), language=None, wrap_lines=True)


def _line(run: RunDir, name: str, x: Sequence[float], y: Sequence[float | None], title: str) -> None:
    st.plotly_chart(
        charts.live_line(x, y, _("Step"), title), key=f"{name}-{run.run_id}", config=charts.CONFIG, alt=title
    )


def results() -> None:
    """The newest benchmarks that have ended, the newest open."""
    st.subheader(_("Results"), icon=":material/done_all:", anchor=False)
    found = newest()
    if not found:
        empty_state(
            _("No benchmark has ended yet. Choose one and press “Start”; it goes on when this page is closed."),
            icon=":material/speed:",
        )
        return
    for number, (run, record) in enumerate(found):
        opened = st.expander(_title(record), expanded=number == 0, key=f"benchmark-{record.run_id}")
        with opened, damage_stays_here(run.run_id):
            _result(record)


def newest() -> list[tuple[RunDir, Record]]:
    """Benchmarks that have ended, newest first: what was not made in the Playground."""
    found: list[tuple[RunDir, Record]] = []
    for run in list_runs(runs_dir())[: -LOOKED_AT - 1 : -1]:
        if len(found) == RESULTS:
            break
        if not run.has_record() or run.annotations().get("deleted"):
            continue
        try:
            if run.request().source != "playground":
                found.append((run, state.finished_record(run.path)))
        except (RecordError, ValueError):
            continue  # The Explorer lists it among the problems.
    return found


def _title(record: Record) -> str:
    parts = [word(WORKLOADS, record.workload)]
    best = run_detail.headline(record)
    parts += [best] if best else []
    if record.status != "ok":
        parts.append(run_detail.status_word(record))
    return escape(" · ".join(parts))


def _result(record: Record) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        status_badge(record.status)
        st.button(
            _("Run again"),
            icon=":material/replay:",
            key=f"retry-{record.run_id}",
            type="tertiary",
            help=_("Puts the same settings into the queue again, as a new run."),
            on_click=queue_panel.do,
            args=("retry", record.run_id),
        )
        st.page_link(
            "app/views/explorer.py",
            label=_("Open in the Explorer"),
            icon=":material/table_chart:",
            query_params={state.RUN_PARAMETER: record.run_id},
        )
    run_detail.error_details(record)
    if record.metrics:
        run_detail.clocks(record)
        run_detail.warnings(record)
        run_detail.standing(record)
