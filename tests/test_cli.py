"""`python -m runners`, as a shell sees it: real processes, exit status, one JSON document at the end of stdout."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runners.launch import record_lost_runs
from runners.lease import take
from runners.queue import RunQueue
from runners.records import Record, record_from_json
from runners.rundir import RunDir, create_run, list_runs

PROJECT = Path(__file__).resolve().parent.parent


def call(*arguments: str) -> tuple[int, Any, str]:
    finished = subprocess.run(
        [sys.executable, "-m", "runners", *arguments], cwd=PROJECT, capture_output=True, text=True, timeout=100
    )
    lines = finished.stdout.splitlines()
    return finished.returncode, json.loads(lines[-1]) if lines else None, finished.stderr


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "runners", *arguments],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with Ctrl-C ignored, and children inherit that; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def ended(run_dir: RunDir, timeout_s: float = 60) -> Record:
    deadline_s = time.monotonic() + timeout_s
    while not run_dir.has_record():
        assert time.monotonic() < deadline_s, "the run did not end"
        time.sleep(0.05)
    return run_dir.record()


def wait_for_run(runs_dir: Path) -> RunDir:
    """The one run in a folder, once it has begun."""
    for _ in range(400):
        for run_dir in list_runs(runs_dir):
            if run_dir.latest_event("progress"):
                return run_dir
        time.sleep(0.05)
    raise AssertionError("no run began")


def test_list() -> None:
    status, document, _ = call("list", "--json")
    assert status == 0
    names = {item["name"] for item in document}
    assert names == {"text-to-image", "bert-pretraining", "t5-finetuning", "calibration", "synthetic"}


def test_env_without_torch_and_with() -> None:
    status, document, _ = call("env", "--json")
    assert status == 0
    assert document["probe"] is None
    assert document["packages"]["torch"]
    status, document, _ = call("env", "--probe", "--json")
    assert document["probe"]["device"]["kind"] in ("cpu", "cuda", "rocm", "xpu", "mps", "hpu")
    assert document["probe"]["devices"]["cpu"] is None
    _, document, _ = call("env", "--json")
    assert document["probe"]["device"], "the answer is kept"


def test_a_run_prints_its_record(tmp_path: Path) -> None:
    status, document, errors = call(
        "run", "synthetic", "--set", "steps=7", "--set", "step_ms=1", "--runs-dir", str(tmp_path)
    )
    assert status == 0
    record = record_from_json(document)
    assert record.status == "ok"
    assert len(record.series[0].values) == 7
    assert RunDir(tmp_path / record.run_id).record() == record
    assert "Run folder" in errors


def test_presets_are_kept_resolved(tmp_path: Path) -> None:
    _, document, _ = call("run", "synthetic", "--preset", "quick", "--set", "step_ms=1", "--runs-dir", str(tmp_path))
    request = RunDir(tmp_path / document["run_id"]).request()
    assert request.preset == document["preset"] == "quick"
    assert request.fields == {"steps": 20, "step_ms": "1"}


def test_a_failure_is_recorded(tmp_path: Path) -> None:
    status, document, errors = call("run", "synthetic", "--set", "fail_at_step=3", "--runs-dir", str(tmp_path))
    assert status == 1
    assert document["error"]["message_id"] == "synthetic-failure"
    assert "failed at step 3" in errors
    assert list_runs(tmp_path)[0].record().status == "failed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sinthetic"], "Nearest: synthetic"),
        (["synthetic", "--set", "stepz=3"], "Nearest: steps"),
        (["synthetic", "--set", "steps"], "FIELD=VALUE"),
        (["synthetic", "--preset", "qick"], "Nearest: quick"),
        (["text-to-image", "--set", "scheduler=Eular"], "Nearest: Euler"),
        (["text-to-image", "--set", "weights=/nowhere/at/all"], "There is no folder"),
        (["text-to-image", "--set", "device=hpu"], "habana_frameworks"),
    ],
)
def test_a_bad_specification_leaves_nothing(tmp_path: Path, arguments: list[str], said: str) -> None:
    status, document, errors = call("run", *arguments, "--runs-dir", str(tmp_path))
    assert status == 2
    assert said in errors
    assert document["error"]["message"]
    assert list_runs(tmp_path) == []


def test_a_busy_device_is_told_with_its_holder(tmp_path: Path) -> None:
    with take("cpu-0", "a test"):
        status, document, errors = call(
            "run", "synthetic", "--no-wait", "--set", "device=cpu", "--runs-dir", str(tmp_path)
        )
    assert status == 3
    assert f"process {os.getpid()} (a test)" in errors
    assert document["error"]["type"] == "DeviceBusy"
    assert list_runs(tmp_path) == []
    status, _, _ = call("run", "synthetic", "--set", "device=cpu", "--runs-dir", str(tmp_path))
    assert status == 0, "the lease is free again"


def test_what_does_not_fit_is_refused_with_the_sum(tmp_path: Path) -> None:
    status, document, errors = call(
        *("run", "text-to-image", "--preset", "architecture", "--runs-dir", str(tmp_path)),
        *("--set", "batch_size=256", "--set", "images=256", "--set", "width=2048", "--set", "height=2048"),
    )
    assert status == 4
    assert "GiB" in errors
    assert document["error"]["type"] == "DoesNotFit"
    assert list_runs(tmp_path) == []


def test_a_time_limit_is_enforced_and_recorded(tmp_path: Path) -> None:
    begun_s = time.monotonic()
    status, document, _ = call(
        "run", "synthetic", "--set", "steps=10000", "--timeout-s", "2", "--runs-dir", str(tmp_path)
    )
    assert status == 124
    assert document["status"] == "timeout"
    assert time.monotonic() - begun_s < 40


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_and_is_recorded(tmp_path: Path, name: signal.Signals) -> None:
    process = start("run", "synthetic", "--set", "steps=100000", "--runs-dir", str(tmp_path))
    run_dir = wait_for_run(tmp_path)
    process.send_signal(name)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
    assert run_dir.record().status == "cancelled"
    assert not run_dir.is_alive()


def test_a_run_that_does_not_heed_is_killed_after_three_seconds(tmp_path: Path) -> None:
    process = start("run", "synthetic", "--set", "steps=100000", "--runs-dir", str(tmp_path))
    run_dir = wait_for_run(tmp_path)
    # A stopped process looks at nothing, like one that is deep inside a kernel.
    os.kill((run_dir.latest_event("started") or {})["pid"], signal.SIGSTOP)
    begun_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert 2.5 < time.monotonic() - begun_s < 15
    assert run_dir.record().status == "cancelled"


def test_a_killed_child_leaves_one_record(tmp_path: Path) -> None:
    process = start("run", "synthetic", "--set", "steps=100000", "--runs-dir", str(tmp_path))
    run_dir = wait_for_run(tmp_path)
    os.kill((run_dir.latest_event("started") or {})["pid"], signal.SIGKILL)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    record = json.loads(out.splitlines()[-1])
    assert (record["status"], record["error"]["message_id"]) == ("failed", "child-died")
    assert "SIGKILL" in record["error"]["message"]
    assert record["device"]["kind"] == "none"


def test_a_run_outlives_the_shell_that_asked_for_it(tmp_path: Path) -> None:
    process = start("run", "synthetic", "--set", "steps=300", "--set", "step_ms=5", "--runs-dir", str(tmp_path))
    run_dir = wait_for_run(tmp_path)
    process.kill()
    process.wait()
    assert ended(run_dir).status == "ok"


def test_a_run_that_goes_on_is_not_lost(tmp_path: Path) -> None:
    run_dir = RunQueue(tmp_path).submit("synthetic", {"steps": 100000})
    wait_for_run(tmp_path)
    assert record_lost_runs(tmp_path) == []
    RunQueue(tmp_path).cancel(run_dir.run_id)
    assert ended(run_dir).status == "cancelled"


def test_a_second_record_changes_nothing(tmp_path: Path) -> None:
    _, document, _ = call("run", "synthetic", "--set", "steps=2", "--runs-dir", str(tmp_path))
    run_dir = RunDir(tmp_path / document["run_id"])
    before = run_dir.record_path.read_bytes()
    run_dir.write_record(record_from_json(document | {"status": "lost"}))
    assert run_dir.record_path.read_bytes() == before


def test_a_waiting_run_is_lost_only_when_nobody_holds_it(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", {})
    assert record_lost_runs(tmp_path) == [], "it may have been made this moment"
    os.utime(run_dir.path / "spec.json", (0, 0))
    with run_dir.hold():
        assert record_lost_runs(tmp_path) == []
    assert record_lost_runs(tmp_path) == [run_dir.run_id]
    assert run_dir.record().status == "lost"


def damage(run_dir: RunDir, how: str) -> None:
    if how == "spec cut short":
        (run_dir.path / "spec.json").write_text('{"run_id"')
    elif how == "fields of another type":
        text = (run_dir.path / "spec.json").read_text()
        (run_dir.path / "spec.json").write_text(text.replace('"fields": {}', '"fields": [1]'))
    elif how.endswith("is a folder"):
        (run_dir.path / how.split()[0]).mkdir(parents=True)
    else:
        run_dir.append_event(
            "started", device={"no device": None, "kind of a later version": {"kind": "npu", "new": 1}}[how]
        )
    os.utime(run_dir.path / "spec.json", (0, 0))


@pytest.mark.parametrize(
    "how",
    [
        "spec cut short",
        "fields of another type",
        "no device",
        "kind of a later version",
        *(f"{name} is a folder" for name in ("events.jsonl", "alive", "log.txt", "images/000.png", "record.json")),
    ],
)
def test_a_damaged_run_keeps_no_other_from_starting(tmp_path: Path, how: str) -> None:
    damage(create_run(tmp_path, "synthetic", {}), how)
    whole = create_run(tmp_path, "synthetic", {})
    os.utime(whole.path / "spec.json", (0, 0))
    assert whole.run_id in record_lost_runs(tmp_path)


def test_a_burst_of_signals_still_leaves_one_record(tmp_path: Path) -> None:
    process = start("run", "synthetic", "--set", "steps=100000", "--runs-dir", str(tmp_path))
    run_dir = wait_for_run(tmp_path)
    pid = (run_dir.latest_event("started") or {})["pid"]
    os.kill(pid, signal.SIGSTOP)
    until_s = time.monotonic() + 5
    while process.poll() is None and time.monotonic() < until_s:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.01)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert json.loads(out.splitlines()[-1])["status"] == run_dir.record().status == "cancelled"
    assert not run_dir.is_alive()


@pytest.mark.parametrize("delay_s", [0.2, 0.4, 0.6])
def test_an_early_signal_leaves_a_record_or_nothing(tmp_path: Path, delay_s: float) -> None:
    process = start("run", "synthetic", "--set", "steps=100000", "--runs-dir", str(tmp_path))
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert all(run_dir.has_record() for run_dir in list_runs(tmp_path))


@pytest.mark.parametrize("arguments", [["run"], ["run", "synthetic", "--timeout-s", "abc"], ["frobnicate"], []])
def test_a_wrong_call_ends_like_every_refusal(arguments: list[str]) -> None:
    status, document, errors = call(*arguments)
    assert status == 2
    assert document["error"]["message"] in errors
    assert "_seconds" not in errors


def test_a_reader_that_leaves_early_causes_no_traceback() -> None:
    command = f"{sys.executable} -m runners list --json | true"
    finished = subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("weights", ["~nobody-of-that-name/x", "/" + "x" * 300, "a\nb"])
def test_impossible_paths_are_missing_folders(tmp_path: Path, weights: str) -> None:
    status, document, _ = call("run", "text-to-image", "--set", f"weights={weights}", "--runs-dir", str(tmp_path))
    assert status == 2
    assert document["error"]["message_id"] == "weights-missing"


def test_an_impossible_runs_folder_is_named(tmp_path: Path) -> None:
    status, document, _ = call("run", "synthetic", "--runs-dir", str(tmp_path / ("x" * 300)))
    assert status == 2
    assert document["error"]["message_id"] == "runs-dir-unwritable"


def test_raw_bytes_are_no_prompt(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "runners", "run", "text-to-image", "--runs-dir", str(tmp_path), "--set"]
    finished = subprocess.run([*arguments, b"prompt=\xff"], cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert finished.returncode == 2
    assert json.loads(finished.stdout)["error"]["message_id"] == "not-text"
    assert list_runs(tmp_path) == []


def test_calibrate(tmp_path: Path) -> None:
    status, document, _ = call("calibrate", "--device", "cpu", "--seconds", "0.01", "--runs-dir", str(tmp_path))
    assert (status, document["workload"], document["status"]) == (0, "calibration", "ok")
    assert document["spec"] == {"seconds": 0.01, "device": "cpu"}
    assert "matmul_fp32_tflops" in {metric["name"] for metric in document["metrics"]}
