"""Starts one run in a process of its own, watches it, and writes its record when it cannot."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

from runners.errors import Cancelled, RunnersError, SpecError
from runners.execute import failure_record, write_final
from runners.paths import PROJECT_DIR
from runners.records import Record, Status
from runners.rundir import RunDir, list_runs

CANCEL_GRACE_S = 3.0
POLL_S = 0.05
START_TIMEOUT_S = 600.0
"""Importing torch from a slow network disk takes minutes; longer than this, something hangs."""
ACCEPTING_S = 10.0
"""A folder younger than this may not be held yet by whoever is making it."""


def run_in_child(run_dir: RunDir, watch: Callable[[], None] = lambda: None) -> Record:
    """Runs to the end, and returns the record.

    Args:
        run_dir: A folder made by `runners.rundir.create_run`; its request's `timeout_s` is enforced from the moment at
            which the run has its device.
        watch: Called some 20 times a second while the run goes on. It cancels by `run_dir.ask_to_cancel`, and ends the
            run at once by raising.
    """
    child: subprocess.Popen[bytes] | None = None
    ended: tuple[Status, RunnersError] | None = None
    read_end, write_end = os.pipe()
    try:
        with _log(run_dir) as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "runners.child", str(run_dir.path.resolve()), str(read_end)],
                cwd=PROJECT_DIR,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(read_end,),
                start_new_session=True,
            )
        ended = _wait(run_dir, child, watch)
    finally:
        os.close(read_end)
        os.close(write_end)
        if child is not None:
            # Its own processes too, which may outlive it: data loaders, the ranks of a distributed run.
            kill_group(child)
    if not run_dir.has_record():
        status, error = ended or ("failed", RunnersError("child-died", how=describe_exit(child.returncode)))
        write_final(run_dir, failure_record(run_dir, status, error))
    return run_dir.record()


def _log(run_dir: RunDir) -> IO[bytes]:
    try:
        return run_dir.log_path.open("ab")
    except OSError:
        # A run does not fail for want of a log: it may be a folder, or the disk may be full.
        return Path(os.devnull).open("ab")


def child_environment() -> dict[str, str]:
    """The environment of a process that measures: this one's, with defaults that must be set before Python starts."""
    interpreter_dir = str(Path(sys.executable).parent)
    defaults = {
        # Threads that spin at a barrier make torch several times slower wherever anything else uses the cores.
        "OMP_WAIT_POLICY": "PASSIVE",
        # optimum-habana still assumes lazy mode; newer Gaudi software defaults to eager. Ignored elsewhere.
        "PT_HPU_LAZY_MODE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return {
        **defaults,
        **os.environ,
        # optimum-habana asks the first `pip` on PATH which Gaudi plug-in is installed: it must be this interpreter's.
        "PATH": os.pathsep.join([interpreter_dir, os.environ.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
    }


def _wait(
    run_dir: RunDir, child: subprocess.Popen[bytes], watch: Callable[[], None]
) -> tuple[Status, RunnersError] | None:
    """Waits for the child; returns why it was stopped, or None when it ended by itself."""
    limit = _Limit(run_dir)
    asked_s: float | None = None
    while not _has_ended(child):
        watch()
        time.sleep(POLL_S)
        now = time.monotonic()
        if asked_s is None and run_dir.cancel_asked():
            asked_s = now
        if asked_s is not None and now - asked_s > CANCEL_GRACE_S:
            kill_group(child)
            return "cancelled", Cancelled()
        if (error := limit.passed()) is not None:
            kill_group(child)
            return "timeout", error
    return None


class _Limit:
    """The time that a run may take: to start up, and then, from the moment it has its device, for its work.

    Waiting for a device that another process has counts for neither.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._phase = ""
        self._since_s = time.monotonic()
        try:
            self._timeout_s = run_dir.request().timeout_s
        except SpecError:
            self._timeout_s = None  # The run itself will say what is wrong with its specification.

    def passed(self) -> RunnersError | None:
        """What to record when the time is over, or None."""
        if self._phase != "started":
            self._look()
        spent_s = time.monotonic() - self._since_s
        if self._phase == "started" and self._timeout_s is not None and spent_s > self._timeout_s:
            return RunnersError("timeout", timeout_s=self._timeout_s)
        if not self._phase and spent_s > START_TIMEOUT_S:
            return RunnersError("not-starting", timeout_s=START_TIMEOUT_S)
        return None

    def _look(self) -> None:
        latest = [event["kind"] for event in self._run_dir.events() if event.get("kind") in ("waiting", "started")]
        if latest and latest[-1] != self._phase:
            self._phase, self._since_s = latest[-1], time.monotonic()


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without collecting it: until then no other program can be given its process id."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Ends a child and everything that it started, at once."""
    if child.returncode is None:
        # macOS answers with a PermissionError where only the ended child itself is left.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def describe_exit(returncode: int) -> str:
    """How a process ended, in words: "exit status 1", or the signal's name and what it usually means."""
    if returncode >= 0:
        return f"exit status {returncode}"
    name = signal.Signals(-returncode).name if -returncode in {s.value for s in signal.Signals} else str(-returncode)
    hint = ": killed from outside, often because memory ran out" if -returncode == signal.SIGKILL else ""
    return f"signal {name}{hint}"


def record_lost_runs(runs_dir: Path, waiting: Collection[str] = ()) -> list[str]:
    """Writes the record of every run that has none and that no process carries out or keeps waiting any more.

    A folder that is damaged is passed over, so that one broken run never keeps others from starting.

    Args:
        runs_dir: Where run folders live.
        waiting: The ids of runs that wait in the queue.

    Returns:
        The ids of the runs that are now recorded as lost.
    """
    lost = []
    for run_dir in list_runs(runs_dir):
        if run_dir.run_id not in waiting and record_if_lost(run_dir):
            lost.append(run_dir.run_id)
    return lost


def record_if_lost(run_dir: RunDir) -> bool:
    """Writes the record of a run that nobody carries out any more; returns whether it did."""
    try:
        if run_dir.has_record() or run_dir.is_alive():
            return False
        # The age is negative after the clock was set back: such a run was not made this moment.
        if run_dir.latest_event("started") is None and 0 <= run_dir.age_s() < ACCEPTING_S:
            return False
        run_dir.write_record(failure_record(run_dir, "lost", RunnersError("lost")))
    except (RunnersError, OSError, ValueError, TypeError, KeyError) as error:
        sys.stderr.write(f"The run folder {run_dir.path} is damaged and was passed over: {error}\n")
        return False
    return True
