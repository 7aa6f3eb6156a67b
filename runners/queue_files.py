"""What the queue looks like on disk, below `<runs_dir>/.queue/`; no process is started here.

waiting/<priority>-<position>-<run id>   one empty file per waiting run: the name says all, so none can be cut in half
status.json                              what the dispatcher does now, replaced at every change
paused, load.json, unload, stop          orders to the dispatcher
dispatcher.lock, clients.lock            held by the dispatcher; shared by whoever watches
wake                                     a named pipe: one byte in it makes the dispatcher look at once
dispatcher.log, worker.log               what the processes printed outside of any run
reserve                                  see runners.reserve
"""

import fcntl
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIVE, BENCHMARK = 0, 1
"""Priorities: an image that a person waits for goes before benchmarks that wait, never before one that runs."""
POSITION_STEP = 2**20
"""Room between neighbours, so that one can be moved in between without touching the others."""
MAX_POSITION = 10**15 - 1
_NAME = re.compile(r"([01])-(\d{15})-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


@dataclass(frozen=True, kw_only=True, order=True)
class Entry:
    """One waiting run."""

    priority: int
    position: int
    run_id: str

    @property
    def file_name(self) -> str:
        """The entry's name on disk; sorting the names gives the order."""
        return f"{self.priority}-{self.position:015d}-{self.run_id}"


class QueueFiles:
    """The queue's folder. Cheap to make; holds nothing open."""

    def __init__(self, runs_dir: Path) -> None:
        """Takes the folder of run folders; nothing is made yet."""
        self.runs_dir = runs_dir
        self.folder = runs_dir / ".queue"
        self.waiting_dir = self.folder / "waiting"

    def make(self) -> None:
        """Makes the folders.

        Raises:
            OSError: They cannot be written.
        """
        self.waiting_dir.mkdir(parents=True, exist_ok=True)

    def entries(self) -> list[Entry]:
        """All waiting runs in order; files with other names are passed over."""
        try:
            names = sorted(path.name for path in self.waiting_dir.iterdir())
        except OSError:
            return []
        found = [_NAME.fullmatch(name) for name in names]
        return [Entry(priority=int(m[1]), position=int(m[2]), run_id=m[3]) for m in found if m]

    def startable(self) -> list[Entry]:
        """What may be started now: everything, or while the queue is paused what is no benchmark."""
        paused = (self.folder / "paused").exists()
        return [entry for entry in self.entries() if entry.priority == LIVE or not paused]

    def add(self, run_id: str, priority: int) -> Entry:
        """Puts a run at the end of its priority's line."""
        last = max((entry.position for entry in self.entries() if entry.priority == priority), default=0)
        entry = Entry(priority=priority, position=min(last + POSITION_STEP, MAX_POSITION), run_id=run_id)
        (self.waiting_dir / entry.file_name).touch()
        return entry

    def remove(self, entry: Entry) -> None:
        """Takes an entry out; one that is gone already is no matter."""
        (self.waiting_dir / entry.file_name).unlink(missing_ok=True)

    def move(self, entry: Entry, position: int) -> None:
        """Gives an entry another position; one that has started meanwhile is left alone."""
        moved = Entry(priority=entry.priority, position=position, run_id=entry.run_id)
        with suppress(FileNotFoundError):
            (self.waiting_dir / entry.file_name).rename(self.waiting_dir / moved.file_name)

    def wake(self) -> bool:
        """Makes the dispatcher look; False where none reads."""
        try:
            descriptor = os.open(self.folder / "wake", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        with suppress(BlockingIOError, BrokenPipeError):  # full: it will look anyway
            os.write(descriptor, b"!")
        os.close(descriptor)
        return True

    def dispatcher_runs(self) -> bool:
        """Whether a dispatcher serves this folder."""
        return _is_held(self.folder / "dispatcher.lock", fcntl.LOCK_SH)

    def has_clients(self) -> bool:
        """Whether an app or a shell watches."""
        return _is_held(self.folder / "clients.lock", fcntl.LOCK_EX)

    def status(self) -> dict[str, Any]:
        """What the dispatcher wrote last; empty where it cannot be read."""
        try:
            document = json.loads((self.folder / "status.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def write_status(self, status: dict[str, Any]) -> None:
        """Replaces what the dispatcher says about itself; on a full disk readers see the old for a while."""
        new = self.folder / "status.new"
        # Not flushed to the disk as records are: after a crash of the machine nobody wants it.
        with suppress(OSError):
            new.write_text(json.dumps(status), encoding="utf-8")
            new.replace(self.folder / "status.json")


def _is_held(path: Path, how: int) -> bool:
    try:
        with path.open("a") as file:
            fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
