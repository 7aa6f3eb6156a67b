"""Queue and dispatcher: real processes, killed, stopped and deceived in every way."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from runners.errors import RecordError, SpecError
from runners.launch import record_lost_runs
from runners.progress import read_progress
from runners.queue import RunQueue, wait_for_record
from runners.queue_files import BENCHMARK, LIVE, QueueFiles
from runners.records import Record, new_run_id
from runners.rundir import RunDir, create_run, list_runs

PROJECT = Path(__file__).resolve().parent.parent
SHORT = {"steps": 3, "step_ms": 1.0}
LONG = {"steps": 100_000, "step_ms": 5.0}


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[RunQueue]:
    made = RunQueue(tmp_path / "runs")
    yield made
    made.shut_down()
    until(lambda: not QueueFiles(made.runs_dir).dispatcher_runs(), "the dispatcher stays")


def until(condition: Callable[[], object], what: str, timeout_s: float = 60) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


def ended(queue: RunQueue, run_dir: RunDir, timeout_s: float = 60) -> Record:
    deadline_s = time.monotonic() + timeout_s

    def watch() -> None:
        assert time.monotonic() < deadline_s, "the run did not end"

    wait_for_record(queue, run_dir, watch)
    return run_dir.record()


def begun(run_dir: RunDir) -> int:
    until(lambda: read_progress(run_dir).status == "running", "the run did not begin")
    return int((run_dir.latest_event("started") or {})["pid"])


def dispatcher_pid(queue: RunQueue) -> int:
    return int(QueueFiles(queue.runs_dir).status()["pid"])


def test_runs_end_in_the_order_in_which_they_came(queue: RunQueue) -> None:
    runs = [queue.submit("synthetic", SHORT) for _ in range(4)]
    records = [ended(queue, run_dir) for run_dir in runs]
    assert [record.status for record in records] == ["ok"] * 4
    started = [record.started_utc or "" for record in records]
    assert started == sorted(started)
    until(lambda: not QueueFiles(queue.runs_dir).entries(), "an entry stays behind")


def test_the_dispatcher_leaves_when_nothing_is_left(queue: RunQueue) -> None:
    ended(queue, queue.submit("synthetic", SHORT))
    pid = dispatcher_pid(queue)
    until(lambda: not psutil.pid_exists(pid), "the dispatcher stays")
    assert ended(queue, queue.submit("synthetic", SHORT)).status == "ok", "and comes back"


def test_positions_and_moving(queue: RunQueue) -> None:
    first = queue.submit("synthetic", LONG)
    a, b, c = (queue.submit("synthetic", SHORT) for _ in range(3))
    begun(first)
    assert [queue.position(run.run_id) for run in (first, a, b, c)] == [None, 1, 2, 3]
    queue.move(c.run_id, -2)
    assert queue.state().waiting == (c.run_id, a.run_id, b.run_id)
    queue.move(c.run_id, 1)
    assert queue.state().waiting == (a.run_id, c.run_id, b.run_id)
    queue.move(a.run_id, -5)
    queue.move(b.run_id, 99)
    assert queue.state().waiting == (a.run_id, c.run_id, b.run_id)
    for _ in range(60):
        # Each move halves the room between two neighbours, until the line is numbered anew.
        queue.move(b.run_id, -1)
        queue.move(c.run_id, -1)
    assert queue.state().waiting == (a.run_id, c.run_id, b.run_id)
    with pytest.raises(SpecError, match="does not wait"):
        queue.move(first.run_id, 1)
    queue.cancel(first.run_id)
    assert [ended(queue, run).status for run in (first, a, b, c)] == ["cancelled", "ok", "ok", "ok"]


def test_images_go_before_benchmarks_that_wait(tmp_path: Path) -> None:
    files = QueueFiles(tmp_path)
    files.make()
    benchmark, image, second = new_run_id(), new_run_id(), new_run_id()
    files.add(benchmark, BENCHMARK)
    files.add(image, LIVE)
    files.add(second, LIVE)
    assert [entry.run_id for entry in files.entries()] == [image, second, benchmark]


def test_what_waits_is_cancelled_before_it_begins(queue: RunQueue) -> None:
    first, waiting = queue.submit("synthetic", LONG), queue.submit("synthetic", SHORT)
    begun(first)
    queue.cancel(waiting.run_id)
    assert ended(queue, waiting, 5).status == "cancelled"
    assert waiting.latest_event("started") is None
    assert not first.has_record()
    queue.cancel(first.run_id)
    assert ended(queue, first).status == "cancelled"


def test_removing_and_retrying(queue: RunQueue) -> None:
    first, waiting = queue.submit("synthetic", LONG), queue.submit("synthetic", SHORT, timeout_s=50)
    begun(first)
    queue.remove(waiting.run_id)
    assert ended(queue, waiting, 5).status == "cancelled"
    assert waiting.annotations()["deleted"] is True
    with pytest.raises(SpecError):
        queue.remove(first.run_id)
    with pytest.raises(RecordError):
        queue.cancel("../../etc")
    again = queue.retry(waiting.run_id)
    queue.cancel(first.run_id)
    assert ended(queue, again).status == "ok"
    assert again.run_id != waiting.run_id
    assert again.request().timeout_s == 50


def test_a_paused_queue_holds_benchmarks_back(queue: RunQueue) -> None:
    queue.pause()
    run_dir = queue.submit("synthetic", SHORT)
    until(lambda: not QueueFiles(queue.runs_dir).dispatcher_runs(), "it has nothing to do and stays")
    assert not run_dir.has_record()
    assert queue.state().waiting == (run_dir.run_id,)
    assert queue.state().paused
    queue.resume()
    assert ended(queue, run_dir).status == "ok"


def test_a_time_limit_does_not_count_waiting(queue: RunQueue) -> None:
    first = queue.submit("synthetic", {"steps": 400, "step_ms": 5.0})
    second = queue.submit("synthetic", SHORT, timeout_s=1.5)
    third = queue.submit("synthetic", LONG, timeout_s=1)
    assert [ended(queue, run).status for run in (first, second, third)] == ["ok", "ok", "timeout"]


def test_a_second_dispatcher_ends_at_once(queue: RunQueue) -> None:
    run_dir = queue.submit("synthetic", LONG)
    begun(run_dir)
    pid = dispatcher_pid(queue)
    subprocess.run(
        [sys.executable, "-m", "runners.dispatcher", str(queue.runs_dir)], cwd=PROJECT, timeout=30, check=True
    )
    time.sleep(0.5)
    assert dispatcher_pid(queue) == pid
    assert not run_dir.has_record()
    queue.cancel(run_dir.run_id)
    assert ended(queue, run_dir).status == "cancelled"


def test_a_killed_dispatcher_loses_the_run_that_went_on_and_no_other(queue: RunQueue) -> None:
    first, waiting = queue.submit("synthetic", LONG), queue.submit("synthetic", SHORT)
    child = begun(first)
    os.kill(dispatcher_pid(queue), signal.SIGKILL)
    until(lambda: not psutil.pid_exists(child), "the run goes on without its dispatcher")
    assert ended(queue, waiting).status == "ok"
    record = ended(queue, first)
    assert (record.status, record.error and record.error.message_id) == ("lost", "lost")


def test_a_stopped_run_of_a_killed_dispatcher_is_ended(queue: RunQueue) -> None:
    first, waiting = queue.submit("synthetic", LONG), queue.submit("synthetic", SHORT)
    child = begun(first)
    os.kill(child, signal.SIGSTOP)
    os.kill(dispatcher_pid(queue), signal.SIGKILL)
    assert ended(queue, waiting).status == "ok"
    assert ended(queue, first).status == "lost"
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_dispatcher_that_is_stopped_for_a_while_loses_nothing(queue: RunQueue) -> None:
    first = queue.submit("synthetic", {"steps": 100, "step_ms": 5.0})
    begun(first)
    pid = dispatcher_pid(queue)
    os.kill(pid, signal.SIGSTOP)
    second = queue.submit("synthetic", SHORT)
    time.sleep(2)
    assert not second.has_record()
    os.kill(pid, signal.SIGCONT)
    assert [ended(queue, run).status for run in (first, second)] == ["ok", "ok"]


def test_a_dispatcher_that_is_asked_to_end_leaves_a_record(queue: RunQueue) -> None:
    first, waiting = queue.submit("synthetic", LONG), queue.submit("synthetic", SHORT)
    begun(first)
    os.kill(dispatcher_pid(queue), signal.SIGTERM)
    until(first.has_record, "no record")
    assert first.record().status == "lost"
    assert first.record().error and first.record().error.message_id == "dispatcher-ended"  # type: ignore[union-attr]
    assert ended(queue, waiting).status == "ok", "the next dispatcher goes on"


def test_nothing_of_a_cancelled_run_stays(queue: RunQueue) -> None:
    run_dir = queue.submit("synthetic", LONG)
    child = begun(run_dir)
    os.kill(child, signal.SIGSTOP)
    queue.cancel(run_dir.run_id)
    assert ended(queue, run_dir, 15).status == "cancelled"
    assert not psutil.pid_exists(child)
    assert not run_dir.is_alive()


def _spec_of_50_mb(run_dir: RunDir) -> None:
    (run_dir.path / "spec.json").write_bytes(b'{"x": "' + b"y" * 50_000_000 + b'"}')


def _spec_cut(run_dir: RunDir) -> None:
    (run_dir.path / "spec.json").write_text('{"run_id": "')


def _spec_missing(run_dir: RunDir) -> None:
    (run_dir.path / "spec.json").unlink()


def _spec_a_pipe(run_dir: RunDir) -> None:
    (run_dir.path / "spec.json").unlink()
    os.mkfifo(run_dir.path / "spec.json")


def _workload_of_a_later_version(run_dir: RunDir) -> None:
    document = json.loads((run_dir.path / "spec.json").read_text())
    (run_dir.path / "spec.json").write_text(json.dumps({**document, "workload": "../../etc/passwd"}))


def _log_is_a_folder(run_dir: RunDir) -> None:
    (run_dir.path / "log.txt").mkdir()


@pytest.mark.parametrize(
    ("damage", "status"),
    [
        (_spec_of_50_mb, "failed"),
        (_spec_cut, "failed"),
        (_spec_missing, "failed"),
        (_spec_a_pipe, "failed"),
        (_workload_of_a_later_version, "failed"),
        (_log_is_a_folder, "ok"),
    ],
)
def test_a_damaged_folder_is_recorded_and_stops_nothing(
    queue: RunQueue, damage: Callable[[RunDir], None], status: str
) -> None:
    queue.pause()
    bad, good = queue.submit("synthetic", SHORT), queue.submit("synthetic", SHORT)
    damage(bad)
    queue.resume()
    assert ended(queue, good).status == "ok"
    record = ended(queue, bad)
    assert record.status == status
    assert record.run_id == bad.run_id
    assert status == "ok" or record.error is not None


def test_entries_that_are_none_are_passed_over(queue: RunQueue, tmp_path: Path) -> None:
    queue.pause()
    good = queue.submit("synthetic", SHORT)
    waiting = QueueFiles(queue.runs_dir).waiting_dir
    for name in ("1-000000000000001", "x", "0-000000000000001-..", "1-000000000000001-" + "z" * 36, ".hidden"):
        (waiting / name).write_bytes(b"\xff" * 10)
    (waiting / f"1-000000000000002-{new_run_id()}").touch()
    outside = create_run(tmp_path / "elsewhere", "synthetic", SHORT)
    (queue.runs_dir / outside.run_id).symlink_to(outside.path)
    (waiting / f"1-000000000000003-{outside.run_id}").touch()
    queue.resume()
    assert ended(queue, good).status == "ok"
    until(lambda: not QueueFiles(queue.runs_dir).dispatcher_runs(), "it waits for what never comes", 30)
    assert not outside.has_record(), "a link out of the folder is not followed"


def test_a_folder_that_vanishes_stops_nothing(queue: RunQueue) -> None:
    queue.pause()
    gone, good = queue.submit("synthetic", SHORT), queue.submit("synthetic", SHORT)
    gone.path.rename(queue.runs_dir.parent / "moved-away")
    queue.resume()
    assert ended(queue, good).status == "ok"


def test_a_clock_set_back_by_an_hour_hides_no_lost_run(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path, "synthetic", SHORT)
    later = time.time() + 3600
    os.utime(run_dir.path / "spec.json", (later, later))
    assert record_lost_runs(tmp_path) == [run_dir.run_id]


def test_a_killed_submission_leaves_no_half_run(tmp_path: Path) -> None:
    def die(_run_id: str) -> None:
        raise OSError(errno.EIO, "killed here")

    with pytest.raises(SpecError):
        create_run(tmp_path, "synthetic", SHORT, announce=die)
    assert list_runs(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(SpecError, match="cannot be written"):
        RunQueue(tmp_path / "runs").submit("synthetic", SHORT)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB: only the superuser of a machine can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs the right to mount: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="needs tmpfs")
def test_on_a_full_disk_the_record_is_still_written(small_disk: Path) -> None:
    queue = RunQueue(small_disk / "runs")
    run_dir = queue.submit("synthetic", {"steps": 400, "step_ms": 5.0})
    begun(run_dir)
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while True:
            filler.write(bytes(4096))
    record = ended(queue, run_dir)
    assert record.status == "ok"
    assert len(record.series[0].values) == 400
    (small_disk / "filler").unlink()
    assert ended(queue, queue.submit("synthetic", SHORT)).status == "ok"
    until(lambda: not QueueFiles(queue.runs_dir).dispatcher_runs(), "the dispatcher stays")
    assert (queue.runs_dir / ".queue" / "reserve").exists(), "it is set aside again"


def test_an_app_brings_a_killed_dispatcher_back(queue: RunQueue) -> None:
    run_dir = queue.submit("synthetic", LONG)
    begun(run_dir)
    os.kill(dispatcher_pid(queue), signal.SIGKILL)
    until(lambda: not run_dir.is_alive(), "the run goes on")

    def recorded() -> bool:
        # An app looks every few seconds; the very first look may find the killed process still about to vanish.
        queue.ensure_dispatcher()
        return run_dir.has_record()

    until(recorded, "nobody recorded it")
    assert run_dir.record().status == "lost"
