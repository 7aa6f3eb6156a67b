"""The process of one run: `python -m runners.child RUN_DIR LIFELINE_FD`, started by `runners.launch`.

It prints to the run's log, and everything that happens ends in the record. When the lifeline's other end closes, the
parent is dead and this process ends too.
"""

import os
import sys
import threading
from pathlib import Path

from runners.execute import execute
from runners.rundir import RunDir


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
    return 0 if execute(RunDir(Path(run_path))).status == "ok" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
