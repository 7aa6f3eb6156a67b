"""Two processes on the CPU, joined by gloo, for real."""

import dataclasses
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from runners.device import backend
from runners.errors import DeviceUnavailable, DoesNotFit
from runners.execute import RunContext, execute
from runners.preflight_training import check_memory, parameters_of
from runners.queue import RunQueue
from runners.records import Record
from runners.registry import make_spec
from runners.rundir import create_run
from runners.workloads import several_devices
from runners.workloads.several_devices import outcome_from_json
from tests.test_training import BERT, T5, losses
from tests.test_training import run as run_here

SETTINGS = {"bert-pretraining": BERT, "t5-finetuning": T5}


def trained(tmp_path: Path, workload: str, **changes: Any) -> Record:
    record = execute(create_run(tmp_path / "runs", workload, {**SETTINGS[workload], "dropout": 0, **changes}))
    assert record.status == "ok", record.error
    return record


def loss_of(record: Record) -> list[float]:
    return [value for series in record.series if series.name == "loss" for value in series.values]


@pytest.mark.parametrize("workload", list(SETTINGS))
def test_two_processes_train_as_one_with_the_same_global_batch(tmp_path: Path, workload: str) -> None:
    two = trained(tmp_path, workload, devices=2, batch_size=4, steps=6)
    one = trained(tmp_path, workload, devices=1, batch_size=8, steps=6)
    assert loss_of(two) == pytest.approx(loss_of(one), rel=1e-4)
    assert (two.conditions.devices, two.conditions.batch_size_per_device) == (2, 4)


def test_throughput_is_the_total_with_each_device_s_beside_it(tmp_path: Path) -> None:
    record = trained(tmp_path, "bert-pretraining", devices=2, batch_size=4, steps=6)
    metrics = {metric.name: metric for metric in record.metrics}
    seconds = next(item.values for item in record.series if (item.name, item.phase) == ("step_s", "measured"))
    assert metrics["samples_per_s"].value == pytest.approx(4 * 2 * 6 / sum(seconds))
    assert metrics["samples_per_s_per_device"].value == pytest.approx(metrics["samples_per_s"].value / 2)
    assert "trainer-disagrees" not in record.audit.warnings


def test_an_outcome_survives_its_way_between_processes(tmp_path: Path) -> None:
    outcome = run_here(tmp_path, "bert-pretraining", steps=7)
    there = json.loads(json.dumps(dataclasses.asdict(outcome)))
    assert outcome_from_json(there) == outcome
    assert losses(outcome_from_json(there)) == losses(outcome)


def test_more_devices_than_there_are_is_refused(tmp_path: Path) -> None:
    record = execute(create_run(tmp_path / "runs", "bert-pretraining", {**BERT, "devices": 64}))
    assert record.error is not None
    assert record.error.type == DeviceUnavailable.__name__
    assert "64 devices" in record.error.message


def test_a_refusal_inside_comes_out_as_itself(tmp_path: Path) -> None:
    empty = tmp_path / "texts"
    empty.mkdir()
    record = execute(create_run(tmp_path / "runs", "bert-pretraining", {**BERT, "devices": 2, "data": str(empty)}))
    single = execute(create_run(tmp_path / "runs", "bert-pretraining", {**BERT, "devices": 1, "data": str(empty)}))
    assert record.error is not None and single.error is not None
    assert (record.error.type, record.error.message) == (single.error.type, single.error.message)


def test_cancelled_all_processes_end(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "runs", "bert-pretraining", {**BERT, "devices": 2, "steps": 100_000})

    def cancel_when_it_trains() -> None:
        deadline_s = time.monotonic() + 60
        while run_dir.latest_event("progress") is None and time.monotonic() < deadline_s:
            time.sleep(0.05)
        run_dir.ask_to_cancel()

    threading.Thread(target=cancel_when_it_trains).start()
    record = execute(run_dir)
    assert record.status == "cancelled"
    deadline_s = time.monotonic() + 10
    while (left := ranks_of(run_dir.path)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert left == []


def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    """kill -9 of the run's own process: the launcher and the ranks, each in a session of its own, end too."""
    queue = RunQueue(tmp_path / "runs")
    run_dir = queue.submit("bert-pretraining", {**BERT, "devices": 2, "steps": 100_000})
    deadline_s = time.monotonic() + 90
    while (run_dir.latest_event("progress") or {}).get("phase") != "measured" and time.monotonic() < deadline_s:
        time.sleep(0.1)
    started = run_dir.latest_event("started")
    assert started is not None
    assert len(ranks_of(run_dir.path)) >= 3  # the launcher and its two; the run's own is not one of them by name
    os.kill(int(started["pid"]), 9)
    while not run_dir.has_record() and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert run_dir.record().status == "failed"
    deadline_s = time.monotonic() + 10
    while (left := ranks_of(run_dir.path)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert left == []


def test_processes_on_one_cpu_share_its_memory() -> None:
    spec = make_spec("bert-pretraining", {"devices": 4})
    needed = parameters_of(spec) * 16
    check_memory(dataclasses.replace(spec, devices=1), "cpu", 3 * needed)
    with pytest.raises(DoesNotFit):
        check_memory(spec, "cpu", 3 * needed)
    check_memory(spec, "cuda", 3 * needed)  # each has a device of its own


def ranks_of(path: Path) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if str(path) in (process.info["cmdline"] or []) and process.pid != os.getpid():
            found.append(process.pid)
    return found


def test_processes_that_leave_no_result_are_a_failure_and_not_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several_devices.sys, "executable", "/bin/false")
    context = RunContext(
        run_dir=create_run(tmp_path / "runs", "bert-pretraining", {**BERT, "devices": 2}), device=backend("cpu")
    )
    record = execute(context.run_dir)
    assert record.error is not None
    assert record.error.message_id == "devices-ended"
