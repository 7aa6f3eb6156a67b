"""The generation worker and its client: real processes, the bundled model, and everything that can go wrong between."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runners import worker_client
from runners.errors import SpecError, WeightsError
from runners.lease import take
from runners.progress import read_progress
from runners.queue import RunQueue
from runners.queue_files import QueueFiles
from runners.records import Record
from runners.rundir import RunDir, create_run, list_runs
from runners.worker import PROTOCOL_VERSION

PROJECT = Path(__file__).resolve().parent.parent
QUICK = {"prompt": "a blue star", "steps": 2}
LONG = {"prompt": "a blue star", "steps": 500}


class Playground:
    """What the app does: submits images, and watches."""

    def __init__(self, runs_dir: Path) -> None:
        self.queue = RunQueue(runs_dir)
        self.watching = self.queue.watch()

    def submit(self, fields: dict[str, Any]) -> RunDir:
        return self.queue.submit("text-to-image", fields, source="playground")

    def cancel(self, run_id: str) -> None:
        self.queue.cancel(run_id)

    def close(self) -> None:
        self.watching.close()
        self.queue.shut_down()
        deadline_s = time.monotonic() + 10
        while QueueFiles(self.queue.runs_dir).dispatcher_runs():
            assert time.monotonic() < deadline_s, "the dispatcher does not end"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worker") / "runs"


@pytest.fixture(scope="module")
def worker(runs_dir: Path) -> Iterator[Playground]:
    # The dispatcher outlives each test, so it keeps one folder of locks for all of them.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKEFORLIKE_LEASES", str(runs_dir.parent / "leases"))
        running = Playground(runs_dir)
        running.submit(QUICK)
        yield running
        running.close()


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


def idle(worker: Playground) -> None:
    deadline_s = time.monotonic() + 10
    while worker.queue.state().current is not None:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def unload(worker: Playground) -> None:
    deadline_s = time.monotonic() + 100
    while worker.queue.state().worker != "idle":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    worker.queue.unload()
    while worker.queue.state().worker != "stopped":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def gone(pid: int) -> None:
    deadline_s = time.monotonic() + 30
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline_s, "the process stays"
        time.sleep(0.05)


def test_the_pipeline_stays_loaded(worker: Playground) -> None:
    unload(worker)
    first = finished(worker.submit(QUICK))
    second_dir = worker.submit(QUICK)
    second = finished(second_dir)
    assert (first.status, second.status) == ("ok", "ok")
    assert "load" in {phase.name for phase in first.phases}
    assert "load" not in {phase.name for phase in second.phases}
    assert first.details["latents_sha256"] == second.details["latents_sha256"]
    assert second_dir.request().source == "playground"
    assert (second_dir.images_dir / "000.png").exists()


def test_runs_wait_in_order(worker: Playground) -> None:
    runs = [worker.submit(QUICK) for _ in range(3)]
    assert worker.queue.state().current or worker.queue.state().waiting
    records = [finished(run_dir) for run_dir in runs]
    assert [record.status for record in records] == ["ok"] * 3
    started = [record.started_utc or "" for record in records]
    assert started == sorted(started)


def test_cancelling_keeps_the_worker(worker: Playground) -> None:
    run_dir = worker.submit(LONG)
    pid = denoising(run_dir)
    worker.cancel(run_dir.run_id)
    assert finished(run_dir, 10).status == "cancelled"
    again = worker.submit(QUICK)
    assert finished(again).status == "ok"
    assert (again.latest_event("started") or {})["pid"] == pid


def test_what_waits_can_be_cancelled_before_it_begins(worker: Playground) -> None:
    long, waiting = worker.submit(LONG), worker.submit(QUICK)
    worker.cancel(waiting.run_id)
    denoising(long)
    worker.cancel(long.run_id)
    assert finished(waiting).status == "cancelled"
    assert waiting.latest_event("started") is None


def test_a_worker_that_does_not_heed_is_replaced(worker: Playground) -> None:
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


def test_a_killed_worker_leaves_a_record_and_comes_back(worker: Playground) -> None:
    run_dir = worker.submit(LONG)
    os.kill(denoising(run_dir), signal.SIGKILL)
    record = finished(run_dir, 10)
    assert record.status == "failed"
    assert record.error is not None and "SIGKILL" in record.error.message
    idle(worker)
    assert worker.queue.state().last_error is not None
    assert finished(worker.submit(QUICK)).status == "ok"
    idle(worker)
    assert worker.queue.state().last_error is None


def _remove_under_a_writer(folder: Path) -> None:
    """The worker may write a file between the emptying of the folder and its removal; then it is emptied again."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
        if not folder.exists():
            return
    pytest.fail(f"{folder} would not go away")


def test_a_run_folder_that_disappears_stops_nothing(worker: Playground) -> None:
    _remove_under_a_writer(worker.submit(QUICK).path)
    assert finished(worker.submit(QUICK)).status == "ok"


def test_an_idle_worker_that_dies_is_replaced(worker: Playground) -> None:
    run_dir = worker.submit(QUICK)
    finished(run_dir)
    idle(worker)
    os.kill((run_dir.latest_event("started") or {})["pid"], signal.SIGKILL)
    record = finished(worker.submit(QUICK))
    assert record.status == "ok", record.error


