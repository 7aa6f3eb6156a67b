"""A training on several devices of this machine: one process each, started by `python -m torch.distributed.run`.

The run's own process keeps the lease, watches for a cancel, and writes the record; the first of the processes hands it
the outcome in a file. In each of them the workload's own code runs, as on one device.
"""

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runners import errors
from runners.device import select
from runners.errors import Cancelled, DeviceUnavailable, RunnersError, WorkloadFailed
from runners.execute import Outcome, RunContext
from runners.records import Audit, Conditions, Metric, Phase, Series
from runners.registry import load_function, make_spec
from runners.rundir import RunDir

RESULT = "LIKEFORLIKE_RESULT"
"""Variable with the file into which the first process writes; where it is set, this process is one of several."""
POLL_S = 0.1
END_WAIT_S = 3.0


def is_one_of_several() -> bool:
    """Whether this process was started by `run_on_devices`."""
    return RESULT in os.environ


def run_on_devices(spec: Any, context: RunContext) -> Outcome:
    """Carries the run out on `spec.devices` devices and returns the first process's outcome.

    Raises:
        Cancelled: Somebody asked the run to stop.
        DeviceUnavailable: There are not that many devices.
        RunnersError: What one of the processes ended with.
    """
    _check_count(spec.devices, context)
    with TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nnodes=1"),
            *(f"--nproc-per-node={spec.devices}", "-m", "runners.workloads.several_devices", str(context.run_dir.path)),
        ]
        variables = {**os.environ, RESULT: str(result)}
        # The launcher would give each process a single thread.
        threads = str(max(1, (context.device.info().cores or 1) // spec.devices))
        variables.setdefault("OMP_NUM_THREADS", threads)
        child = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL)
        try:
            while child.poll() is None:
                context.check_cancelled()
                time.sleep(POLL_S)
        finally:
            _end(child)
        return _outcome(result, child.returncode, context)


def _check_count(devices: int, context: RunContext) -> None:
    if context.device.kind == "cpu":
        here = context.device.info().cores or 1
    elif context.device.kind in ("cuda", "xpu"):
        import torch

        here = getattr(torch, context.device.kind).device_count()
    else:
        here = 1
    if devices > here:
        raise DeviceUnavailable("too-few-devices", wanted=devices, here=here, kind=context.device.kind)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """The launcher passes a SIGTERM on to its processes; those that it leaves behind end by themselves."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()


def _outcome(result: Path, returncode: int, context: RunContext) -> Outcome:
    context.check_cancelled()
    if not result.exists():
        raise WorkloadFailed("devices-ended", returncode=returncode)
    document = json.loads(result.read_text(encoding="utf-8"))
    if "error" in document:
        error = document["error"]
        kind = getattr(errors, str(error["type"]), None)
        if isinstance(kind, type) and issubclass(kind, RunnersError):
            raise kind(error["message_id"], **error["params"])
        raise RuntimeError(error["text"])  # what a library raised: told apart as on one device
    return outcome_from_json(document)


def outcome_from_json(document: Mapping[str, Any]) -> Outcome:
    """What `_write_outcome` wrote, as it was."""
    metrics = [
        Metric(**{**item, "interval": tuple(item["interval"]) if item["interval"] else None})
        for item in document["metrics"]
    ]
    audit = document["audit"]
    return Outcome(
        conditions=Conditions(**document["conditions"]),
        phases=tuple(Phase(**item) for item in document["phases"]),
        series=tuple(Series(**{**item, "values": tuple(item["values"])}) for item in document["series"]),
        metrics=tuple(metrics),
        audit=Audit(sync_policy=audit["sync_policy"], warnings=tuple(audit["warnings"])),
        details=document["details"],
    )


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Whole or not at all: the launcher ends the other processes as soon as one has failed."""
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(path)


def _end_with_parent() -> None:
    """The launcher starts each process in a session of its own, where a kill of its group does not reach it."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os._exit(1)


def main(run_path: str) -> int:
    """One of the processes."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    result, first = Path(os.environ[RESULT]), os.environ["RANK"] == "0"
    run_dir = RunDir(Path(run_path))
    try:
        request = run_dir.request()
        spec = make_spec(request.workload, request.fields)
        context = RunContext(run_dir=run_dir, device=select(spec.device), quiet=not first)
        outcome = load_function(request.workload)(spec, context)
    except Cancelled:
        return 1
    except RunnersError as error:
        told = {"type": type(error).__name__, "message_id": error.message_id, "params": error.params}
        _write(result, {"error": told})
        raise
    except Exception as error:  # outermost frame of this process: the run's own process makes the record of it
        _write(result, {"error": {"type": None, "text": f"{type(error).__name__}: {error}"}})
        raise
    if first:
        _write(result, dataclasses.asdict(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
