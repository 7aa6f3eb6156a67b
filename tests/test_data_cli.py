"""The data layer's command line, and what a query of a person can and cannot do."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data.__main__ import main
from data.errors import QueryError
from data.query import QueryLimits, database_copy, run_query
from data.query_child import answer
from data.store import Store
from runners.records import Conditions, DeviceInfo, Metric, Record
from runners.rundir import RunDir, create_run

PROJECT_DIR = Path(__file__).resolve().parent.parent


@pytest.fixture
def var(tmp_path: Path) -> Path:
    """Where the `_own_folders` fixture of conftest.py puts everything."""
    return tmp_path / "var"


def make_run(var: Path, **conditions: Any) -> RunDir:
    run = create_run(var / "runs", "text-to-image", {"prompt": "a red circle"})
    values = {"width_px": 512, "height_px": 512, "steps": 50, "batch_size_per_device": 1, "devices": 1, **conditions}
    record = Record(
        run_id=run.run_id,
        workload="text-to-image",
        status="ok",
        spec={"prompt": "a red circle"},
        conditions=Conditions(workload="text-to-image", model="stable-diffusion-1", precision="fp16", **values),
        device=DeviceInfo(kind="cuda", name="A GPU"),
        environment={},
        created_utc="2026-11-30T12:00:00Z",
        finished_utc="2026-11-30T12:00:05Z",
        metrics=(
            Metric(name="images_per_s", value=0.5, unit="images/s", n=9, higher_is_better=True),
            Metric(name="s_per_image", value=2.0, unit="s/image", n=9, higher_is_better=False),
        ),
    )
    run.write_record(record)
    return run


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """Exit code, the JSON document on the last line of stdout, and stderr."""
    code = main([*arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out.splitlines()[-1]), captured.err


def test_ingest_then_rebuild(var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(var)
    create_run(var / "runs", "synthetic", {})
    code, report, stderr = call(capsys, "ingest")
    assert code == 0 and report["unfinished"] == 1 and report["problems"] == []
    assert "made anew" in stderr  # there was no database yet
    code, report, stderr = call(capsys, "ingest")
    assert (code, report["unchanged"], stderr) == (0, 1, "")
    assert call(capsys, "rebuild")[1]["added"] == 1
    assert (var / "likeforlike.duckdb").exists()


def test_check_names_what_is_wrong(var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, _ = call(capsys, "check")
    assert code == 0 and document["references"] >= 37 and document["bad_rows"] == []
    run = make_run(var)
    run.record_path.write_text('{"schema_version": 2}')
    code, document, stderr = call(capsys, "check")
    assert code == 1 and document["unreadable_records"][0]["run_id"] == run.run_id
    assert run.run_id in stderr and "schema version 2" in stderr
    assert not (var / "likeforlike.duckdb").exists()  # checking needs no database


def test_usage_errors_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["query"], ["destroy"], ["compare", "one"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_compare_references_and_runs(var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, _ = call(capsys, "compare", "seed-sd-g2-bs8-latency", "seed-sd-a100-bs1-latency")
    assert code == 0 and document["verdict"] == "caveats"
    assert round(document["ratio"], 2) == 2.84
    assert document["differs"][0] == "batch_size_per_device" and document["interval"] is None
    assert document["better_pair"]["a"] == "diffusersdocs-202306-sd15-g2-bs1-latency"
    assert round(document["better_pair"]["ratio"], 2) == 1.98
    run = make_run(var)
    code, document, _ = call(capsys, "compare", run.run_id, "seed-sd-a100-bs1-latency")
    assert document["ratio"] == pytest.approx(2.63 / 2.0) and document["a"] == run.run_id
    other = make_run(var, width_px=64)
    code, document, _ = call(capsys, "compare", other.run_id, run.run_id)
    assert code == 0 and document["verdict"] == "not-comparable" and document["ratio"] is None
    code, document, stderr = call(capsys, "compare", "seed-sd-g2", run.run_id)
    assert code == 1 and "Nearest: seed-sd-" in stderr
    assert document["error"]["message_id"] == "unknown-measurement"
    assert main(["compare", "seed-bert-g2-bs64-throughput", "seed-bert-a100-bs32-throughput"]) == 0
    printed = capsys.readouterr().out
    assert "At batch 32 Gaudi2 gets through 1,580.2 samples/s, so the ratio there is 1.61, not 1.87." in printed
    assert "seed-bert-g2-bs32-throughput and seed-bert-a100-bs32-throughput" in printed


def test_query_prints_a_table_or_json(var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(var)
    sql = "SELECT name, value FROM metrics ORDER BY value"
    code, document, _ = call(capsys, "query", sql)
    assert code == 0 and document["columns"] == ["name", "value"]
    assert document["rows"] == [["images_per_s", 0.5], ["s_per_image", 2.0]]
    assert main(["query", sql]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["images_per_s", "0.5"]
    code, document, stderr = call(capsys, "query", "SELECT nothing FROM runs")
    assert code == 1 and "nothing" in stderr and "Traceback" not in stderr


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("metrics", {"value": "abc"}),
        ("metrics", {"name": []}),
        ("metrics", {"value": 10**400}),
        ("metrics", {"interval": [1]}),
        ("conditions", {"width_px": "wide"}),
        ("conditions", {"model": []}),
        ("conditions", {"workload": math.inf}),
    ],
)
def test_compare_says_what_is_wrong_with_a_record(
    var: Path, capsys: pytest.CaptureFixture[str], place: str, change: dict[str, Any]
) -> None:
    run = make_run(var)
    document = json.loads(run.record_path.read_text())
    (document["metrics"][0] if place == "metrics" else document[place]).update(change)
    run.record_path.write_text(json.dumps(document))
    code, document, stderr = call(capsys, "compare", run.run_id, "seed-sd-g2-bs8-latency")
    assert (code, document["error"]["message_id"]) == (1, "record-unreadable")
    assert str(run.record_path) in stderr


def test_bytes_that_are_no_text_are_said(var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, stderr = call(capsys, "query", "SELECT '\udcff'")
    assert (code, document["error"]["message_id"]) == (1, "query-not-text")
    assert "character 9" in stderr


@pytest.mark.parametrize("arguments", [("query", "SELECT range FROM range(9_000)"), ("check",)])
def test_a_reader_that_leaves_gets_no_traceback(var: Path, arguments: tuple[str, ...]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "data", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT_DIR,
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == "" and child.wait() == 1


@pytest.mark.parametrize(("redirection", "code", "said"), [(">&-", 0, ""), (">/dev/full", 1, "could not be written")])
def test_an_output_that_takes_nothing_gets_no_traceback(var: Path, redirection: str, code: int, said: str) -> None:
    command = f'exec "{sys.executable}" -m data check {redirection}'
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=PROJECT_DIR, check=False)
    assert result.returncode == code and said in result.stderr and len(result.stderr.splitlines()) == code


def test_folders_that_are_files_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for command in ("ingest", "check", "rebuild"):
        code, document, _ = call(capsys, command, "--runs-dir", str(tmp_path / "file"))
        assert (code, document["error"]["message_id"]) == (1, "runs-dir-unreadable")
    monkeypatch.setenv("LIKEFORLIKE_VAR", str(tmp_path / "file"))
    for command in (("ingest",), ("check",), ("query", "SELECT 1")):
        code, document, _ = call(capsys, *command)
        assert code == 1 and document["error"]["message_id"] in ("runs-dir-unreadable", "store-unwritable")


def test_query_and_compare_work_while_the_app_holds_the_database(var: Path) -> None:
    make_run(var)
    with Store(var / "likeforlike.duckdb", var / "runs") as store:
        run = make_run(var)  # not in the index yet: the copy is made from the folders
        command = [sys.executable, "-m", "data", "query", "SELECT count(*) FROM runs", "--json"]
        result = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT_DIR, check=False)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout.splitlines()[-1])["rows"] == [[2]]
        assert len(store.runs()) == 1
        command = [sys.executable, "-m", "data", "ingest"]
        result = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT_DIR, check=False)
        assert result.returncode == 1 and f"PID {os.getpid()}" in result.stderr
        assert "Traceback" not in result.stderr
        assert store.ingest().added == 1 and store.record(run.run_id)


# What a query can do.


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One copy for all tests: that none of them can change it is what they show."""
    folder = tmp_path_factory.mktemp("query")
    make_run(folder)
    with database_copy(folder / "index.duckdb", folder / "runs") as path:
        yield path


