"""The audit of a run: counters, reasons and grades."""

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners import audit
from runners.execute import execute
from runners.messages import MESSAGES
from runners.records import Metric
from runners.rundir import create_run

READING = audit.Reading(
    at_s=100.0, busy_s=50.0, own_s=10.0, swapped_bytes=0, pressure_s=1.0, throttles=3, frequency_mhz=2000.0
)
CLEAN = {"background_share": 0.0, "swapped_bytes": 0, "memory_pressure_share": 0.0, "throttles": 0}
NARROW = Metric(name="s_per_image", value=1.0, unit="s/image", interval=(0.99, 1.01), n=50, higher_is_better=False)
WIDE = dataclasses.replace(NARROW, interval=(0.9, 1.1))


def graded(readings: dict[str, object] | None = None, **changes: object) -> tuple[str, list[str]]:
    arguments = {
        "readings": CLEAN | (readings or {}),
        "warnings": (),
        "metrics": (NARROW,),
        "kind": "cpu",
        "sync_policy": "none needed",
        **changes,
    }
    found = audit.reasons(**arguments)  # type: ignore[arg-type]
    return audit.grade(found), found


def test_a_clean_run_is_an_a() -> None:
    assert graded() == ("A", [])


REACHED = {
    "sync-missing": {"kind": "cuda", "sync_policy": "none"},
    "throttled": {"readings": {"throttles": 2}},
    "swapped": {"readings": {"swapped_bytes": 2**30}},
    "background-heavy": {"readings": {"background_share": 0.4}},
    "background-much": {"readings": {"background_share": 0.2}},
    "background-some": {"readings": {"background_share": 0.05}},
    "background-not-readable": {"readings": {"background_share": None}},
    "memory-pressure": {"readings": {"memory_pressure_share": 0.02}},
    "throttling-not-readable": {"readings": {"throttles": None}},
    "interval-wide": {"metrics": (WIDE,)},
}


@pytest.mark.parametrize("reason", list(audit.GRADES))
def test_every_reason_can_be_reached_and_gives_its_grade(reason: str) -> None:
    arguments = REACHED.get(reason, {"warnings": (reason,)})
    assert graded(**arguments) == (audit.GRADES[reason], [reason])  # type: ignore[arg-type]
    assert reason in MESSAGES


def test_the_worst_reason_decides_and_stands_first() -> None:
    assert graded({"throttles": 1}, warnings=("spikes", "too-few-samples")) == (
        "D",
        ["throttled", "too-few-samples", "spikes"],
    )


def test_what_other_processes_used_is_all_but_our_own() -> None:
    after = dataclasses.replace(READING, at_s=110.0, busy_s=68.0, own_s=20.0, throttles=5, pressure_s=1.5)
    told = audit.readings_between(READING, after, cores=4)
    assert told["background_share"] == pytest.approx(8 / 40)
    assert told["throttles"] == 2
    assert told["memory_pressure_share"] == pytest.approx(0.05)
    assert audit.readings_between(READING, dataclasses.replace(after, busy_s=51.0), 4)["background_share"] == 0.0


def test_counters_are_read_from_files_of_the_documented_shape(tmp_path: Path) -> None:
    for core in range(2):
        folder = tmp_path / f"cpu{core}" / "thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(f"{core + 1}\n")
        (folder / "package_throttle_count").write_text("10\n")
    assert audit._throttles(tmp_path) == 23
    assert audit._throttles(tmp_path / "nothing") is None
    pressure = tmp_path / "memory"
    pressure.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0 avg60=0 avg300=0 total=1\n")
    assert audit._pressure_seconds(pressure) == 2.5
    pressure.write_text("nonsense")
    assert audit._pressure_seconds(pressure) is None


def test_children_that_have_ended_are_our_own() -> None:
    before = audit.read()
    burn = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert audit.read().own_s - before.own_s >= 0.5


@pytest.fixture
def hog() -> Iterator[None]:
    """Another process that keeps every core busy."""
    command = [sys.executable, "-c", "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"]
    # In a session of its own, and started by a process that ends, so that it is none of our descendants.
    starter = (
        "import subprocess, sys\n"
        "quiet = {name: subprocess.DEVNULL for name in ('stdin', 'stdout', 'stderr')}\n"
        "for _ in range(int(sys.argv[1])):\n"
        "    print(subprocess.Popen(sys.argv[2:], start_new_session=True, **quiet).pid)"
    )
    out = subprocess.run(
        [sys.executable, "-c", starter, str(os.cpu_count() or 1), *command], capture_output=True, text=True, check=True
    )
    time.sleep(0.3)
    try:
        yield
    finally:
        for pid in out.stdout.split():
            os.kill(int(pid), 9)


@pytest.mark.usefixtures("hog")
def test_a_run_beside_a_hog_is_graded_down(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "runs", "synthetic", {"steps": 40, "step_ms": 20.0})
    record = execute(run_dir)
    assert record.audit.grade == "D"
    assert record.audit.reasons[0] == "background-heavy"
    assert record.audit.readings["background_share"] > 0.5
    assert run_dir.record() == record


def test_the_record_keeps_readings_reasons_and_grade(tmp_path: Path) -> None:
    record = execute(create_run(tmp_path / "runs", "synthetic", {"steps": 3, "step_ms": 1.0}))
    assert record.audit.grade in ("C", "D")  # three samples
    assert "too-few-samples" in record.audit.reasons
    assert record.audit.readings["duration_s"] > 0
