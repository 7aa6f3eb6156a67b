"""The views that people ask in SQL: described, filled, and no way out of the copy; results as files."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from data.errors import QueryError
from data.query import QueryLimits, QueryResult, database_copy, run_query
from data.query_child import answer
from data.query_export import result_to_csv, result_to_parquet
from data.record_rows import TABLES
from data.store import Store
from data.view_docs import EXAMPLES, VIEWS
from runners.records import Conditions, DeviceInfo, ErrorInfo, Metric, Record, Series
from runners.rundir import RunDir, create_run


def make_run(runs_dir: Path, **changes: Any) -> RunDir:
    run = create_run(runs_dir, "text-to-image", {})
    values: dict[str, Any] = {
        "run_id": run.run_id,
        "workload": "text-to-image",
        "status": "ok",
        "spec": {},
        "conditions": Conditions(workload="text-to-image", model="m", batch_size_per_device=2, precision="fp32"),
        "device": DeviceInfo(kind="cpu", name="A processor"),
        "environment": {"packages": {"torch": "2.13.0", 'odd"name': "1", "absent": None}},
        "created_utc": "2026-11-30T12:00:00Z",
        "finished_utc": "2026-11-30T12:00:05Z",
        "metrics": (
            Metric(name="images_per_s", value=0.5, unit="images/s", n=3, higher_is_better=True),
            Metric(
                name="s_per_image", value=2.0, unit="s/image", n=3, higher_is_better=False, timed_region="end-to-end"
            ),
        ),
        "series": (
            Series(name="denoising_s", unit="s", phase="measured", values=(1.0, 3.0, 2.0)),
            Series(name="loss", unit="", phase="measured", values=(3.0, 2.0, 1.0)),
            Series(name="loss_at_step", unit="step", phase="measured", values=(10.0, 20.0, 30.0)),
        ),
    }
    run.write_record(Record(**{**values, **changes}))
    return run


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("views")
    make_run(folder / "runs")
    make_run(folder / "runs", series=(Series(name="loss", unit="", phase="measured", values=(5.0, 4.0)),))
    make_run(folder / "runs").annotate(deleted=True)
    make_run(folder / "runs", environment={"packages": ["not", "an", "object"]})
    error = ErrorInfo(type="X", message_id="unexpected", params={}, message="it broke")
    make_run(folder / "runs", status="failed", error=error, metrics=(), environment={})
    with database_copy(folder / "index.duckdb", folder / "runs") as path:
        yield path


def ask(copy: Path, sql: str, **limits: Any) -> dict[str, Any]:
    return answer({"path": str(copy), "sql": sql, **vars(QueryLimits(**limits))})


def table(copy: Path, sql: str) -> list[list[Any]]:
    result = ask(copy, sql)
    assert "rows" in result, result
    rows: list[list[Any]] = result["rows"]
    return rows


def test_every_view_and_column_is_described(copy: Path) -> None:
    """The copy carries the descriptions too, as comments."""
    found = table(
        copy,
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal AND table_name IN "
        "(SELECT view_name FROM duckdb_views() WHERE NOT internal) ORDER BY table_name, column_index",
    )
    described = [
        [name, column, about] for name, view in sorted(VIEWS.items()) for column, about in view.columns.items()
    ]
    assert found == described
    views = table(copy, "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY view_name")
    assert views == [[name, view.about] for name, view in sorted(VIEWS.items())]


def test_views_show_what_is_not_deleted(copy: Path) -> None:
    assert table(copy, "SELECT count(*), count(DISTINCT run_id) FROM results") == [[6, 3]]
    assert table(copy, "SELECT DISTINCT metric, timed_region FROM results ORDER BY metric") == [
        ["images_per_s", None],
        ["s_per_image", "end-to-end"],
    ]
    assert table(copy, "SELECT count(*) FROM results WHERE is_headline") == [[3]]
    assert table(copy, "SELECT series, sample, value FROM samples WHERE series = 'denoising_s' LIMIT 3") == [
        ["denoising_s", 1, 1.0],
        ["denoising_s", 2, 3.0],
        ["denoising_s", 3, 2.0],
    ]
    losses = table(copy, "SELECT step, loss FROM losses ORDER BY run_id, step")
    assert losses[:5] == [[10.0, 3.0], [20.0, 2.0], [30.0, 1.0], [1.0, 5.0], [2.0, 4.0]]
    assert table(copy, "SELECT DISTINCT stage, median_s, n FROM stage_times") == [["denoising_s", 2.0, 3]]
    assert table(copy, "SELECT status, error_message FROM failures") == [["failed", "it broke"]]
    packages = table(copy, "SELECT DISTINCT package, version FROM packages ORDER BY package")
    assert ["torch", "2.13.0"] in packages and ["absent", None] in packages


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_every_example_answers(copy: Path, tmp_path: Path, example: Any) -> None:
    assert table(copy, example.sql) != []
    with database_copy(tmp_path / "empty.duckdb", tmp_path / "none") as empty:
        assert ask(empty, example.sql)["rows"] == []


def test_a_database_of_the_version_before_is_made_anew_with_views(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    path = tmp_path / "index.duckdb"
    with Store(path, tmp_path / "runs") as store:
        cursor = store._connection.cursor()
        cursor.execute("UPDATE meta SET value = '2.1'")
        cursor.execute('CREATE VIEW "old ""view" AS SELECT 1')
    with Store(path, tmp_path / "runs") as store:
        assert [notice.message_id for notice in store.notices] == ["store-rebuilt-version"]
        names = store._connection.cursor().execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert {name for (name,) in names} == set(VIEWS)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP VIEW results",
        "CREATE OR REPLACE VIEW results AS SELECT 1",
        "ALTER VIEW results RENAME TO x",
        "COMMENT ON VIEW results IS 'x'",
        "INSERT INTO results SELECT * FROM results",
        "MERGE INTO runs USING results ON runs.run_id = results.run_id WHEN MATCHED THEN DELETE",
        "TRUNCATE runs",
        "COPY results TO '/tmp/x.csv'",
        "COPY (FROM results) TO 'x.parquet'",
        "COPY FROM DATABASE copy TO memory",
        "ATTACH 'https://example.com/x.duckdb' AS x (READ_ONLY)",
        "ATTACH '/etc/passwd' AS x (TYPE sqlite)",
        "SELECT * FROM read_csv_auto('/proc/self/maps')",
        "SELECT * FROM read_ndjson('/etc/passwd')",
        "SELECT * FROM read_json_objects('/etc/hosts')",
        "SELECT * FROM parquet_scan('/etc/passwd')",
        "SELECT * FROM parquet_schema('x.parquet')",
        "SELECT * FROM parquet_file_metadata('x.parquet')",
        "SELECT * FROM read_duckdb('/tmp/x.duckdb')",
        "SELECT * FROM sqlite_scan('/tmp/x', 'y')",
        "SELECT * FROM postgres_scan('', '', '')",
        "SELECT * FROM 's3://bucket/x.parquet'",
        "SELECT * FROM 'file:///etc/passwd'",
        "SELECT * FROM \"/etc/passwd\"",
        "SELECT * FROM results, read_text('../../../../etc/passwd')",
        "SELECT (FROM read_blob('/dev/zero'))",
        "FROM query_table('/etc/passwd')",
        "SELECT * FROM pragma_storage_info('/etc/passwd')",
        "PRAGMA enable_object_cache",
        "PRAGMA disabled_filesystems = ''",
        "SET disabled_filesystems = ''",
        "SET temp_directory = '/tmp'",
        "SET extension_directory = '/tmp'",
        "SET allow_unsigned_extensions = true",
        "SET home_directory = '/'",
        "SET allowed_paths = ['/etc/passwd']",
        "SET allowed_directories = ['/']",
        "SET VARIABLE x = 1",
        "SET threads = 64",
        "LOAD '/tmp/evil.duckdb_extension'",
        "INSTALL spatial FROM 'https://example.com'",
        "UPDATE EXTENSIONS",
        "CALL enable_logging()",
        "CALL start_ui()",
        "EXPORT DATABASE 'x'",
        "WITH x AS MATERIALIZED (COPY runs TO 'x') SELECT 1",
        "SELECT 1 INTO OUTFILE '/tmp/x'",
        "SELECT nextval('x')",
        "START TRANSACTION READ WRITE",
        "; DROP TABLE runs",
        "SELECT 1;; DROP TABLE runs; --",
        "SELECT * FROM results WHERE workload = '' OR 1=1; DELETE FROM runs; --",
    ],
)  # fmt: skip
def test_nothing_gets_out_of_the_copy(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.chdir(tmp_path)
    before = copy.read_bytes()
    result = ask(copy, sql)
    assert "rows" not in result, sql
    assert result["message_id"] in ("query-only-select", "query-one-statement", "query-failed")
    assert "root:" not in json.dumps(result) and list(tmp_path.iterdir()) == []
    assert copy.read_bytes() == before


def test_the_real_child_refuses_too(copy: Path, tmp_path: Path) -> None:
    """The same door, through the process that the page uses."""
    for sql in (
        f"COPY runs TO '{tmp_path / 'x'}'",
        "SELECT * FROM read_text('/etc/passwd')",
        "INSTALL httpfs",
        "SET memory_limit = '99GB'",
    ):
        with pytest.raises(QueryError) as caught:
            run_query(sql, copy)
        assert caught.value.message_id in ("query-only-select", "query-failed") and "root:" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert len(run_query("SELECT * FROM results", copy).rows) == 6


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT list(range) FROM range(200_000_000)",
        "SELECT string_agg(repeat('x', 1000), '') FROM range(2_000_000)",
        "SELECT len(repeat('x', 2_000_000_000))",
        "SELECT count(*) FROM (SELECT DISTINCT range, hash(range) FROM range(100_000_000))",
        "SELECT max(a.range + b.range) FROM range(100_000_000) a JOIN range(100_000_000) b ON a.range = b.range",
        "SELECT range, lag(range) OVER (ORDER BY -range) FROM range(100_000_000) ORDER BY 2 DESC LIMIT 1",
    ],
)
def test_no_question_takes_more_than_its_memory_or_time(copy: Path, sql: str) -> None:
    import resource

    before_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with pytest.raises(QueryError) as caught:
        run_query(sql, copy, QueryLimits(limit_s=3))
    assert caught.value.message_id in (
        "query-memory", "query-failed", "query-timeout", "query-died", "query-too-large", "query-failed-oddly",
    )  # fmt: skip
    # The largest child so far: another test's may have been larger, so only growth is looked at. On Linux in KiB.
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak_kib <= max(before_kib, 700 * 1024)


def test_results_become_files(copy: Path) -> None:
    sql = (
        "SELECT 1 AS a, 2.5::DOUBLE AS b, true AS c, TIMESTAMP '2026-11-30 12:00:00' AS d, DATE '2026-11-30' AS e, "
        "[1, 2] AS f, {'x': 1} AS g, '=1+1' AS h, NULL AS i, 3 AS a, 1.5::DECIMAL(9, 2) AS j "
        "UNION ALL SELECT NULL, 'nan'::DOUBLE, NULL, 'infinity'::TIMESTAMP, NULL, NULL, NULL, 'é', NULL, 4, NULL"
    )
    result = run_query(sql, copy)
    read = list(csv.reader(io.StringIO(result_to_csv(result).decode())))
    assert read[0][:3] == ["a", "b", "c"] and read[1][7] == "'=1+1" and read[1][5] == "[1, 2]"
    table = pq.read_table(io.BytesIO(result_to_parquet(result)))
    first, second = table.to_pylist()
    assert (first["a"], first["b"], first["c"], first["j"]) == (1, 2.5, True, 1.5)
    assert first["f"] == "[1, 2]" and first["h"] == "=1+1" and first["a_10"] == 3 and second["b"] is None
    times = run_query("SELECT TIMESTAMP '2026-11-30 12:00:00' AS t", copy)
    assert pq.read_table(io.BytesIO(result_to_parquet(times))).to_pylist() == [{"t": datetime(2026, 11, 30, 12)}]
    empty = QueryResult(columns=("x",), types=("BIGINT",), rows=[], truncated=False)
    assert pq.read_table(io.BytesIO(result_to_parquet(empty))).num_rows == 0


def test_tables_are_still_those_of_the_schema(copy: Path) -> None:
    names = {name for (name,) in table(copy, "SELECT table_name FROM duckdb_tables() WHERE NOT internal")}
    assert names == {*TABLES, "meta"}
