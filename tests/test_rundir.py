"""The run folder, as its writer and as its readers see it."""

import json
import os
from pathlib import Path

import pytest

from runners.errors import RecordError, SpecError
from runners.progress import read_progress
from runners.records import new_run_id
from runners.rundir import MAX_SPEC_BYTES, RunDir, create_run, find_run, list_runs


def test_a_request_is_kept(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {"steps": 3}, preset="quick", source="playground", timeout_s=5)
    request = RunDir(run_dir.path).request()
    assert (request.workload, request.fields, request.preset) == ("synthetic", {"steps": 3}, "quick")
    assert (request.source, request.timeout_s, request.run_id) == ("playground", 5, run_dir.path.name)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": 1}', "[" * 100_000])
def test_a_broken_request_is_named(tmp_path: Path, text: str) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    (run_dir.path / "spec.json").write_text(text)
    with pytest.raises(SpecError, match="cannot be read"):
        run_dir.request()


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    (run_dir.path / "spec.json").unlink()
    for name in ("spec.json", "events.jsonl"):
        os.mkfifo(run_dir.path / name)
    with pytest.raises(SpecError, match="not a file"):
        run_dir.request()
    assert list(run_dir.events()) == []


def test_a_huge_request_is_not_read(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    with (run_dir.path / "spec.json").open("wb") as file:
        file.truncate(MAX_SPEC_BYTES + 1)
    with pytest.raises(SpecError) as caught:
        run_dir.request()
    assert caught.value.message_id == "spec-too-large"


def test_readers_pass_over_a_line_that_is_being_written(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    run_dir.append_event("progress", phase="denoise", step=1, steps=4)
    with (run_dir.path / "events.jsonl").open("a") as file:
        file.write('{"kind": "progress", "st')
    assert [event["step"] for event in run_dir.events()] == [1]


def test_annotations_change_one_by_one(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    assert run_dir.annotations() == {}
    run_dir.annotate(note="good")
    run_dir.annotate(favourite=True)
    assert run_dir.annotations() == {"note": "good", "favourite": True}
    (run_dir.path / "annotations.json").write_text("{")
    assert run_dir.annotations() == {}


def test_only_run_folders_are_listed(tmp_path: Path) -> None:
    runs = [create_run(tmp_path, "synthetic", {}) for _ in range(3)]
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / new_run_id()).symlink_to(runs[0].path)
    assert {item.run_id for item in list_runs(tmp_path)} == {item.run_id for item in runs}
    assert list_runs(tmp_path / "missing") == []


@pytest.mark.parametrize("name", ["..", "../etc", "/etc", "a/b", "", "x" * 300, "01a22ea9-146d-7f38-8ef3-3c765b9233c5"])
def test_no_text_becomes_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError):
        find_run(tmp_path, name)


def test_find_run_refuses_links(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    link = tmp_path / new_run_id()
    link.symlink_to(run_dir.path)
    assert find_run(tmp_path, run_dir.run_id).path == run_dir.path
    with pytest.raises(RecordError):
        find_run(tmp_path, link.name)


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(SpecError, match="cannot be written"):
        create_run(tmp_path / "runs", "synthetic", {})


def test_the_log_tail_is_the_end(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    assert run_dir.log_tail() == ""
    run_dir.log_path.write_bytes(b"\xff" * 10_000 + "端".encode())
    assert run_dir.log_tail().endswith("端")
    assert len(run_dir.log_tail()) <= 4_000


def progress_events(run_dir: RunDir, *events: dict[str, object]) -> None:
    lines = [json.dumps(event) for event in events]
    (run_dir.path / "events.jsonl").write_text("\n".join(lines) + "\n")


def test_progress_from_queue_to_time_left(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    assert read_progress(run_dir).status == "queued"
    started = {"t": "2026-11-30T10:00:00.000Z", "kind": "started", "pid": 1}
    progress_events(run_dir, started)
    assert read_progress(run_dir).status == "loading"
    steps = [
        {"t": f"2026-11-30T10:00:{seconds:02d}.000Z", "kind": "progress", "phase": "denoise", "step": step, "steps": 10}
        for step, seconds in ((1, 10), (2, 12), (3, 14), (5, 18))
    ]
    progress_events(run_dir, started, *steps)
    now = read_progress(run_dir)
    assert (now.status, now.step, now.steps, now.fraction) == ("running", 5, 10, 0.5)
    assert now.seconds_left == pytest.approx(10.0)


@pytest.mark.parametrize(
    "damage",
    [
        {"step": "two"},
        {"step": None},
        {"steps": 1e400},
        {"phase": 7},
        {"t": "yesterday"},
        {"t": None},
        {"t": "2026-11-30T10:00:00"},
        {"batches": []},
    ],
)
def test_a_damaged_event_is_passed_over(tmp_path: Path, damage: dict[str, object]) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    whole = {"t": "2026-11-30T10:00:00.000Z", "kind": "progress", "phase": "denoise", "step": 1, "steps": 4}
    progress_events(run_dir, {"t": whole["t"], "kind": "started"}, whole, {**whole, "step": 2, **damage})
    assert read_progress(run_dir).step == 1


def test_time_left_counts_the_batches_to_come(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    steps = [
        {
            "t": f"2026-11-30T10:00:{second:02d}.000Z",
            "kind": "progress",
            "phase": "denoise",
            "step": step,
            "steps": 4,
            "batch": batch,
            "batches": 3,
        }
        for second, (batch, step) in enumerate([(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2)])
    ]
    progress_events(run_dir, {"t": "2026-11-30T10:00:00.000Z", "kind": "started"}, *steps)
    now = read_progress(run_dir)
    assert now.fraction == pytest.approx(0.5)
    assert now.seconds_left == pytest.approx(6.0)
