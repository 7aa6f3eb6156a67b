"""The generation worker and its client: real processes, the bundled model, and everything that can go wrong between."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.errors import SpecError, WeightsError
from runners.progress import read_progress
from runners.records import Record
from runners.rundir import RunDir, create_run, list_runs
from runners.worker import PROTOCOL_VERSION
from runners.worker_client import GenerationWorker

PROJECT = Path(__file__).resolve().parent.parent
QUICK = {"prompt": "a blue star", "steps": 2}
LONG = {"prompt": "a blue star", "steps": 500}


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worker") / "runs"


@pytest.fixture(scope="module")
def worker(runs_dir: Path) -> Iterator[GenerationWorker]:
    running = GenerationWorker(runs_dir)
    yield running
    running.close()
    assert running.state().status == "stopped"


def finished(run_dir: RunDir, timeout_s: float = 100) -> Record:
    deadline_s = time.monotonic() + timeout_s
    while not run_dir.has_record():
        assert time.monotonic() < deadline_s, "the run did not end"
        time.sleep(0.05)
    return run_dir.record()


def denoising(run_dir: RunDir) -> int:
    """The worker's process id, once the run has made a step."""
    deadline_s = time.monotonic() + 100
    while read_progress(run_dir).status != "running":
        assert time.monotonic() < deadline_s, "the run did not begin"
        time.sleep(0.05)
    return int((run_dir.latest_event("started") or {})["pid"])


def idle(worker: GenerationWorker) -> None:
    deadline_s = time.monotonic() + 10
    while worker.state().run_id is not None:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_the_pipeline_stays_loaded(worker: GenerationWorker) -> None:
    first = finished(worker.submit(QUICK))
    second_dir = worker.submit(QUICK)
    second = finished(second_dir)
    assert (first.status, second.status) == ("ok", "ok")
    assert "load" in {phase.name for phase in first.phases}
    assert "load" not in {phase.name for phase in second.phases}
    assert first.details["latents_sha256"] == second.details["latents_sha256"]
    assert second_dir.request().source == "playground"
    assert (second_dir.images_dir / "000.png").exists()


def test_runs_wait_in_order(worker: GenerationWorker) -> None:
    runs = [worker.submit(QUICK) for _ in range(3)]
    assert worker.state().run_id or worker.state().waiting
    records = [finished(run_dir) for run_dir in runs]
    assert [record.status for record in records] == ["ok"] * 3
    started = [record.started_utc or "" for record in records]
    assert started == sorted(started)


def test_cancelling_keeps_the_worker(worker: GenerationWorker) -> None:
    run_dir = worker.submit(LONG)
    pid = denoising(run_dir)
    worker.cancel(run_dir.run_id)
    assert finished(run_dir, 10).status == "cancelled"
    again = worker.submit(QUICK)
    assert finished(again).status == "ok"
    assert (again.latest_event("started") or {})["pid"] == pid


def test_what_waits_can_be_cancelled_before_it_begins(worker: GenerationWorker) -> None:
    long, waiting = worker.submit(LONG), worker.submit(QUICK)
    worker.cancel(waiting.run_id)
    denoising(long)
    worker.cancel(long.run_id)
    assert finished(waiting).status == "cancelled"
    assert waiting.latest_event("started") is None


def test_a_worker_that_does_not_heed_is_replaced(worker: GenerationWorker) -> None:
    run_dir = worker.submit(LONG)
    pid = denoising(run_dir)
    os.kill(pid, signal.SIGSTOP)
    begun_s = time.monotonic()
    worker.cancel(run_dir.run_id)
    assert finished(run_dir, 20).status == "cancelled"
    assert time.monotonic() - begun_s > 2.5
    again = worker.submit(QUICK)
    assert finished(again).status == "ok"
    assert (again.latest_event("started") or {})["pid"] != pid


def test_a_killed_worker_leaves_a_record_and_comes_back(worker: GenerationWorker) -> None:
    run_dir = worker.submit(LONG)
    os.kill(denoising(run_dir), signal.SIGKILL)
    record = finished(run_dir, 10)
    assert record.status == "failed"
    assert record.error is not None and "SIGKILL" in record.error.message
    idle(worker)
    assert worker.state().last_error is not None
    assert finished(worker.submit(QUICK)).status == "ok"
    idle(worker)
    assert worker.state().last_error is None


