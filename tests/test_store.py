"""The store: an index that always says what the run folders say."""

import dataclasses
import json
import math
import os
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from data.errors import StoreBusy, StoreError
from data.ingest import read_problems, unfinished_runs
from data.measurements import measurements_of
from data.messages import render
from data.record_rows import TABLES
from data.store import Store, rebuild
from runners.errors import RecordError
from runners.paths import database_path
from runners.records import (
    Artifact,
    Audit,
    Conditions,
    DeviceInfo,
    ErrorInfo,
    Metric,
    Phase,
    Record,
    Series,
    record_to_json,
)
from runners.rundir import RunDir, create_run

PROJECT_DIR = Path(__file__).resolve().parent.parent


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    return tmp_path / "index.duckdb"


def make_run(runs_dir: Path, **changes: Any) -> RunDir:
    """A finished run with every part that a record can have."""
    run = create_run(runs_dir, "text-to-image", {"prompt": "A Red circle"})
    conditions = Conditions(
        workload="text-to-image",
        model="stable-diffusion-1",
        weights="architecture",
        width_px=512,
        height_px=512,
        steps=50,
        guidance=7.5,
        batch_size_per_device=1,
        devices=1,
        precision="fp32",
    )
    metric = Metric(
        name="s_per_image",
        value=2.5,
        unit="s/image",
        interval=(2.4, 2.6),
        n=3,
        higher_is_better=False,
        timed_region="denoise+vae",
    )
    values: dict[str, Any] = {
        "run_id": run.run_id,
        "workload": "text-to-image",
        "status": "ok",
        "spec": {"prompt": "A Red circle", "seed": 2**64},
        "conditions": conditions,
        "device": DeviceInfo(kind="cpu", name="A processor", cores=2),
        "environment": {"python": "3.11"},
        "created_utc": "2026-11-30T12:00:00.000Z",
        "started_utc": "2026-11-30T12:00:01.000Z",
        "finished_utc": "2026-11-30T12:00:02.000Z",
        "phases": (Phase(name="measured", duration_s=7.5),),
        "series": (Series(name="denoise_vae_s", unit="s", phase="measured", values=(2.4, 2.5, 2.6)),),
        "metrics": (metric,),
        "artifacts": (Artifact(path="images/000.png", kind="image", sha256="0" * 64),),
        "audit": Audit(sync_policy="edges", warnings=("too-few-samples",)),
    }
    run.write_record(Record(**{**values, **changes}))
    return run