def test_peak_memory_is_the_run_s_own(worker: Playground) -> None:
    peaks = []
    for side_px in (64, 512, 64):
        record = finished(worker.submit({**QUICK, "steps": 1, "width": side_px, "height": side_px, "previews": False}))
        peaks.append(record.details["peak_memory_bytes"])
    if sys.platform == "linux":
        assert peaks[2] < peaks[1]


def test_a_refusal_becomes_a_record_that_says_why(worker: Playground) -> None:
    record = finished(worker.submit({**QUICK, "precision": "fp16"}))
    assert record.status == "failed"
    assert record.error is not None and record.error.message_id == "precision-unsupported"


def test_bad_requests_are_refused_at_once(worker: Playground, runs_dir: Path) -> None:
    before = len(list_runs(runs_dir))
    with pytest.raises(SpecError):
        worker.submit({"prompt": ""})
    with pytest.raises(WeightsError):
        worker.submit({**QUICK, "weights": "/nowhere"})
    assert len(list_runs(runs_dir)) == before


def test_unloading_frees_the_pipeline(worker: Playground) -> None:
    finished(worker.submit(QUICK))
    unload(worker)
    assert "load" in {phase.name for phase in finished(worker.submit(QUICK)).phases}


def test_shutting_down_while_it_generates_ends_everything(tmp_path: Path) -> None:
    running = Playground(tmp_path / "runs")
    run_dir = running.submit(LONG)
    pid = denoising(run_dir)
    running.close()
    assert not psutil.pid_exists(pid)
    record = finished(run_dir, 5)
    assert (record.status, record.error and record.error.message_id) == ("lost", "dispatcher-ended")


def test_a_worker_without_watchers_ends_after_its_last_image(tmp_path: Path) -> None:
    running = Playground(tmp_path / "runs")
    run_dir = running.submit(QUICK)
    running.watching.close()
    assert finished(run_dir).status == "ok"
    gone((run_dir.latest_event("started") or {})["pid"])


def test_an_idle_worker_gives_the_device_up_to_whoever_wants_it(tmp_path: Path) -> None:
    running = Playground(tmp_path / "runs")
    run_dir = running.submit(QUICK)
    finished(run_dir)
    asked_s = time.monotonic()
    with take("cpu-0", "a shell beside the app", waiting=lambda _holder: None):
        assert time.monotonic() - asked_s < 10
        waiting = running.submit(QUICK)
        deadline_s = time.monotonic() + 60
        while read_progress(waiting).holder is None:
            assert time.monotonic() < deadline_s, "nobody said what it waits for"
            time.sleep(0.1)
        assert "a shell beside the app" in str(read_progress(waiting).holder)
    assert finished(waiting).status == "ok"
    running.close()


def test_an_idle_worker_ends_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEFORLIKE_WORKER_IDLE_S", "1")
    running = Playground(tmp_path / "runs")
    run_dir = running.submit(QUICK)
    finished(run_dir)
    gone((run_dir.latest_event("started") or {})["pid"])
    deadline_s = time.monotonic() + 20
    while running.queue.state().worker != "stopped":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert running.queue.state().last_error is None
    running.close()


def test_a_model_can_be_loaded_before_it_is_needed(tmp_path: Path) -> None:
    running = Playground(tmp_path / "runs")
    running.queue.load({"weights": "bundled"})
    deadline_s = time.monotonic() + 100
    while running.queue.state().worker != "idle":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert "load" not in {phase.name for phase in finished(running.submit(QUICK)).phases}
    assert len(list_runs(tmp_path / "runs")) == 1, "loading is no run"
    running.close()


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


@pytest.mark.parametrize(
    "rubbish",
    [b"\xff\xfe\x00\n", b"{\n", b"[1, 2]\n", b"[" * 100_000 + b"\n", b"a line without an end " * 100_000, b"\n\n\n"],
    ids=range(6),
)
def test_rubbish_from_a_worker_is_passed_over(rubbish: bytes) -> None:
    read_fd, write_fd = os.pipe()
    connection = worker_client._Connection.__new__(worker_client._Connection)
    connection._answer_read, connection._buffer = read_fd, b""
    threading.Thread(target=lambda: (os.write(write_fd, rubbish), os.write(write_fd, b'\n{"v": 1}\n'))).start()
    deadline_s = time.monotonic() + 20
    while (message := connection.receive()) is None:
        assert time.monotonic() < deadline_s, "the message behind the rubbish is lost"
    assert message == {"v": 1}
    assert len(connection._buffer) <= worker_client.MAX_BUFFER_BYTES
    os.close(read_fd)
    os.close(write_fd)


def test_a_worker_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_client, "START_TIMEOUT_S", 0.5)
    silent = tmp_path / "silent"
    silent.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    silent.chmod(0o755)
    monkeypatch.setattr(worker_client.sys, "executable", str(silent))
    waiting = worker_client.GenerationWorker(tmp_path / "worker.log")
    run_dir = create_run(tmp_path / "runs", "text-to-image", QUICK, source="playground")
    waiting.generate(run_dir)
    record = run_dir.record()
    assert (record.status, record.error and record.error.message_id) == ("failed", "worker-not-answering")
    assert waiting.last_error is not None
    assert waiting.status == "stopped"
