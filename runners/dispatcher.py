"""The dispatcher: one small process per folder of runs that carries out its queue, one run after the other.

`python -m runners.dispatcher RUNS_DIR` leaves its parent's family at once, so it outlives the app or shell that started
it; a second one for the same folder ends immediately. Benchmarks run in a process of their own, images of the
playground in the generation worker; both are children that end when this process does, however it ends. It is gone
when nothing waits and no generation worker is kept. Everything it knows is in files (`runners.queue_files`,
`runners.rundir`), so after a kill the next one goes on from there: what had begun is recorded as lost, what waited
still waits.
"""

import fcntl
import json
import os
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

from runners.errors import Cancelled, RecordError, RunnersError, SpecError
from runners.execute import failure_record, write_final
from runners.launch import record_if_lost, record_lost_runs, run_in_child
from runners.queue_files import Entry, QueueFiles
from runners.records import Status
from runners.registry import WORKLOADS
from runners.reserve import keep_reserve
from runners.rundir import Request, RunDir, find_run
from runners.worker_client import GenerationWorker

LINGER_S = 1.0
"""How long it waits for more before it leaves; a sweep's next run then needs no new process."""
LOCK_TRIES, LOCK_PAUSE_S = 20, 0.02
"""Somebody who looks whether a dispatcher runs holds the lock for a moment."""
LOOK_S = 0.5
SWEEP_S = 0.2
ARRIVING_S = 10.0
"""An entry is there a moment before its run folder; older ones belong to a submission that was killed."""
ORPHAN_WAIT_S = 5.0
MAX_LOG_BYTES = 1_000_000


class Ended(BaseException):
    """The dispatcher was asked to end. No `Exception`: nothing but the outermost frame may take it."""


class Dispatcher:
    """Carries out one queue until there is nothing more to do."""

    def __init__(self, runs_dir: Path) -> None:
        """Takes the queue; the caller holds its lock."""
        self._files = QueueFiles(runs_dir)
        self._runs_dir = runs_dir
        self._worker = GenerationWorker(self._files.folder / "worker.log", self._tick)
        self._current: str | None = None
        self._written: dict[str, Any] = {}
        self._stop = False
        self._swept_s = 0.0
        self._wake = _open_wake(self._files.folder / "wake")
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, self._on_signal)

    def serve(self) -> bool:
        """Works until nothing waits and the generation worker is gone; returns False when it was asked to end."""
        self._recover()
        idle_since_s = time.monotonic()
        try:
            while True:
                self._tick()
                keep_reserve(self._runs_dir)
                if self._work():
                    idle_since_s = time.monotonic()
                elif self._may_leave(time.monotonic() - idle_since_s):
                    return True
                else:
                    self._sleep()
        except Ended:
            return False
        finally:
            self._worker.stop()
            self._write_status()
            if self._wake is not None:
                os.close(self._wake)

    def _work(self) -> bool:
        """Does the next thing there is to do; returns whether there was one."""
        if (self._files.folder / "unload").exists():
            (self._files.folder / "unload").unlink(missing_ok=True)
            self._worker.stop()
        for entry in self._files.startable():
            run_dir = self._run_of(entry)
            if run_dir is not None and not run_dir.is_alive():
                self._carry_out(entry, run_dir)
                return True
        return self._load_ahead()

    def _carry_out(self, entry: Entry, run_dir: RunDir) -> None:
        self._current = run_dir.run_id
        self._tick()
        try:
            if _for_worker(run_dir):
                self._worker.generate(run_dir)
            else:
                if _needs_device(run_dir):
                    self._worker.stop()  # it holds the device; the run would wait for it
                run_in_child(run_dir, self._tick)
        except Ended:
            self._close(run_dir, "lost", RunnersError("dispatcher-ended"))
            raise
        except Exception as error:  # outermost frame of a run: without it one bad folder would stop all others
            traceback.print_exc(file=sys.stderr)
            unexpected = RunnersError("unexpected", type=type(error).__name__, text=str(error)[:2000])
            self._close(run_dir, "failed", unexpected)
        else:
            self._close(run_dir, "failed", RunnersError("no-record"))
        finally:
            self._current = None
            self._files.remove(entry)

    def _close(self, run_dir: RunDir, status: Status, error: RunnersError) -> None:
        """Leaves a record where the run itself has left none, and its folder takes one."""
        with suppress(OSError, RunnersError):
            if not run_dir.has_record():
                write_final(run_dir, failure_record(run_dir, status, error))

    def _load_ahead(self) -> bool:
        path = self._files.folder / "load.json"
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        finally:
            with suppress(OSError):
                path.unlink()
        if isinstance(fields, dict):
            self._worker.load(fields)
        return True

    def _run_of(self, entry: Entry) -> RunDir | None:
        """The folder of an entry that still has to be carried out; an entry without one is taken out."""
        try:
            run_dir = find_run(self._runs_dir, entry.run_id)
        except RecordError:
            with suppress(OSError):
                age_s = time.time() - (self._files.waiting_dir / entry.file_name).stat().st_mtime
                if not 0 <= age_s < ARRIVING_S:
                    self._files.remove(entry)
            return None
        if run_dir.has_record():
            self._files.remove(entry)
            return None
        return run_dir

    def _tick(self) -> None:
        """What must not wait for the run that goes on: orders to end, and cancelling what waits."""
        if self._stop or (self._files.folder / "stop").exists():
            (self._files.folder / "stop").unlink(missing_ok=True)
            raise Ended
        self._write_status()
        now_s = time.monotonic()
        if now_s - self._swept_s < SWEEP_S:
            return
        self._swept_s = now_s
        for entry in self._files.entries():
            if entry.run_id != self._current and (self._runs_dir / entry.run_id / "cancel").exists():
                run_dir = self._run_of(entry)
                if run_dir is not None:
                    self._close(run_dir, "cancelled", Cancelled())
                    self._files.remove(entry)

    def _may_leave(self, idle_s: float) -> bool:
        """Whether nothing keeps the dispatcher: no run that could start, and no worker that somebody may use."""
        if self._worker.is_running():
            if self._files.has_clients():
                return False
            self._worker.stop()
        return idle_s > LINGER_S

    def _sleep(self) -> None:
        if self._wake is None:
            time.sleep(LOOK_S / 5)
            return
        ready, _, _ = select.select([self._wake], [], [], LOOK_S)
        if ready:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)

    def _recover(self) -> None:
        """Takes over from a dispatcher that was killed: what had begun is lost, what waited still waits."""
        (self._files.folder / "stop").unlink(missing_ok=True)
        for entry in self._files.entries():
            run_dir = self._run_of(entry)
            if run_dir is None or not self._was_begun(run_dir):
                continue
            deadline_s = time.monotonic() + ORPHAN_WAIT_S
            while run_dir.is_alive() and time.monotonic() < deadline_s:
                time.sleep(0.05)  # its process has seen that its parent is gone and is about to end
            if run_dir.is_alive():
                _kill_orphan(run_dir)
            record_if_lost(run_dir)
            if run_dir.has_record():
                self._files.remove(entry)
        record_lost_runs(self._runs_dir, {entry.run_id for entry in self._files.entries()})

    def _was_begun(self, run_dir: RunDir) -> bool:
        return run_dir.latest_event("started") is not None or run_dir.is_alive()

    def _write_status(self) -> None:
        self._worker.is_running()
        error = self._worker.last_error
        status = {
            "pid": os.getpid(),
            "current": self._current,
            "worker": self._worker.status,
            "last_error": {"message_id": error.message_id, "params": error.params} if error else None,
        }
        if status != self._written:
            self._files.write_status(status)
            self._written = status

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop = True


