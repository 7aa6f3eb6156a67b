"""The dispatcher's end of the generation worker: starts and restarts it, hands it runs, enforces cancelling."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from runners.errors import Cancelled, RunnersError, WorkerError
from runners.execute import failure_record, write_final
from runners.launch import CANCEL_GRACE_S, child_environment, describe_exit
from runners.paths import PROJECT_DIR
from runners.records import Status
from runners.rundir import RunDir
from runners.worker import EXIT_IDLE, EXIT_WANTED, PROTOCOL_VERSION

START_TIMEOUT_S = 180.0
"""Importing torch and diffusers on a slow disk takes a while."""
POLL_S = 0.05
MAX_STARTS = 3
"""How often a run that no worker has begun is given to a new one."""

WorkerStatus = Literal["stopped", "starting", "idle", "generating", "loading"]


class GenerationWorker:
    """One worker process at a time. Not for threads: the dispatcher is one."""

    def __init__(self, log_path: Path, watch: Callable[[], None] = lambda: None) -> None:
        """Starts nothing: the process starts with the first run, or `load`.

        Args:
            log_path: What the worker prints outside of any run.
            watch: Called at every change and some 20 times a second while a run goes on; it ends the run by raising.
        """
        self.status: WorkerStatus = "stopped"
        self.last_error: RunnersError | None = None
        """Why the worker stopped last time, until a run succeeds again."""
        self._log_path = log_path
        self._watch = watch
        self._connection: _Connection | None = None

    def is_running(self) -> bool:
        """Whether there is a process; notices one that has ended while it was idle."""
        connection = self._connection
        if connection is None:
            return False
        if connection.process.poll() is None:
            return True
        if connection.process.returncode not in (0, EXIT_IDLE, EXIT_WANTED):
            self.last_error = self._death(connection)
        self._drop(connection)
        return False

    def generate(self, run_dir: RunDir) -> None:
        """Has one run carried out; afterwards it has a record, whatever happened.

        Raises:
            BaseException: Whatever `watch` raises; the worker is ended then, and the run may be without a record.
        """
        self._spend("generating", run_dir, "generate", run=str(run_dir.path.resolve()))

    def load(self, fields: Mapping[str, Any]) -> None:
        """Loads the model of a specification, so that the first image does not wait for it."""
        self._spend("loading", None, "load", fields=dict(fields))

    def stop(self) -> None:
        """Ends the process, if there is one: its memory and device are free when this returns."""
        if self._connection is not None:
            self._drop(self._connection)

    def _spend(self, status: WorkerStatus, run_dir: RunDir | None, op: str, **values: object) -> None:
        try:
            for start in range(MAX_STARTS):
                try:
                    connection = self._connected(run_dir)
                    self._change(status)
                    connection.send(op, **values)
                    self._await_answer(connection, run_dir)
                    break
                except WorkerError:
                    # A worker that was leaving when the order came has begun nothing, so a new one may.
                    if start + 1 == MAX_STARTS or run_dir is None or _was_begun(run_dir):
                        raise
            self.last_error = None
        except RunnersError as error:
            self._failed(run_dir, error)
        except BaseException:
            self.stop()
            raise
        self.status = "idle" if self._connection is not None else "stopped"

    def _failed(self, run_dir: RunDir | None, error: RunnersError) -> None:
        """The worker could not be started or broke down: the page shows why, and the run gets its record."""
        self.last_error = None if isinstance(error, Cancelled) else error
        # The folder may be gone: then there is nowhere to write a record, and the queue goes on.
        with suppress(OSError):
            if run_dir is not None and not run_dir.has_record():
                status: Status = "cancelled" if isinstance(error, Cancelled) else "failed"
                write_final(run_dir, failure_record(run_dir, status, error))

    def _change(self, status: WorkerStatus) -> None:
        self.status = status
        self._watch()

    def _connected(self, run_dir: RunDir | None) -> "_Connection":
        if self.is_running() and self._connection is not None:
            return self._connection
        self._change("starting")
        connection = self._connection = _Connection(self._log_path)
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while True:
            message = connection.receive()
            if message is not None and message.get("v") != PROTOCOL_VERSION:
                self._drop(connection)
                raise WorkerError("worker-protocol", theirs=message.get("v"), ours=PROTOCOL_VERSION)
            if message is not None and message.get("event") == "ready":
                return connection
            if connection.process.poll() is not None:
                raise self._death(connection)
            self._watch()
            if run_dir is not None and run_dir.cancel_asked():
                # The start goes on; the next image finds it further.
                raise Cancelled
            if time.monotonic() > deadline_s:
                self._drop(connection)
                raise WorkerError("worker-not-answering", timeout_s=START_TIMEOUT_S)

    def _await_answer(self, connection: "_Connection", run_dir: RunDir | None) -> None:
        """Waits for "done"; ends the worker when it dies or does not heed a cancel within 3 seconds."""
        asked_s: float | None = None
        while True:
            message = connection.receive()
            if message is not None and message.get("id") == connection.last_id:
                if message.get("event") == "done":
                    return
                raise WorkerError("unexpected", type="protocol", text=str(message.get("reason")))
            if message is None and connection.process.poll() is not None:
                raise self._death(connection)
            self._watch()
            if run_dir is not None and run_dir.cancel_asked():
                asked_s = asked_s or time.monotonic()
                if time.monotonic() - asked_s > CANCEL_GRACE_S:
                    self._drop(connection)
                    raise Cancelled

    def _death(self, connection: "_Connection") -> WorkerError:
        self._drop(connection)
        return WorkerError("worker-died", how=describe_exit(connection.process.returncode))

    def _drop(self, connection: "_Connection") -> None:
        connection.close()
        self._connection = None
        self.status = "stopped"


def _was_begun(run_dir: RunDir) -> bool:
    return run_dir.has_record() or run_dir.latest_event("started") is not None


class _Connection:
    """One worker process and its two pipes."""

    def __init__(self, log_path: Path) -> None:
        request_read, self._request_write = os.pipe()
        self._answer_read, answer_write = os.pipe()
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "runners.worker", str(request_read), str(answer_write)],
                cwd=PROJECT_DIR,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(request_read, answer_write),
                start_new_session=True,
            )
        os.close(request_read)
        os.close(answer_write)
        os.set_blocking(self._request_write, False)
        self.last_id = ""
        self._count = 0
        self._buffer = b""

    def send(self, op: str, **values: object) -> None:
        self._count += 1
        self.last_id = str(self._count)
        line = json.dumps({"v": PROTOCOL_VERSION, "id": self.last_id, "op": op, **values}).encode() + b"\n"
        # It may have died, or read nothing for long; whoever waits for the answer finds out, with its exit status.
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self._request_write, line)

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None after a moment; what is not a message is passed over."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._answer_read], [], [], POLL_S)
            if not ready:
                return None
            chunk = os.read(self._answer_read, 65536)
            if not chunk:
                # Closed: the process is ending. Do not spin while it does.
                time.sleep(POLL_S)
                return None
            self._buffer = (self._buffer + chunk)[-MAX_BUFFER_BYTES:]
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    def close(self) -> None:
        """Ends the process and closes the pipes."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._request_write)
        os.close(self._answer_read)


MAX_BUFFER_BYTES = 2**20
"""More than this without a line's end is rubbish."""