def contents(store: Store) -> dict[str, list[Any]]:
    """Every table, row by row, in an order that does not depend on when a row came in."""
    cursor = store._connection.cursor()
    return {table: sorted(cursor.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in (*TABLES, "meta")}


def test_a_run_is_found_with_its_numbers(runs_dir: Path, db_path: Path) -> None:
    run = make_run(runs_dir)
    with Store(db_path, runs_dir) as store:
        [row] = store.runs().to_dict("records")
        assert row["run_id"] == run.run_id
        assert (row["metric"], row["value"], row["unit"]) == ("s_per_image", 2.5, "s/image")
        assert (row["width_px"], row["precision"], row["prompt"]) == (512, "fp32", "A Red circle")
        assert str(row["created_utc"]) == "2026-11-30 12:00:00"
        assert store.series(run.run_id)["samples"][0].tolist() == [2.4, 2.5, 2.6]
        assert store.metrics(run_ids=[run.run_id])["interval_high"].tolist() == [2.6]
        assert store.artifacts()["path"].tolist() == ["images/000.png"]
        assert store.record(run.run_id).metrics[0].value == 2.5
        assert store.filter_values()["devices"] == ["A processor"]
        assert store.measurements() == measurements_of(store.record(run.run_id))


def test_ingest_is_idempotent_and_notices_changes(runs_dir: Path, db_path: Path) -> None:
    with Store(db_path, runs_dir) as store:
        runs = [make_run(runs_dir) for _ in range(3)]
        assert store.ingest().added == 3
        before = contents(store)
        report = store.ingest()
        assert (report.added, report.updated, report.removed, report.unchanged) == (0, 0, 0, 3)
        assert contents(store) == before
        runs[0].annotate(note="slow", tags=["night"])
        assert store.ingest().updated == 1
        assert store.runs(text="NIGHT")["note"].tolist() == ["slow"]
        shutil.rmtree(runs[1].path)
        assert store.ingest().removed == 1
        assert runs[1].run_id not in store.runs()["run_id"].tolist()
        assert len(contents(store)["series"]) == 2


def test_rebuild_equals_what_grew_step_by_step(runs_dir: Path, db_path: Path, tmp_path: Path) -> None:
    with Store(db_path, runs_dir) as store:
        for status in ("ok", "failed", "cancelled"):
            make_run(runs_dir, status=status)
            store.ingest()
        broken = make_run(runs_dir)
        store.ingest()
        broken.record_path.write_text('{"schema_version": 1, "run_id"')
        make_run(runs_dir).annotate(favourite=True, deleted=True)
        shutil.rmtree(make_run(runs_dir).path)
        store.ingest()
        grown = contents(store)
        assert store.rebuild().added == 5
        assert contents(store) == grown
    report = rebuild(runs_dir, tmp_path / "other.duckdb")
    assert report.added == 5 and len(report.problems) == 1
    with Store(tmp_path / "other.duckdb", runs_dir) as other:
        assert contents(other) == grown


def test_a_failed_run_is_kept_with_its_error(runs_dir: Path, db_path: Path) -> None:
    error = ErrorInfo(type="DoesNotFit", message_id="does-not-fit", params={}, message="It does not fit.")
    make_run(runs_dir, status="failed", error=error, metrics=(), series=())
    with Store(db_path, runs_dir) as store:
        [row] = store.runs(statuses=["failed"]).to_dict("records")
        assert row["error_message"] == "It does not fit."
        assert store.runs(text="fit").shape[0] == 1
        assert store.measurements() == []


@pytest.mark.parametrize(
    ("text", "message_id"),
    [
        ('{"schema_version": 1, "run', "record-unreadable"),
        ("", "record-unreadable"),
        ("[]", "record-unreadable"),
        ("\x00\x01", "record-unreadable"),
        ('{"schema_version": 99}', "record-from-future"),
        ('{"schema_version": 1}', "record-unreadable"),
    ],
)
def test_a_record_that_cannot_be_read_is_a_problem_and_nothing_is_lost(
    runs_dir: Path, db_path: Path, text: str, message_id: str
) -> None:
    good, bad = make_run(runs_dir), make_run(runs_dir)
    whole = bad.record_path.read_text()
    bad.record_path.write_text(text)
    with Store(db_path, runs_dir) as store:
        [problem] = store.ingest().problems
        assert (problem.run_id, problem.message_id) == (bad.run_id, message_id)
        assert "{" not in render(problem.message_id, {**problem.params, "reason": ""})
        assert store.runs()["run_id"].tolist() == [good.run_id]
        assert bad.record_path.read_text() == text
        bad.record_path.write_text(whole)  # the file is put right: the run is back
        assert store.ingest().problems == ()
        assert len(store.runs()) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"conditions": {"workload": "text-to-image", "width_px": "wide"}},
        {"conditions": {"workload": "text-to-image", "steps": 10**30}},
        {"created_utc": "yesterday"},
        {"run_id": "01a22eb7-afb8-747e-bbce-83dee826fc2a"},
        {"workload": None},
        {"metrics": [{"name": "x", "value": "fast", "unit": "s", "n": 1, "higher_is_better": True}]},
        {"spec": "a text"},
        {"conditions": {"workload": math.inf}},
        {"device": {"kind": None, "name": "refused by the database only"}},
        {"repeat": math.inf},
        {"repeat": 10**400},
        {"created_utc": "0001-01-01T00:00:00+14:00"},
        {"finished_utc": "9999-12-31T23:59:59-14:00"},
        {"run_id": "half a pair \ud800"},
        {"metrics": [{"name": "x", "value": 10**400, "unit": "s", "n": 1, "higher_is_better": True}]},
        {"metrics": [{"name": "x", "value": 1, "unit": "s", "n": math.inf, "higher_is_better": True}]},
        {"metrics": [{"name": "x", "value": 1, "unit": "s", "n": 1, "higher_is_better": True, "interval": [1]}]},
        {"metrics": [{"name": [], "value": 1, "unit": "s", "n": 1, "higher_is_better": True}]},
        {"series": [{"name": "x", "unit": "s", "phase": "measured", "values": [10**400]}]},
        {"phases": [{"name": "load", "duration_s": 10**400}]},
        {"device": {"kind": "cpu", "name": "x", "memory_bytes": 2**63}},
    ],
)
def test_odd_values_spoil_only_their_own_run(runs_dir: Path, db_path: Path, change: dict[str, Any]) -> None:
    good = [make_run(runs_dir) for _ in range(5)]
    odd = make_run(runs_dir)
    document = {**record_to_json(odd.record()), **change}
    odd.record_path.write_text(json.dumps(document))
    with Store(db_path, runs_dir) as store:
        assert [problem.run_id for problem in store.problems()] == [odd.run_id]
        assert set(store.runs()["run_id"]) == {run.run_id for run in good}


