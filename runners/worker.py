"""The generation worker: a long-lived process that keeps the last pipeline loaded.

`python -m runners.worker READ_FD WRITE_FD` speaks JSON lines over two descriptors of its own, never stdout:

    -> {"v": 1, "id": "7", "op": "generate", "run": "/…/runs/<run id>"}
    <- {"v": 1, "id": "7", "event": "done", "status": "ok"}
    -> {"v": 1, "id": "8", "op": "load", "fields": {"weights": "bundled"}}
    <- {"v": 1, "id": "8", "event": "done", "status": "ok"}
    -> {"v": 1, "id": "9", "op": "unload"}
    <- {"v": 1, "id": "9", "event": "done", "status": "ok"}

At the start it says {"v": 1, "event": "hello", "pid": …}, and when the libraries are imported {"v": 1, "event":
"ready"}. Each request is a run folder: progress, previews, log, images and record are read there by whoever is
interested; cancelling is the file `cancel` in it. While a model is loaded the worker keeps the device's lease; it ends,
which alone frees every kind of device for certain, when another process wants the device and nothing goes on, when it
has been idle for the time given in `LIKEFORLIKE_WORKER_IDLE_S`, and when the request pipe closes.
"""

import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from runners.errors import RunnersError
from runners.execute import execute
from runners.lease import Lease
from runners.rundir import RunDir, create_run

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 1_000_000
LOOK_S = 0.2
"""How often an idle worker looks whether another process wants its device."""
DEFAULT_IDLE_S = 600.0
EXIT_IDLE, EXIT_WANTED = 10, 11
LOADING_FIELDS = {"prompt": "-"}
_OPERATIONS = {"generate": ("run", str), "load": ("fields", dict), "unload": ("op", str)}


def main(read_fd: int, write_fd: int) -> int:
    """Serves requests until the pipe closes or nobody needs the worker; returns the exit status."""
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    _say(write_fd, event="hello", pid=os.getpid())
    threading.Thread(target=_read, args=(read_fd, write_fd, requests), daemon=True, name="requests").start()
    # The import takes seconds; done before the first request, it is not part of any image's waiting time.
    from diffusers import StableDiffusionPipeline  # noqa: F401

    _say(write_fd, event="ready")
    models: dict[str, Any] = {}
    leases: dict[str, Lease] = {}
    idle_s, last_s = idle_limit_s(), time.monotonic()
    while True:
        try:
            request = requests.get(timeout=LOOK_S)
        except queue.Empty:
            if any(lease.wanted() for lease in leases.values()):
                return EXIT_WANTED
            if time.monotonic() - last_s > idle_s:
                return EXIT_IDLE
            continue
        status = _carry_out(request, models, leases)
        last_s = time.monotonic()
        _say(write_fd, id=request["id"], event="done", status=status)


def idle_limit_s() -> float:
    """After how many idle seconds a worker ends; `LIKEFORLIKE_WORKER_IDLE_S` sets it."""
    try:
        return max(1.0, float(os.environ.get("LIKEFORLIKE_WORKER_IDLE_S") or DEFAULT_IDLE_S))
    except ValueError:
        return DEFAULT_IDLE_S


def _read(read_fd: int, write_fd: int, requests: "queue.Queue[dict[str, Any]]") -> None:
    """Puts whole, valid requests into the queue; ends the process when the other side is gone."""
    with os.fdopen(read_fd, "rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            try:
                request = json.loads(line)
                version, op, identifier = request["v"], request["op"], request["id"]
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                _say(write_fd, id=None, event="error", reason=f"not a request: {error}")
                continue
            name, kind = _OPERATIONS.get(op, ("", str)) if isinstance(op, str) else ("", str)
            if version != PROTOCOL_VERSION:
                _say(write_fd, id=identifier, event="error", reason=f"protocol {version} is not {PROTOCOL_VERSION}")
            elif not name or not isinstance(request.get(name), kind):
                _say(write_fd, id=identifier, event="error", reason=f"no such operation: {op}")
            else:
                requests.put(request)
    os._exit(0)


def _carry_out(request: dict[str, Any], models: dict[str, Any], leases: dict[str, Lease]) -> str:
    if request["op"] == "generate":
        return _generate(RunDir(Path(request["run"])), models, leases)
    if request["op"] == "load":
        return _load(request["fields"], models, leases)
    models.clear()
    while leases:
        leases.popitem()[1].release()
    return "ok"


def _generate(run_dir: RunDir, models: dict[str, Any], leases: dict[str, Lease]) -> str:
    # OSError: the folder was removed meanwhile, or the disk is full. This run ends, the worker goes on.
    with suppress(RunnersError, OSError), _printing_to(run_dir.log_path):
        return execute(run_dir, models, leases).status
    return "failed"


def _load(fields: dict[str, Any], models: dict[str, Any], leases: dict[str, Lease]) -> str:
    """Loads a model before anybody asks for an image. Its run folder is of no interest to anybody."""
    from runners.workloads.text_to_image import load_ahead

    with tempfile.TemporaryDirectory() as folder:
        run_dir = create_run(Path(folder), "text-to-image", {**LOADING_FIELDS, **fields})
        record = execute(run_dir, models, leases, work=load_ahead)
    if record.error is not None:
        sys.stderr.write(f"loading ahead: {record.error.message}\n")
    return record.status


@contextmanager
def _printing_to(path: Path) -> Iterator[None]:
    """Sends everything that is printed, by C code too, to a run's log."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, saved in zip((1, 2), kept, strict=True):
            os.dup2(saved, descriptor)
            os.close(saved)


def _say(write_fd: int, **values: object) -> None:
    os.write(write_fd, json.dumps({"v": PROTOCOL_VERSION, **values}).encode() + b"\n")


if __name__ == "__main__":
    # At once, without the clean-up of libraries: their threads may hang in it, and the device must become free.
    os._exit(main(int(sys.argv[1]), int(sys.argv[2])))
