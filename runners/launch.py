"""Starts one run in a process of its own, watches it, and writes its record when it cannot."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from runners import errors
from runners.child import EXIT_REFUSED
from runners.errors import Cancelled, RunnersError
from runners.execute import failure_record
from runners.paths import PROJECT_DIR
from runners.records import Record, Status
from runners.rundir import RunDir, list_runs

CANCEL_GRACE_S = 3.0
POLL_S = 0.05
ACCEPTING_S = 10.0
"""A folder younger than this may not be held yet by whoever is making it."""


def run_in_child(run_dir: RunDir, watch: Callable[[], None] = lambda: None) -> Record:
    """Runs to the end, and returns the record.

    Args:
        run_dir: A folder made by `runners.rundir.create_run`; its request's `timeout_s` is enforced.
        watch: Called some 20 times a second while the run goes on. It cancels by `run_dir.ask_to_cancel`.

    Raises:
        RunnersError: The run was refused before it began; its folder is removed again.
    """
    timeout_s = run_dir.request().timeout_s
    child: subprocess.Popen[bytes] | None = None
    read_end, write_end = os.pipe()
    try:
        with run_dir.log_path.open("ab") as log:
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
        os.close(read_end)
        ended = _wait(run_dir, child, timeout_s, watch)
    finally:
        if child is not None and child.poll() is None:
            kill_group(child)
        os.close(write_end)
    if child.returncode == EXIT_REFUSED:
        raise _refusal(run_dir)
    if not run_dir.has_record():
        status, error = ended or ("failed", RunnersError("child-died", how=describe_exit(child.returncode)))
        run_dir.write_record(failure_record(run_dir, status, error))
    return run_dir.record()


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
    run_dir: RunDir, child: subprocess.Popen[bytes], timeout_s: float | None, watch: Callable[[], None]
) -> tuple[Status, RunnersError] | None:
    """Waits for the child; returns why it was stopped, or None when it ended by itself."""
    started_s = time.monotonic()
    asked_s: float | None = None
    while child.poll() is None:
        watch()
        time.sleep(POLL_S)
        now = time.monotonic()
        if asked_s is None and run_dir.cancel_asked():
            asked_s = now
        if asked_s is not None and now - asked_s > CANCEL_GRACE_S:
            kill_group(child)
            return "cancelled", Cancelled()
        if timeout_s is not None and now - started_s > timeout_s:
            kill_group(child)
            return "timeout", RunnersError("timeout", timeout_s=timeout_s)
    return None


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Ends a child and everything that it started, at once."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def describe_exit(returncode: int) -> str:
    """How a process ended, in words: "exit status 1", or the signal's name and what it usually means."""
    if returncode >= 0:
        return f"exit status {returncode}"
    name = signal.Signals(-returncode).name if -returncode in {s.value for s in signal.Signals} else str(-returncode)
    hint = ": killed from outside, often because memory ran out" if -returncode == signal.SIGKILL else ""
    return f"signal {name}{hint}"


def record_lost_runs(runs_dir: Path) -> list[str]:
    """Writes the record of every run that has none and that no process carries out or keeps waiting any more.

    A folder that is damaged is passed over, so that one broken run never keeps others from starting.

    Returns:
        The ids of the runs that are now recorded as lost.
    """
    lost = []
    for run_dir in list_runs(runs_dir):
        try:
            if run_dir.has_record() or run_dir.is_alive():
                continue
            if run_dir.latest_event("started") is None and run_dir.age_s() < ACCEPTING_S:
                continue
            error = RunnersError("lost")
            run_dir.write_record(failure_record(run_dir, "lost", error))
            lost.append(run_dir.run_id)
        except (RunnersError, OSError, ValueError, TypeError, KeyError) as error:
            sys.stderr.write(f"The run folder {run_dir.path} is damaged and was passed over: {error}\n")
    return lost


def _refusal(run_dir: RunDir) -> RunnersError:
    document = json.loads((run_dir.path / "refusal.json").read_text(encoding="utf-8"))
    shutil.rmtree(run_dir.path)
    error_class: type[RunnersError] = getattr(errors, document["type"], RunnersError)
    return error_class(document["message_id"], **document["params"])