def test_what_is_not_a_file_is_no_record(runs_dir: Path, db_path: Path) -> None:
    good, pipe, folder, zero = (make_run(runs_dir) for _ in range(4))
    for run in (pipe, folder, zero):
        run.record_path.unlink()
    os.mkfifo(pipe.record_path)
    folder.record_path.mkdir()
    zero.record_path.symlink_to("/dev/zero")
    os.mkfifo(good.path / "annotations.json")
    with Store(db_path, runs_dir) as store:
        assert {item.run_id for item in store.problems()} == {pipe.run_id, folder.run_id, zero.run_id}
        assert store.runs()["run_id"].tolist() == [good.run_id]
    assert [item.run_id for item in read_problems(runs_dir)[1]] == sorted([pipe.run_id, folder.run_id, zero.run_id])


def test_annotations_too_deep_to_read_count_as_absent(runs_dir: Path, db_path: Path) -> None:
    run = make_run(runs_dir)
    (run.path / "annotations.json").write_text("[" * 200_000)
    os.utime(run.record_path, ns=(-1, 2**63 - 1))
    with Store(db_path, runs_dir) as store:
        assert store.runs()["note"].tolist() == [""]


def test_run_folders_that_are_a_file_are_said(tmp_path: Path, db_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for runs_dir in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(StoreError) as caught, Store(db_path, runs_dir) as store:
            store.ingest()
        assert caught.value.message_id == "runs-dir-unreadable"
        with pytest.raises(StoreError):
            read_problems(runs_dir)
    with Store(db_path, tmp_path / "runs") as store:  # the lock of the failed attempts is gone
        assert store.runs().empty


def test_unusual_texts_and_numbers_are_stored(runs_dir: Path, db_path: Path) -> None:
    series = Series(name="loss", unit="", phase="measured", values=(math.nan, 1.0, math.inf))
    metric = Metric(name="s_per_image", value=math.nan, unit="s/image", n=0, higher_is_better=False)
    prompt = "emoji 😀, right to left שלום, half a pair \ud800, zero \x00, quote ' \" ; DROP TABLE runs"
    make_run(runs_dir, spec={"prompt": "plain"}, series=(series,), metrics=(metric,))
    run = make_run(runs_dir)
    document = record_to_json(run.record())
    document["spec"] = {"prompt": prompt, "odd": math.nan}
    run.record_path.write_text(json.dumps(document))
    with Store(db_path, runs_dir) as store:
        assert store.problems() == []
        assert store.runs(text="שלום")["run_id"].tolist() == [run.run_id]
        assert store.runs(text="'; DROP TABLE runs; --").empty
        assert len(store.runs(text="drop table runs")) == 1
        assert [item.value for item in store.measurements()].count(None) == 1


def test_filters_bind_what_they_are_given(runs_dir: Path, db_path: Path) -> None:
    base = make_run(runs_dir).record().conditions
    make_run(runs_dir, conditions=dataclasses.replace(base, batch_size_per_device=8, precision="bf16"))
    make_run(runs_dir, origin="imported from a file", status="failed")
    with Store(db_path, runs_dir) as store:
        assert len(store.runs(batch_sizes=[8])) == 1
        assert len(store.runs(precisions=["bf16", "fp16"])) == 1
        assert len(store.runs(precisions=["fp32"], statuses=["ok"])) == 1
        assert len(store.runs(origins=["measured"])) == 2
        assert len(store.runs(workloads=["bert-pretraining"])) == 0
        assert len(store.runs(models=["stable-diffusion-1"], devices=["A processor"])) == 3
        assert len(store.runs(models=["x') OR 1=1 --"])) == 0
        assert len(store.runs(limit=2)) == 2
        assert store.filter_values()["batch_sizes"] == [1, 8]


def test_a_deleted_run_is_hidden_and_comes_back(runs_dir: Path, db_path: Path) -> None:
    run = make_run(runs_dir)
    with Store(db_path, runs_dir) as store:
        store.annotate(run.run_id, deleted=True)
        assert store.runs().empty and store.metrics().empty and store.artifacts().empty
        assert store.measurements() == []
        assert len(store.runs(include_deleted=True)) == 1
        assert run.record_path.exists()
        store.annotate(run.run_id, deleted=False)
        assert len(store.runs()) == 1


def test_runs_without_a_record_are_seen(runs_dir: Path, db_path: Path) -> None:
    running = create_run(runs_dir, "synthetic", {"steps": 3}, source="playground")
    running.append_event("progress", step=1, of=3)
    unreadable = create_run(runs_dir, "synthetic", {})
    (unreadable.path / "spec.json").write_text("{")
    with Store(db_path, runs_dir) as store:
        assert store.ingest().unfinished == 2
        assert store.runs().empty
        first, second = store.unfinished()
    assert (first.run_id, first.workload, first.source, first.fields) == (
        running.run_id,
        "synthetic",
        "playground",
        {"steps": 3},
    )
    assert first.last_event is not None and first.last_event["step"] == 1
    assert second.workload is None and second.problem is not None
    assert second.problem.message_id == "spec-unreadable"
    assert unfinished_runs(runs_dir / "missing") == []


def test_only_run_folders_are_read(runs_dir: Path, db_path: Path, tmp_path: Path) -> None:
    real = make_run(tmp_path / "elsewhere")
    runs_dir.mkdir()
    (runs_dir / "notes").mkdir()
    (runs_dir / "notes" / "record.json").write_text("{}")
    (runs_dir / real.run_id).symlink_to(real.path, target_is_directory=True)
    with Store(db_path, runs_dir) as store:
        report = store.ingest()
        assert (report.unchanged, report.problems) == (0, ())
        for name in ("../elsewhere", "notes", real.run_id):
            with pytest.raises(RecordError):
                store.record(name)


@pytest.mark.parametrize("damage", ["text", "cut", "empty", "old"])
def test_a_broken_or_old_database_is_made_anew(runs_dir: Path, db_path: Path, damage: str) -> None:
    if damage == "text":  # at the place that is ours; elsewhere it would be somebody's file
        db_path = database_path()
    run = make_run(runs_dir)
    with Store(db_path, runs_dir) as store:
        expected = contents(store)
        if damage == "old":
            store._connection.execute("UPDATE meta SET value = '0.0'")
            store._connection.execute("DROP TABLE series")
    if damage == "text":
        db_path.write_text("This is not a database. " * 1_000)
    elif damage == "cut":
        db_path.write_bytes(db_path.read_bytes()[:6_000])
    elif damage == "empty":
        db_path.write_bytes(b"")
    with Store(db_path, runs_dir) as store:
        assert contents(store) == expected
        [notice] = store.notices
        assert notice.message_id == ("store-rebuilt-version" if damage == "old" else "store-rebuilt-broken")
        assert "{" not in render(notice.message_id, notice.params)
        if damage == "text":  # what was there is moved, never deleted: it may be somebody's file
            assert Path(notice.params["moved"]).read_text().startswith("This is not a database.")
        assert store.runs()["run_id"].tolist() == [run.run_id]
    with Store(db_path, runs_dir) as store:
        assert store.notices == ()


@pytest.mark.parametrize("action", ["ingest", "snapshot", "rebuild", "runs", "series"])
def test_damage_in_any_block_is_mended_by_whatever_meets_it(
    runs_dir: Path, db_path: Path, tmp_path: Path, action: str
) -> None:
    values = tuple(random.random() for _ in range(2_000))
    series = (Series(name="step_s", unit="s", phase="measured", values=values),)
    runs = [make_run(runs_dir, series=series) for _ in range(30)]
    with Store(db_path, runs_dir) as store:
        expected = contents(store)
    whole = db_path.read_bytes()
    mended = 0
    for offset in range(12_288, len(whole) - 4_000, 262_144):
        db_path.write_bytes(whole[:offset] + b"\xa5" * 4_000 + whole[offset + 4_000 :])
        with Store(db_path, runs_dir) as store:
            if action == "ingest":
                make_run(runs_dir)
                store.ingest()
            elif action == "snapshot":
                store.snapshot(tmp_path / f"copy-{offset}.duckdb")
            elif action == "rebuild":
                store.rebuild()
            elif action == "runs":
                assert len(store.runs()) == 30
            elif action == "series":
                assert len(store.series(runs[0].run_id)["samples"][0]) == 2_000
            mended += "store-rebuilt-broken" in [notice.message_id for notice in store.notices]
            if action == "rebuild":
                assert contents(store) == expected
    assert mended


def test_threads_that_meet_damage_mend_it_once(runs_dir: Path, db_path: Path) -> None:
    values = tuple(random.random() for _ in range(2_000))
    series = (Series(name="step_s", unit="s", phase="measured", values=values),)
    runs = [make_run(runs_dir, series=series) for _ in range(30)]
    Store(db_path, runs_dir).close()
    whole = db_path.read_bytes()
    offsets = range(len(whole) - 4_000, 300_000, -524_288)
    for offset in offsets:
        db_path.write_bytes(whole[:offset] + b"\xa5" * 4_000 + whole[offset + 4_000 :])
        with Store(db_path, runs_dir) as store, ThreadPoolExecutor(6) as pool:
            for _ in range(6):
                pool.submit(store.ingest)
            found = list(pool.map(lambda run: len(store.series(run.run_id)["samples"][0]), runs))
            assert found == [2_000] * 30
    assert 1 <= len(list(db_path.parent.glob("*.unreadable-*"))) <= len(offsets)


@pytest.mark.parametrize("content", [b"", b"notes " * 1_000, b"SQLite format 3\x00" + b"\x00" * 4_080])
def test_somebodys_file_is_left_alone(tmp_path: Path, runs_dir: Path, content: bytes) -> None:
    path, log = tmp_path / "notes.txt", tmp_path / "notes.txt.wal"
    path.write_bytes(content)
    log.write_text("theirs")
    if content:
        with pytest.raises(StoreError) as caught:
            Store(path, runs_dir)
        assert caught.value.message_id == "store-foreign"
        assert (path.read_bytes(), log.read_text()) == (content, "theirs")
        assert sorted(item.name for item in tmp_path.iterdir()) == ["notes.txt", "notes.txt.wal"]
    else:  # nothing is in it, so nothing can be lost
        Store(path, runs_dir).close()


def test_two_files_set_aside_at_once_are_both_kept(db_path: Path, runs_dir: Path) -> None:
    for _ in range(3):
        db_path.write_bytes(b"")
        Store(db_path, runs_dir).close()
    assert len(list(db_path.parent.glob("*.unreadable-*"))) == 3


def test_a_missing_database_is_made_anew(runs_dir: Path, db_path: Path) -> None:
    with Store(db_path, runs_dir) as store:
        assert store.notices == ()  # nothing was there, so nothing is worth saying
    db_path.unlink()
    make_run(runs_dir)
    with Store(db_path, runs_dir) as store:
        assert [notice.message_id for notice in store.notices] == ["store-rebuilt-missing"]
        assert len(store.runs()) == 1


def test_a_place_that_cannot_hold_a_database_is_said(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for path in ("file/index.duckdb", "pipe", ".", "x" * 300, "\udcff.duckdb"):
        with pytest.raises(StoreError) as caught:
            Store(tmp_path / path, runs_dir)
        assert caught.value.message_id == "store-unwritable"


def test_a_database_of_something_else_is_left_alone(tmp_path: Path, runs_dir: Path) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(path) as theirs:
        theirs.execute("CREATE TABLE sales AS SELECT 1 AS amount")
        for table in ("meta", "files", "runs"):  # names that other people choose as well
            theirs.execute(f"CREATE TABLE {table} AS SELECT 1 AS key")
    for _ in range(2):
        with pytest.raises(StoreError, match="not a database of LikeForLike"):
            Store(path, runs_dir)
    with duckdb.connect(path) as theirs:
        assert theirs.execute("SELECT * FROM sales").fetchall() == [(1,)]


HOLDER = """
import sys
from pathlib import Path
from data.store import Store
with Store(Path(sys.argv[1]), Path(sys.argv[2])):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_busy_names_the_process_that_holds_the_file(runs_dir: Path, db_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, db_path, runs_dir],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT_DIR,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        with pytest.raises(StoreBusy, match=f"PID {holder.pid}") as caught:
            Store(db_path, runs_dir)
        assert caught.value.params["pid"] == holder.pid
    finally:
        holder.communicate()
    with Store(db_path, runs_dir) as store:  # the lock goes with its holder
        assert store.runs().empty


def test_threads_share_one_store(runs_dir: Path, db_path: Path) -> None:
    failures: list[BaseException] = []
    with Store(db_path, runs_dir) as store:

        def work() -> None:
            try:
                for _ in range(5):
                    make_run(runs_dir)
                    store.ingest()
                    store.runs()
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.ingest()
        assert failures == []
        assert len(store.runs()) == 20
        assert len(contents(store)["metrics"]) == 20


def test_snapshot_keeps_the_lock_and_holds_everything(runs_dir: Path, db_path: Path, tmp_path: Path) -> None:
    make_run(runs_dir)
    copy = tmp_path / "it's a copy.duckdb"
    with Store(db_path, runs_dir) as store:
        store.snapshot(copy)
        expected = contents(store)
        opener = f"import duckdb; duckdb.connect({str(db_path)!r})"
        other = subprocess.run([sys.executable, "-c", opener], capture_output=True, text=True, check=False)
        assert "Could not set lock" in other.stderr
    with Store(copy, runs_dir) as copied:
        assert copied.notices == ()
        assert contents(copied) == expected


def test_the_generation_says_whether_a_kept_answer_is_still_right(runs_dir: Path, db_path: Path) -> None:
    run = make_run(runs_dir)
    with Store(db_path, runs_dir) as store:
        store.ingest()
        before = store.generation
        store.ingest()
        store.ingest_changed()
        assert store.generation == before
        store.annotate(run.run_id, note="mine")
        annotated = store.generation
        assert annotated != before
        make_run(runs_dir)
        store.ingest()
        added = store.generation
        assert added not in (before, annotated)
        shutil.rmtree(run.path)
        store.ingest()
        assert store.generation not in (before, annotated, added)
        last = store.generation
    with Store(db_path, runs_dir) as again:
        assert again.generation != last