def ask(copy: Path, sql: str, **limits: Any) -> dict[str, Any]:
    """Asks within this process: what the database itself refuses, without the child's limits."""
    request = {"path": str(copy), "sql": sql, **vars(QueryLimits(**limits))}
    return answer(request)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO '{file}'",
        "COPY (SELECT 1) TO '{file}' (FORMAT parquet)",
        "COPY runs FROM '/etc/passwd'",
        "EXPORT DATABASE '{file}'",
        "IMPORT DATABASE '/tmp'",
        "ATTACH '{file}' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH copy",
        "USE memory",
        "INSTALL httpfs",
        "LOAD httpfs",
        "FORCE INSTALL json FROM community",
        "SET enable_external_access = true",
        "SET memory_limit = '64GB'",
        "SET GLOBAL lock_configuration = false",
        "RESET memory_limit",
        "PRAGMA enable_profiling",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "INSERT INTO runs SELECT * FROM runs",
        "UPDATE runs SET note = 'x'",
        "DELETE FROM runs",
        "DROP TABLE runs",
        "CREATE TABLE x (a INTEGER)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "CREATE MACRO f(a) AS a",
        "CREATE SECRET s (TYPE s3)",
        "ALTER TABLE runs ADD COLUMN x INTEGER",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "BEGIN",
        "CHECKPOINT",
        "VACUUM",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY runs TO '{file}'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM '{file}.parquet'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM read_json_auto('/etc/passwd')",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT getenv('HOME')",
        "FROM query('COPY runs TO ''{file}''')",
        "FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
        "WITH x AS (INSERT INTO runs SELECT * FROM runs RETURNING *) SELECT * FROM x",
        "SELECT (SELECT content FROM read_text('/etc/passwd'))",
        "/* SELECT */ COPY runs TO '{file}'",
        "-- nothing",
        "",
        "SEL ECT",
        "\x00",
    ],
)
def test_a_query_cannot_leave_its_copy(copy: Path, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "escaped"
    before = copy.read_bytes()
    result = ask(copy, sql.format(file=file))
    assert "rows" not in result
    assert result["message_id"] in ("query-only-select", "query-one-statement", "query-failed", "query-empty")
    assert "root:" not in json.dumps(result)
    assert not file.exists()
    assert copy.read_bytes() == before


def test_values_of_every_type_become_json(copy: Path) -> None:
    result = ask(copy, "SELECT * FROM test_all_types()")
    assert len(result["rows"]) == 3
    json.dumps(result, allow_nan=False)
    shown = ask(copy, "SELECT 1.5::DECIMAL, 'nan'::DOUBLE, DATE '2026-11-30', [1, NULL], {'a': 1}, 2::HUGEINT")
    assert shown["rows"] == [[1.5, None, "2026-11-30", [1, None], {"a": 1}, 2]]
    assert ask(copy, "SHOW TABLES")["rows"] and ask(copy, "DESCRIBE runs")["rows"]


def test_rows_and_size_are_limited(copy: Path) -> None:
    result = ask(copy, "SELECT * FROM range(100)", max_rows=10)
    assert len(result["rows"]) == 10 and result["truncated"]
    result = ask(copy, "SELECT repeat('x', 1_000_000) FROM range(100)", max_result_mib=2)
    assert result["message_id"] == "query-too-large"
    result = ask(copy, "SELECT list(range) FROM range(100_000_000)", memory_mib=64)
    assert result["message_id"] == "query-failed" and "emory" in result["params"]["reason"]


def test_the_child_stops_what_takes_too_long(copy: Path) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
    with pytest.raises(QueryError) as caught:
        run_query(endless, copy, QueryLimits(limit_s=0.5))
    assert caught.value.message_id == "query-timeout"
    # A cross join of 10^18 rows ends too: by time or by memory, whichever comes first.
    with pytest.raises(QueryError) as caught:
        run_query("SELECT count(*) FROM range(1_000_000_000) a, range(1_000_000_000) b WHERE a.range <> b.range", copy)
    assert caught.value.message_id in ("query-timeout", "query-failed")


def test_the_child_sees_no_environment_and_writes_no_file(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_A_TEST", "hidden")
    result = run_query("SELECT count(*) AS n, min(name) AS name FROM metrics", copy)
    assert (result.columns, result.rows, result.truncated) == (("n", "name"), [[2, "images_per_s"]], False)
    with pytest.raises(QueryError) as caught:
        run_query("SELECT * FROM read_text('/proc/self/environ')", copy)
    assert "hidden" not in str(caught.value)
    for sql, message_id in (("  ", "query-empty"), ("SELECT " + "1" * 30_000, "query-too-long")):
        with pytest.raises(QueryError) as caught:
            run_query(sql, copy)
        assert caught.value.message_id == message_id