def _for_worker(run_dir: RunDir) -> bool:
    request = _request(run_dir)
    return request is not None and request.workload == "text-to-image" and request.source == "playground"


def _needs_device(run_dir: RunDir) -> bool:
    request = _request(run_dir)
    item = WORKLOADS.get(request.workload) if request is not None else None
    return item is not None and (item.needs_torch or "device" in (request.fields if request else {}))


def _request(run_dir: RunDir) -> Request | None:
    try:
        return run_dir.request()
    except SpecError:
        return None  # its own process finds the same and leaves the record


def _kill_orphan(run_dir: RunDir) -> None:
    """Ends the process of a run whose dispatcher was killed, where it is stopped and cannot notice that itself.

    The run's lock is held, so the process that wrote the event lives; that its number belongs to it is checked by the
    time at which it started.
    """
    import psutil

    started = run_dir.latest_event("started") or {}
    pid = started.get("pid")
    if not isinstance(pid, int):
        return
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if str(run_dir.run_id) in " ".join(process.cmdline()) or "runners.worker" in process.cmdline():
            process.kill()
            process.wait(timeout=ORPHAN_WAIT_S)


def _open_wake(path: Path) -> int | None:
    """The pipe that others write to; None on a file system that has none, where looking often must do."""
    try:
        with suppress(FileExistsError):
            os.mkfifo(path)
        # For both directions, so that it never reports an end when the last writer leaves.
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None


def _take_lock(files: QueueFiles) -> IO[str] | None:
    file = (files.folder / "dispatcher.lock").open("a")
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)
        else:
            return file
    file.close()
    return None


def _become_nobody_s_child() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()


def main(runs_dir: Path) -> None:
    """Serves a folder of runs until nothing is left to do."""
    files = QueueFiles(runs_dir)
    files.make()
    lock = _take_lock(files)
    if lock is None:
        return
    _become_nobody_s_child()
    if (files.folder / "dispatcher.log").stat().st_size > MAX_LOG_BYTES:
        os.truncate(files.folder / "dispatcher.log", 0)
    while lock is not None:
        by_itself = Dispatcher(runs_dir).serve()
        lock.close()
        # A run that came in while it was leaving has seen the lock and called nobody.
        lock = _take_lock(files) if by_itself and files.startable() else None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