def _remove_under_a_writer(folder: Path) -> None:
    """The worker may write a file between the emptying of the folder and its removal; then it is emptied again."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
        if not folder.exists():
            return
    pytest.fail(f"{folder} would not go away")


def test_a_run_folder_that_disappears_stops_nothing(worker: GenerationWorker) -> None:
    _remove_under_a_writer(worker.submit(QUICK).path)
    assert finished(worker.submit(QUICK)).status == "ok"


def test_an_idle_worker_that_dies_leaves_no_open_descriptors(worker: GenerationWorker) -> None:
    run_dir = worker.submit(QUICK)
    finished(run_dir)
    idle(worker)
    before = len(list(Path("/dev/fd").iterdir()))
    os.kill((run_dir.latest_event("started") or {})["pid"], signal.SIGKILL)
    assert finished(worker.submit(QUICK)).status == "ok"
    idle(worker)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_peak_memory_is_the_run_s_own(worker: GenerationWorker) -> None:
    peaks = []
    for side_px in (64, 512, 64):
        record = finished(worker.submit({**QUICK, "steps": 1, "width": side_px, "height": side_px, "previews": False}))
        peaks.append(record.details["peak_memory_bytes"])
    if sys.platform == "linux":
        assert peaks[2] < peaks[1]


def test_a_refusal_becomes_a_record_that_says_why(worker: GenerationWorker) -> None:
    record = finished(worker.submit({**QUICK, "precision": "fp16"}))
    assert record.status == "failed"
    assert record.error is not None and record.error.message_id == "precision-unsupported"


def test_bad_requests_are_refused_at_once(worker: GenerationWorker, runs_dir: Path) -> None:
    before = len(list_runs(runs_dir))
    with pytest.raises(SpecError):
        worker.submit({"prompt": ""})
    with pytest.raises(WeightsError):
        worker.submit({**QUICK, "weights": "/nowhere"})
    assert len(list_runs(runs_dir)) == before


def test_unloading_frees_the_pipeline(worker: GenerationWorker) -> None:
    finished(worker.submit(QUICK))
    worker.unload()
    assert "load" in {phase.name for phase in finished(worker.submit(QUICK)).phases}


def test_closing_while_it_generates_ends_the_process(tmp_path: Path) -> None:
    running = GenerationWorker(tmp_path / "runs")
    run_dir = running.submit(LONG)
    pid = denoising(run_dir)
    running.close()
    assert not Path(f"/proc/{pid}").exists() or sys.platform != "linux"
    assert finished(run_dir, 5).status == "failed"


class Wire:
    """Speaks to a worker process by hand."""

    def __init__(self, tmp_path: Path) -> None:
        request_read, self.write_fd = os.pipe()
        self.read_fd, answer_write = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runners.worker", str(request_read), str(answer_write)],
            cwd=PROJECT,
            pass_fds=(request_read, answer_write),
            stdout=(tmp_path / "out").open("wb"),
            stderr=subprocess.STDOUT,
        )
        os.close(request_read)
        os.close(answer_write)
        self.answers = os.fdopen(self.read_fd, "r")

    def hear(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.answers.readline())
        assert answer["v"] == PROTOCOL_VERSION
        return answer

    def say(self, line: bytes) -> None:
        os.write(self.write_fd, line + b"\n")


def test_the_protocol(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    hello = wire.hear()
    assert (hello["event"], hello["pid"]) == ("hello", wire.process.pid)
    assert wire.hear()["event"] == "ready"
    for rubbish in (b"", b"{", b"[]", b"\xff\xfe", b'{"v": 1}', b'{"v": 1, "id": "1", "op": "format-disk"}'):
        wire.say(rubbish)
        assert wire.hear()["event"] == "error"
    wire.say(b'{"v": 2, "id": "2", "op": "unload"}')
    refused = wire.hear()
    assert (refused["id"], refused["event"]) == ("2", "error")
    run_dir = create_run(tmp_path / "runs", "text-to-image", QUICK, source="playground")
    wire.say(json.dumps({"v": 1, "id": "3", "op": "generate", "run": str(run_dir.path)}).encode())
    done = wire.hear()
    assert (done["id"], done["event"], done["status"]) == ("3", "done", "ok")
    assert run_dir.has_record()
    os.close(wire.write_fd)
    assert wire.process.wait(timeout=10) == 0, "a closed pipe ends the worker"
