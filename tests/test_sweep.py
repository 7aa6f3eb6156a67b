"""Repeats and batch-size sweeps: the rule with made-up runs, and the command with real ones."""

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.errors import DoesNotFit, SpecError
from runners.execute import execute
from runners.records import Record
from runners.registry import make_spec
from runners.rundir import create_run, list_runs
from runners.sweep import at_batch_size, finished, sweep, sweep_id, throughput


def runner(runs_dir: Path, asked: list[int], step_ms_by_size: dict[int, float], most: int = 10**6) -> Any:
    """Carries synthetic runs out here and now, at a given speed for each size; above `most` they do not fit."""

    def run(fields: Mapping[str, Any], group_id: str, place: int) -> Record:
        size = fields["batch_size"]
        asked.append(size)
        if size > most:
            raise DoesNotFit(
                "does-not-fit", needed_gib=1, weights_gib=1, activations_gib=1, available_gib=1, device="x"
            )
        values = {**fields, "step_ms": step_ms_by_size.get(size, 2.0)}
        return execute(create_run(runs_dir, "synthetic", values, group_id=group_id, repeat=place))

    return run


def sizes(tmp_path: Path, run: Any, largest: int = 64) -> list[tuple[int, str | None]]:
    found = sweep(tmp_path, "synthetic", {"steps": 6}, None, largest, run)
    return [(size, record.status if record else None) for size, record, _ in found]


def test_it_doubles_until_the_largest(tmp_path: Path) -> None:
    assert sizes(tmp_path, runner(tmp_path, [], {}), largest=8) == [(1, "ok"), (2, "ok"), (4, "ok"), (8, "ok")]


def test_it_ends_when_throughput_falls(tmp_path: Path) -> None:
    run = runner(tmp_path, [], {1: 2.0, 2: 2.0, 4: 20.0})  # twice the samples in ten times the time
    assert sizes(tmp_path, run) == [(1, "ok"), (2, "ok"), (4, "ok")]


def test_it_ends_where_memory_does(tmp_path: Path) -> None:
    assert sizes(tmp_path, runner(tmp_path, [], {}, most=2)) == [(1, "ok"), (2, "ok"), (4, None)]


def test_it_ends_where_a_specification_does(tmp_path: Path) -> None:
    """Images keep their number of batches, and a specification has at most 1,000 images."""
    asked: list[int] = []

    def run(fields: Mapping[str, Any], _group_id: str, _place: int) -> Record:
        make_spec("text-to-image", fields)
        asked.append(fields["batch_size"])
        made = execute(create_run(tmp_path, "synthetic", {"steps": 6, "batch_size": fields["batch_size"]}))
        return made

    *_, (size, record, refusal) = sweep(tmp_path, "text-to-image", {"images": 300}, None, 1024, run)
    assert asked == [1, 2]
    assert (size, record) == (4, None)
    assert "images must be between 1 and 1000" in str(refusal)


def test_a_run_of_another_machine_is_no_answer_here(tmp_path: Path) -> None:
    group_id = sweep_id("synthetic", {"steps": 6})
    record = execute(create_run(tmp_path, "synthetic", {"steps": 6}, group_id=group_id))
    assert list(finished(tmp_path, group_id)) == [1]
    run_dir = list_runs(tmp_path)[0]
    elsewhere = dataclasses.replace(record, environment={**record.environment, "memory_bytes": 1})
    run_dir.record_path.unlink()
    run_dir.write_record(elsewhere)
    assert finished(tmp_path, group_id) == {}


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    asked: list[int] = []
    run = runner(tmp_path, asked, {})
    found = sweep(tmp_path, "synthetic", {"steps": 6}, None, 8, run)
    next(found), next(found)  # then somebody pressed Ctrl-C
    assert asked == [1, 2]
    assert [size for size, _ in sizes(tmp_path, run, largest=8)] == [1, 2, 4, 8]
    assert asked == [1, 2, 4, 8]
    assert len(list_runs(tmp_path)) == 4


def test_a_failed_run_is_tried_again(tmp_path: Path) -> None:
    group_id = sweep_id("synthetic", {"steps": 6})
    execute(create_run(tmp_path, "synthetic", {"steps": 6, "fail_at_step": 2}, group_id=group_id))
    assert finished(tmp_path, group_id) == {}


def test_another_question_is_another_sweep() -> None:
    assert sweep_id("synthetic", {"a": 1, "b": "2"}) == sweep_id("synthetic", {"b": 2, "a": "1"})
    assert sweep_id("synthetic", {"a": 1}) != sweep_id("synthetic", {"a": 2})


def test_images_keep_their_number_of_batches() -> None:
    first = make_spec("text-to-image", {"images": 6, "batch_size": 2})
    assert at_batch_size(first, {}, 8) == {"batch_size": 8, "images": 24}


def command(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runners", *arguments, "--runs-dir", str(tmp_path / "runs")],
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_repeats_run_in_fresh_processes_and_show_their_spread(tmp_path: Path) -> None:
    done = command(tmp_path, "run", "synthetic", "--set", "steps=6", "--set", "step_ms=1", "--repeat", "3")
    *records, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert [record["repeat"] for record in records] == [0, 1, 2]
    assert {record["group_id"] for record in records} == {last["group_id"]}
    rates = [throughput_of(record) for record in records]
    assert last["repeats"]["n"] == 3
    assert last["repeats"]["interval"] is None  # fewer than 6 runs
    assert (last["repeats"]["lowest"], last["repeats"]["highest"]) == (min(rates), max(rates))


def throughput_of(record: dict[str, Any]) -> float:
    return next(metric["value"] for metric in record["metrics"] if metric["name"] == "samples_per_s")


def test_the_sweep_command_prints_one_document(tmp_path: Path) -> None:
    done = command(tmp_path, "sweep", "synthetic", "--set", "steps=6", "--set", "step_ms=1", "--largest", "2")
    assert done.returncode == 0, done.stderr
    assert [item["batch_size"] for item in json.loads(done.stdout)["sweep"]] == [1, 2]
    assert "batch size 2: ok" in done.stderr


@pytest.mark.parametrize("count", ["0", "-1", "x", "1000000", "1.5"])
def test_a_senseless_number_of_repeats_is_refused(tmp_path: Path, count: str) -> None:
    done = command(tmp_path, "run", "synthetic", "--repeat", count)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["type"] == SpecError.__name__


def test_ctrl_c_between_repeats_ends_them(tmp_path: Path) -> None:
    command_line = [sys.executable, "-m", "runners", "run", "synthetic", "--set", "steps=20", "--set", "step_ms=20"]
    process = subprocess.Popen(
        [*command_line, "--repeat", "50", "--runs-dir", str(tmp_path / "runs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()  # the record of the first run
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0].splitlines()
    assert json.loads(first)["status"] == "ok"
    assert process.returncode == 130
    assert json.loads(rest[-1])["repeats"]["n"] <= 3
    assert len(list_runs(tmp_path / "runs")) <= 3


def test_throughput_of_a_failed_run_is_none(tmp_path: Path) -> None:
    assert throughput(execute(create_run(tmp_path, "synthetic", {"fail_at_step": 1}))) is None
