"""The other end of the generation worker: queues run folders, starts and restarts the worker, enforces cancelling."""

import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from runners.errors import Cancelled, RunnersError, WorkerError
from runners.execute import failure_record
from runners.launch import CANCEL_GRACE_S, child_environment, describe_exit, record_lost_runs
from runners.models import absolute_weights, check_weights
from runners.paths import PROJECT_DIR
from runners.records import Status
from runners.registry import make_spec
from runners.rundir import RunDir, create_run
from runners.worker import PROTOCOL_VERSION

START_TIMEOUT_S = 180.0
"""Importing torch and diffusers on a slow disk takes a while."""
POLL_S = 0.1


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """One look at the worker."""

    status: Literal["stopped", "starting", "idle", "generating"]
    run_id: str | None = None
    """The run that goes on now."""
    waiting: tuple[str, ...] = ()
    """Runs that wait for it, in order."""
    last_error: RunnersError | None = None
    """Why the worker stopped last time, until an image succeeds again."""


class GenerationWorker:
    """Owns one worker process; every method may be called from any thread and returns at once."""

    def __init__(self, runs_dir: Path, log_path: Path | None = None) -> None:
        """Starts the thread that feeds the worker; the worker itself starts with the first image, or `warm_up`.

        Args:
            runs_dir: Where run folders are made.
            log_path: What the worker prints outside of any run; beside `runs_dir` when None.
        """
        self._runs_dir = runs_dir
        self._log_path = log_path or runs_dir.parent / "worker.log"
        self._orders: queue.Queue[RunDir | Literal["warm-up", "unload", "close"]] = queue.Queue()
        self._lock = threading.Lock()
        self._state = WorkerState(status="stopped")
        self._connection: _Connection | None = None
        self._held: dict[str, IO[str]] = {}
        record_lost_runs(runs_dir)
        self._thread = threading.Thread(target=self._serve, daemon=True, name="generation-worker-client")
        self._thread.start()

    def submit(self, fields: Mapping[str, Any], *, preset: str | None = None) -> RunDir:
        """Checks a text-to-image specification, makes its run folder and queues it.

        Raises:
            SpecError: A field is out of range, or `runs_dir` cannot be written.
            WeightsError: The weights folder is missing, not a pipeline, or unsafe.
        """
        spec = make_spec("text-to-image", fields, preset)
        check_weights(spec.weights)
        kept = {**fields, "weights": absolute_weights(spec.weights)}
        run_dir = create_run(self._runs_dir, "text-to-image", kept, preset=preset, source="playground")
        with self._lock:
            # Held until it has ended: a run that waits when the app dies is recorded as lost by the next start.
            self._held[run_dir.run_id] = run_dir.hold()
            self._state = replace(self._state, waiting=(*self._state.waiting, run_dir.run_id))
        self._orders.put(run_dir)
        return run_dir

    def cancel(self, run_id: str) -> None:
        """Asks a run to stop at its next step; it is ended by force after 3 seconds."""
        run_dir = RunDir(self._runs_dir / run_id)
        if run_dir.path.is_dir():
            run_dir.ask_to_cancel()

    def state(self) -> WorkerState:
        """What the worker does now."""
        with self._lock:
            return self._state

    def warm_up(self) -> None:
        """Starts the worker, so that the first image does not wait for it."""
        self._orders.put("warm-up")

    def unload(self) -> None:
        """Lets the worker forget its pipeline and give the memory back."""
        self._orders.put("unload")

    def close(self) -> None:
        """Ends the worker and the thread; a run that goes on is lost and recorded so."""
        self._orders.put("close")
        with self._lock:
            connection = self._connection
        if connection is not None:
            connection.kill()
        self._thread.join(timeout=10)

    def _change(self, **values: Any) -> None:
        with self._lock:
            self._state = replace(self._state, **values)

    def _serve(self) -> None:
        while (order := self._orders.get()) != "close":
            if isinstance(order, RunDir):
                with self._lock:
                    waiting = tuple(item for item in self._state.waiting if item != order.run_id)
                    self._state = replace(self._state, waiting=waiting, run_id=order.run_id)
            try:
                self._carry_out(order)
            except RunnersError as error:
                self._failed(order, error)
            except Exception as error:  # outermost frame of the thread: without it no image would be made any more
                self._failed(order, RunnersError("unexpected", type=type(error).__name__, text=str(error)))
            if isinstance(order, RunDir) and (held := self._held.pop(order.run_id, None)):
                held.close()
            self._change(status="idle" if self._connection is not None else "stopped", run_id=None)
        if self._connection is not None:
            self._drop(self._connection)
        self._change(status="stopped")

    def _failed(self, order: "RunDir | str", error: RunnersError) -> None:
        """The worker could not be started or broke down: the page shows why, and the run gets its record."""
        self._change(last_error=None if isinstance(error, Cancelled) else error)
        # The folder may be gone, or the disk full: then there is nowhere to write a record, and the queue goes on.
        with suppress(RunnersError, OSError):
            if isinstance(order, RunDir) and not order.has_record():
                status: Status = "cancelled" if isinstance(error, Cancelled) else "failed"
                order.write_record(failure_record(order, status, error))

    def _carry_out(self, order: "RunDir | str") -> None:
        if isinstance(order, RunDir) and order.cancel_asked():
            raise Cancelled
        if order == "unload" and self._connection is None:
            return
        connection = self._connected(order)
        if order == "warm-up":
            return
        if not isinstance(order, RunDir):
            connection.send("unload")
            self._await_answer(connection, None)
            return
        try:
            self._generate(connection, order)
        except WorkerError:
            if order.has_record() or order.latest_event("started") is not None:
                raise
            # It had died while it was idle, before it saw this order: nothing was begun, so a new one may begin it.
            self._generate(self._connected(order), order)
        self._change(last_error=None)

    def _generate(self, connection: "_Connection", run_dir: RunDir) -> None:
        self._change(status="generating")
        connection.send("generate", run=str(run_dir.path.resolve()))
        self._await_answer(connection, run_dir)

    def _connected(self, order: "RunDir | str") -> "_Connection":
        if self._connection is not None and self._connection.process.poll() is None:
            return self._connection
        if self._connection is not None:
            self._drop(self._connection)
        self._change(status="starting")
        connection = _Connection(self._log_path)
        with self._lock:
            self._connection = connection
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while True:
            message = connection.receive()
            if message is not None and message.get("event") == "ready":
                return connection
            if message is not None and message.get("v") != PROTOCOL_VERSION:
                self._drop(connection)
                raise WorkerError("worker-protocol", theirs=message.get("v"), ours=PROTOCOL_VERSION)
            if connection.process.poll() is not None:
                raise self._death(connection)
            if isinstance(order, RunDir) and order.cancel_asked():
                # The start goes on in the background; the next image finds it further.
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
                if message["event"] == "done":
                    return
                raise WorkerError("unexpected", type="protocol", text=str(message.get("reason")))
            if message is None and connection.process.poll() is not None:
                raise self._death(connection)
            if run_dir is not None and run_dir.cancel_asked():
                asked_s = asked_s or time.monotonic()
                if time.monotonic() - asked_s > CANCEL_GRACE_S:
                    self._drop(connection)
                    raise Cancelled

    def _death(self, connection: "_Connection") -> WorkerError:
        self._drop(connection)
        return WorkerError("worker-died", how=describe_exit(connection.process.returncode))

    def _drop(self, connection: "_Connection") -> None:
        connection.kill()
        connection.close_pipes()
        with self._lock:
            self._connection = None


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
        self.last_id = ""
        self._count = 0
        self._buffer = b""

    def send(self, op: str, **values: object) -> None:
        self._count += 1
        self.last_id = str(self._count)
        line = json.dumps({"v": PROTOCOL_VERSION, "id": self.last_id, "op": op, **values}).encode() + b"\n"
        # It may have died; whoever waits for the answer finds out, with its exit status.
        with suppress(BrokenPipeError):
            os.write(self._request_write, line)

    def receive(self) -> dict[str, Any] | None:
        """The next message, or None after a tenth of a second; what is not a message is passed over."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._answer_read], [], [], POLL_S)
            if not ready:
                return None
            chunk = os.read(self._answer_read, 65536)
            if not chunk:
                # Closed: the process is ending. Do not spin while it does.
                time.sleep(POLL_S)
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            return None
        return message if isinstance(message, dict) else None

    def kill(self) -> None:
        """Ends the process; may be called from any thread, and again."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close_pipes(self) -> None:
        """Only the thread that reads them may close them."""
        os.close(self._request_write)
        os.close(self._answer_read)
