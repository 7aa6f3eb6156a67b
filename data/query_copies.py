"""The copies of the database that questions of a person are asked of, in a process that holds the database itself."""

import tempfile
import threading
import time
from pathlib import Path

from data.store import Store

FRESH_S = 15.0
KEPT = 2
"""The newest, and the one before: a question may still be opening it."""


class QueryCopies:
    """Makes a copy when somebody asks and the last one is old. Safe to share between threads; close it."""

    def __init__(self, store: Store) -> None:
        """Takes the one owner of the database."""
        self._store = store
        self._folder = tempfile.TemporaryDirectory(prefix="likeforlike-query-")
        self._lock = threading.Lock()
        self._copies: list[tuple[float, Path]] = []
        self._count = 0

    def latest(self) -> Path:
        """A copy that is at most 15 s old.

        Raises:
            StoreError: The database fails and cannot be made anew.
            OSError: There is no room for a copy.
        """
        with self._lock:
            if not self._copies or time.monotonic() - self._copies[-1][0] > FRESH_S:
                self._count += 1
                path = Path(self._folder.name) / f"{self._count}.duckdb"
                self._store.ingest()
                self._store.snapshot(path)
                self._copies.append((time.monotonic(), path))
            while len(self._copies) > KEPT:
                self._copies.pop(0)[1].unlink(missing_ok=True)
            return self._copies[-1][1]

    def close(self) -> None:
        """Removes the copies."""
        with self._lock:
            self._copies.clear()
            self._folder.cleanup()
