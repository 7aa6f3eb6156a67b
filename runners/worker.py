"""The generation worker: a long-lived process that keeps the last pipeline loaded.

`python -m runners.worker READ_FD WRITE_FD` speaks JSON lines over two descriptors of its own, never stdout:

    -> {"v": 1, "id": "7", "op": "generate", "run": "/…/runs/<run id>"}
    <- {"v": 1, "id": "7", "event": "done", "status": "ok"}
    -> {"v": 1, "id": "8", "op": "unload"}
    <- {"v": 1, "id": "8", "event": "done", "status": "ok"}

At the start it says {"v": 1, "event": "hello", "pid": …}, and when the libraries are imported {"v": 1, "event":
"ready"}. Each request is a run folder: progress, previews, log, images and record are read there by whoever is
interested; cancelling is the file `cancel` in it. When the request pipe closes, the worker ends.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from runners.errors import RunnersError
from runners.execute import execute, failure_record
from runners.rundir import RunDir

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 1_000_000


def main(read_fd: int, write_fd: int) -> None:
    """Serves requests until the pipe closes."""
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    _say(write_fd, event="hello", pid=os.getpid())
    threading.Thread(target=_read, args=(read_fd, write_fd, requests), daemon=True, name="requests").start()
    # The import takes seconds; done before the first request, it is not part of any image's waiting time.
    from diffusers import StableDiffusionPipeline  # noqa: F401

    _say(write_fd, event="ready")
    models: dict[str, Any] = {}
    while True:
        request = requests.get()
        if request["op"] == "generate":
            status = _generate(RunDir(Path(request["run"])), models)
        else:
            models.clear()
            status = "ok"
        _say(write_fd, id=request["id"], event="done", status=status)


def _read(read_fd: int, write_fd: int, requests: "queue.Queue[dict[str, Any]]") -> None:
    """Puts whole, valid requests into the queue; ends the process when the other side is gone."""
    with os.fdopen(read_fd, "rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            try:
                request = json.loads(line)
                version, op, identifier = request["v"], request["op"], request["id"]
            except (ValueError, TypeError, KeyError) as error:
                _say(write_fd, id=None, event="error", reason=f"not a request: {error}")
                continue
            if version != PROTOCOL_VERSION:
                _say(write_fd, id=identifier, event="error", reason=f"protocol {version} is not {PROTOCOL_VERSION}")
            elif op not in ("generate", "unload") or (op == "generate" and not isinstance(request.get("run"), str)):
                _say(write_fd, id=identifier, event="error", reason=f"no such operation: {op}")
            else:
                requests.put(request)
    os._exit(0)


def _generate(run_dir: RunDir, models: dict[str, Any]) -> str:
    try:
        with _printing_to(run_dir.log_path):
            return execute(run_dir, models).status
    except RunnersError as refusal:
        error = refusal
    except OSError as problem:
        # The folder was removed meanwhile, or the disk is full: this run ends, the worker goes on.
        error = RunnersError("unexpected", type=type(problem).__name__, text=str(problem))
    # A person waits for this one in a page: a refusal becomes a record that says why.
    with suppress(RunnersError, OSError):
        run_dir.write_record(failure_record(run_dir, "failed", error))
    return "failed"


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
    main(int(sys.argv[1]), int(sys.argv[2]))
