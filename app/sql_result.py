"""The answer to a question in SQL: a table, a chart in one click, and the same as a file."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app import charts, sql_chart
from app.components import empty_state, error_message
from app.i18n import _, ngettext
from app.sql_form import ANSWER_KEY
from data.errors import QueryError
from data.query import QueryResult, run_query

TABLE, CHART = "table", "chart"


def show(asked: str | None, copy: Callable[[], Path]) -> None:
    """Asks, and draws the answer or why there is none.

    Args:
        asked: The question; None before there was one.
        copy: Gives the copy of the database to ask.

    Raises:
        StoreError: There is no copy to ask.
    """
    if asked is None:
        empty_state(_("Choose an example or write a question, then ask it."), icon=":material/database:")
        return
    result = _answer(asked, copy)
    if isinstance(result, QueryError):
        error_message(result)
        return
    if not result.rows:
        empty_state(_("No row answers the question."), icon=":material/filter_alt_off:")
        return
    _summary(result)
    plot = sql_chart.suggest(result)
    names = {TABLE: _("Table"), **({CHART: _("Chart")} if plot else {})}
    chosen = st.segmented_control(
        _("Show as"),
        list(names),
        format_func=names.__getitem__,
        default=TABLE,
        required=True,
        key="sql_show",
        label_visibility="collapsed",
    )
    if chosen == CHART and plot:
        _chart(result, plot)
    else:
        _table(result)
    _downloads(result)


def _answer(asked: str, copy: Callable[[], Path]) -> QueryResult | QueryError:
    """Asked once for each press of the button: choosing a chart's columns is no new question."""
    answer = st.session_state.get(ANSWER_KEY)
    if not isinstance(answer, QueryResult | QueryError):
        try:
            with st.spinner(_("Asking"), show_time=True):
                answer = run_query(asked, copy())
        except QueryError as error:
            answer = error
        st.session_state[ANSWER_KEY] = answer
    return answer


def _summary(result: QueryResult) -> None:
    count = ngettext("{count} row", "{count} rows", len(result.rows)).format(count=len(result.rows))
    if result.truncated:
        count = _("Only the first {count}; ask for less, or for sums.").format(count=count)
    st.caption(count)


def _table(result: QueryResult) -> None:
    import pandas as pd

    columns = {}
    for at, (name, kind) in enumerate(zip(result.columns, result.types, strict=True)):
        # Two columns of an answer may have one name.
        unique = name if name not in columns else f"{name} ({at + 1})"
        columns[unique] = [sql_chart.cell(row[at], kind) for row in result.rows]
    st.dataframe(pd.DataFrame(columns), hide_index=True, placeholder="–", alt=_("Answer to the question"))


def _chart(result: QueryResult, plot: sql_chart.Plot) -> None:
    numbers = sql_chart.number_columns(result)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        x = st.selectbox(_("Across"), result.columns, index=result.columns.index(plot.x), key="sql_x")
        y = st.selectbox(_("Up"), numbers, index=numbers.index(plot.y), key="sql_y")
        others = [None, *result.columns]
        group = st.selectbox(
            _("One series for each"),
            others,
            index=others.index(plot.group),
            format_func=lambda name: _("No division") if name is None else name,
            key="sql_group",
        )
        labels = {"bars": _("Bars"), "lines": _("Lines"), "points": _("Points")}
        kind = st.selectbox(
            _("Kind"), list(labels), index=list(labels).index(plot.kind), format_func=labels.__getitem__, key="sql_kind"
        )
    chosen = sql_chart.Plot(x=str(x), y=str(y), group=group, kind=str(kind))
    st.plotly_chart(
        sql_chart.figure(result, chosen),
        config=charts.CONFIG,
        key="sql_chart",
        alt=_("{y} over {x}").format(y=chosen.y, x=chosen.x),
    )


def _downloads(result: QueryResult) -> None:
    # Imported here: making files needs pyarrow's writers, which a first look does not.
    from data.query_export import result_to_csv, result_to_parquet

    with st.container(horizontal=True):
        st.download_button(
            "CSV",
            lambda: result_to_csv(result),
            "likeforlike-query.csv",
            "text/csv",
            icon=":material/download:",
            key="sql_csv",
            on_click="ignore",
        )
        st.download_button(
            "Parquet",
            lambda: result_to_parquet(result),
            "likeforlike-query.parquet",
            "application/vnd.apache.parquet",
            icon=":material/download:",
            key="sql_parquet",
            on_click="ignore",
        )
