"""The SQL page: examples, answers, refusals, charts; driven through AppTest on a real store and child."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import sql_chart
from data.query import QueryResult
from data.query_copies import QueryCopies
from data.store import Store
from data.view_docs import EXAMPLES, VIEWS
from runners.paths import runs_dir
from runners.records import Conditions, DeviceInfo, Metric, Record, Series
from runners.rundir import RunDir, create_run

ENTRY = Path(__file__).resolve().parent.parent / "streamlit_app.py"


@pytest.fixture(autouse=True)
def _fresh_caches() -> None:
    import streamlit as st

    st.cache_data.clear()
    st.cache_resource.clear()


def make_run(batch: int = 1, value: float = 2.0) -> RunDir:
    run = create_run(runs_dir(), "text-to-image", {})
    record = Record(
        run_id=run.run_id,
        workload="text-to-image",
        status="ok",
        spec={"prompt": "<b>x</b>"},
        conditions=Conditions(workload="text-to-image", model="m", batch_size_per_device=batch),
        device=DeviceInfo(kind="cpu", name="A <processor>"),
        environment={},
        created_utc="2026-11-30T12:00:00Z",
        finished_utc="2026-11-30T12:00:05Z",
        metrics=(Metric(name="images_per_s", value=value, unit="images/s", n=3, higher_is_better=True),),
        series=(Series(name="end_to_end_s", unit="s", phase="measured", values=(1.0, 2.0)),),
    )
    run.write_record(record)
    return run


def page(**query: str) -> AppTest:
    at = AppTest.from_file(str(ENTRY), default_timeout=60)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    at.switch_page("app/views/sql.py").run()
    assert not at.exception
    return at


def ask(at: AppTest, sql: str) -> AppTest:
    at.text_area(key="sql_text").set_value(sql)
    at.button(key="sql_ask").click().run()
    assert not at.exception
    return at


def test_nothing_is_asked_before_somebody_asks() -> None:
    at = page()
    assert at.text_area(key="sql_text").value == EXAMPLES[0].sql and not at.dataframe
    assert len(at.expander) == len(VIEWS)


def test_an_example_answers_in_one_click() -> None:
    for batch in (1, 2, 4):
        make_run(batch, value=batch / 2)
    at = page()
    at.selectbox(key="sql_example").set_value(1).run()
    assert not at.exception
    [frame] = at.dataframe
    assert list(frame.value["batch_size_per_device"]) == [1, 2, 4]
    at.segmented_control(key="sql_show").set_value("chart").run()
    assert not at.exception and at.get("plotly_chart")
    assert at.selectbox(key="sql_x").value == "batch_size_per_device"


def test_refusals_and_empty_answers_are_sentences() -> None:
    make_run()
    at = page()
    for sql, said in (
        ("DROP TABLE runs", "Only SELECT"),
        ("SELECT * FROM read_text('/etc/passwd')", "failed"),
        ("SELECT nothing FROM runs", "nothing"),
        ("  ", "empty"),
    ):
        assert said in ask(at, sql).error[0].value
    assert not ask(at, "SELECT 1 WHERE false").error
    assert "No row" in " ".join(item.value for item in at.markdown)
    assert not ask(at, "SELECT count(*) AS runs FROM runs").error and at.dataframe[0].value["runs"][0] == 1


def test_answers_of_odd_shapes_are_shown() -> None:
    make_run()
    at = page()
    ask(
        at,
        "SELECT 1 AS a, 2 AS a, [1, 2] AS b, {'x': 1} AS c, NULL AS d, '<b>' AS e, "
        "170141183460469231731687303715884105727 AS f",
    )
    assert list(at.dataframe[0].value.columns) == ["a", "a (2)", "b", "c", "d", "e", "f"]
    ask(at, "SELECT * FROM test_all_types()")
    assert at.dataframe


def test_a_link_carries_the_question_and_does_not_ask_it() -> None:
    make_run()
    at = page(sql="SELECT 41 + 1 AS answer")
    assert at.text_area(key="sql_text").value == "SELECT 41 + 1 AS answer" and not at.dataframe
    ask(at, "SELECT 43 AS other")
    assert at.query_params["sql"] == "SELECT 43 AS other"


def test_new_runs_are_seen_and_old_copies_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("data.query_copies.FRESH_S", -1.0)
    with Store(tmp_path / "index.duckdb", runs_dir()) as store:
        copies = QueryCopies(store)
        paths = [copies.latest() for _ in range(4)]
        assert [path.exists() for path in paths] == [False, False, True, True]
        monkeypatch.setattr("data.query_copies.FRESH_S", 60.0)
        assert copies.latest() == paths[-1]
        copies.close()
        assert not paths[-1].parent.exists()


def result(columns: dict[str, str], *rows: list[Any]) -> QueryResult:
    return QueryResult(columns=tuple(columns), types=tuple(columns.values()), rows=list(rows), truncated=False)


def test_which_columns_a_chart_takes() -> None:
    both = result(
        {"day": "TIMESTAMP", "device": "VARCHAR", "speed": "DOUBLE"}, ["2026-01-01", "a", 1.0], ["2026-01-02", "b", 2.0]
    )
    assert sql_chart.suggest(both) == sql_chart.Plot(x="day", y="speed", group="device", kind="lines")
    one = result({"n": "BIGINT"}, [3], [4])
    assert sql_chart.suggest(one) == sql_chart.Plot(x="n", y="n", group=None, kind="lines")
    assert sql_chart.suggest(result({"a": "VARCHAR"}, ["x"])) is None
    names = result({"name": "VARCHAR", "runs": "BIGINT", "share": "DECIMAL(9,2)"}, ["x", 3, 0.5])
    assert sql_chart.suggest(names) == sql_chart.Plot(x="name", y="share", group=None, kind="bars")


def test_a_chart_leaves_gaps_and_runs_no_markup() -> None:
    rows = result({"x": "VARCHAR", "y": "DOUBLE"}, ["<b>a</b>", 1.0], ["b", None], ["c", 1e308])
    for kind in ("bars", "lines", "points"):
        figure = sql_chart.figure(rows, sql_chart.Plot(x="x", y="y", group=None, kind=kind))
        assert figure.data[0].x[0] == "&lt;b&gt;a&lt;/b&gt;" and list(figure.data[0].y) == [1.0, None, None]
    many = result({"g": "VARCHAR", "y": "DOUBLE"}, *[[str(number), 1.0] for number in range(40)])
    assert (
        len(sql_chart.figure(many, sql_chart.Plot(x="y", y="y", group="g", kind="points")).data) == sql_chart.MAX_GROUPS
    )
