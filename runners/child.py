"""The process of one run: `python -m runners.child RUN_DIR LIFELINE_FD`, started by `runners.launch`.

It prints to the run's log. A refusal (nothing ran) is left in `refusal.json` for the parent and told by the exit code;
anything else ends in the record. When the lifeline's other end closes, the parent is dead and this process ends too.
"""

import os
import sys
import threading
from pathlib import Path

from runners.errors import RunnersError
from runners.execute import execute
from runners.records import write_json_atomically
from runners.rundir import RunDir

EXIT_REFUSED = 5


def end_with_parent(descriptor: int) -> None:
    """Ends this process when the pipe's other end closes, whatever it is doing."""

    def wait() -> None:
        while os.read(descriptor, 1024):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="lifeline").start()


def main(run_path: str, lifeline: str) -> int:
    """Runs what the folder asks for; returns the exit status."""
    end_with_parent(int(lifeline))
    run_dir = RunDir(Path(run_path))
    try:
        record = execute(run_dir)
    except RunnersError as refusal:
        document = {"type": type(refusal).__name__, "message_id": refusal.message_id, "params": refusal.params}
        write_json_atomically(run_dir.path / "refusal.json", document)
        return EXIT_REFUSED
    return 0 if record.status == "ok" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
