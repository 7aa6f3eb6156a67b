"""Where a question in SQL is written, examples to start from, and what the views hold."""

import streamlit as st

from app.components import heading
from app.i18n import _
from data.query import MAX_SQL_CHARACTERS
from data.view_docs import EXAMPLES, VIEWS

TEXT_KEY, EXAMPLE_KEY, ASKED_KEY, ANSWER_KEY = "sql_text", "sql_example", "sql_asked", "sql_answer"
ADDRESS = "sql"
MAX_ADDRESS_CHARACTERS = 1_500
HEIGHT_PX = 260


def form() -> str | None:
    """Draws the form; the question that was asked last, or None.

    A link carries the question and does not ask it: whoever opens it sees first what it is.
    """
    if TEXT_KEY not in st.session_state:
        st.session_state[TEXT_KEY] = st.query_params.get(ADDRESS, EXAMPLES[0].sql)[:MAX_SQL_CHARACTERS]
    titles = [_(example.title) for example in EXAMPLES]
    st.selectbox(
        _("Examples"),
        range(len(EXAMPLES)),
        index=None,
        format_func=titles.__getitem__,
        key=EXAMPLE_KEY,
        placeholder=_("Start from an example"),
        on_change=_take_example,
    )
    st.text_area(
        _("Question in SQL"),
        key=TEXT_KEY,
        height=HEIGHT_PX,
        max_chars=MAX_SQL_CHARACTERS,
        help=_("One SELECT, in DuckDB's SQL. It runs on a copy: nothing here can change or delete anything."),
        persist_state="session",
    )
    st.button(_("Ask"), type="primary", icon=":material/play_arrow:", key="sql_ask", on_click=_ask)
    st.caption(_("At most 5 seconds, 512 MiB and 10,000 rows."))
    asked = st.session_state.get(ASKED_KEY)
    return asked if isinstance(asked, str) else None


def views() -> None:
    """What can be asked: each view with its columns."""
    heading(_("What can be asked"))
    for name, view in VIEWS.items():
        with st.expander(f"`{name}` · {_(view.about)}", icon=":material/table_rows:"):
            st.table(
                {
                    _("Column"): [f"`{column}`" for column in view.columns],
                    _("Meaning"): [_(about) for about in view.columns.values()],
                },
                border="horizontal",
            )
    st.caption(
        _("The tables beneath them (runs, metrics, series, phases, artifacts) can be asked too: see DESCRIBE runs.")
    )


def _take_example() -> None:
    chosen = st.session_state.get(EXAMPLE_KEY)
    if chosen is not None:
        st.session_state[TEXT_KEY] = EXAMPLES[chosen].sql
        _ask()


def _ask() -> None:
    text = str(st.session_state.get(TEXT_KEY, ""))
    st.session_state[ASKED_KEY] = text
    st.session_state.pop(ANSWER_KEY, None)
    if len(text) <= MAX_ADDRESS_CHARACTERS:
        st.query_params[ADDRESS] = text
    else:
        st.query_params.pop(ADDRESS, None)
