"""The store: the only place that opens DuckDB, an index of the run folders.

DuckDB lets one process open a file for writing and shuts out every other, readers included. So one process has one
`Store`, with one connection. Each call works on a cursor of its own and drains its result before it returns: since
DuckDB 2.0 an open result owns its connection. Writes go one at a time behind a lock. Nothing is lost when the file is:
it is made again from the folders.
"""

import itertools
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import duckdb
import pyarrow as pa

from data import index_tables
from data.database_file import check_place, raise_if_busy, set_aside
from data.errors import StoreError
from data.gate import Gate
from data.ingest import (
    IngestReport,
    Signature,
    UnfinishedRun,
    folder_times,
    read_run,
    scan,
    signature_of,
    unfinished_runs,
    unreadable,
)
from data.questions import Questions
from data.record_rows import Rows
from runners import records
from runners.records import Record
from runners.rundir import RunDir, find_run

if TYPE_CHECKING:
    import pandas as pd

_GENERATIONS = itertools.count()
SCHEMA_VERSION = 6
"""Of the database. Raise it with every change of the SQL files or record_rows: older files are then made anew."""

DatabaseError = duckdb.Error
DatabaseConnection = duckdb.DuckDBPyConnection
REFUSED = (duckdb.DataError, duckdb.IntegrityError, pa.ArrowException, ValueError, TypeError, OverflowError)
"""What the database, or Arrow on the way to it, says of a value that it does not take."""
NO_EXTENSIONS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""Else a file of SQLite, named by mistake, makes DuckDB download what reads it."""
FRESH_NS = 2_000_000_000
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something that happened to the database and that a person may want to know."""

    message_id: str
    params: dict[str, Any]


class Store(Questions):
    """The index of one folder of runs; see `Questions` for what it can be asked.

    Safe to share between threads; close it, or use it in a `with` block.
    """

    def __init__(self, path: Path, runs_dir: Path) -> None:
        """Opens the database; one that is missing, broken or of another version is made anew from the run folders.

        Args:
            path: The database file; its folder is made if it is missing.
            runs_dir: The run folders that it indexes.

        Raises:
            StoreBusy: Another process has the file open.
            StoreError: The file cannot be opened or made.
        """
        self.path = path
        self.runs_dir = runs_dir
        self.notices: tuple[Notice, ...] = ()
        self._seen: dict[str, int] = {}
        self._lock = threading.RLock()
        self._generation = next(_GENERATIONS)
        self._gate = Gate()
        check_place(path)
        existed = path.exists()
        self._connection = self._open()
        super().__init__(lambda: self._connection.cursor())
        try:
            if self._mended(self._version) == _version_text():
                return
            report = self.rebuild()
        except BaseException:
            self._connection.close()  # else it stays locked for as long as somebody keeps the exception
            raise
        if existed and not self.notices:
            self.notices = (Notice(message_id="store-rebuilt-version", params={"path": str(path)}),)
        elif not existed and report.added:
            self.notices = (Notice(message_id="store-rebuilt-missing", params={"path": str(path)}),)

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes the database."""
        self.close()

    @property
    def generation(self) -> int:
        """Another number after every change of the index, and for every Store: an answer may be kept until then."""
        return self._generation

    def close(self) -> None:
        """Closes the database and frees it for other processes."""
        with self._lock:
            self._connection.close()

    def ingest(self) -> IngestReport:
        """Takes in what changed in the run folders since the last time; cheap when nothing did.

        Raises:
            StoreError: The run folders cannot be listed, or the database fails and cannot be made anew.
        """
        return self._mended(self._ingest)

    def _ingest(self) -> IngestReport:
        started = time.perf_counter()
        with self._lock:
            found, unfinished = scan(self.runs_dir)
            known = index_tables.signatures(self._connection.cursor())
            changed = [run_id for run_id, signature in found.items() if known.get(run_id) != signature]
            gone = [run_id for run_id in known if run_id not in found]
            self._delete(gone)
            for run_ids in index_tables.batches(changed):
                self._replace(run_ids, found)
        added = sum(run_id not in known for run_id in changed)
        return IngestReport(
            added=added,
            updated=len(changed) - added,
            removed=len(gone),
            unchanged=len(found) - len(changed),
            unfinished=unfinished,
            problems=tuple(super().problems()),
            duration_s=time.perf_counter() - started,
        )

    def ingest_changed(self) -> None:
        """Takes in the folders that were changed since the last call: enough for an app that looks every few seconds.

        A file that somebody edits in place, without renaming, is noticed by `ingest` only.

        Raises:
            StoreError: As for `ingest`.
        """
        self._mended(self._ingest_changed)

    def _ingest_changed(self) -> None:
        with self._lock:
            if not self._seen:
                self._ingest()
            now_ns = time.time_ns()
            times = folder_times(self.runs_dir)
            changed = [name for name, time_ns in times.items() if self._seen.get(name) != time_ns]
            signatures = {name: signature_of(self.runs_dir / name) for name in changed}
            found = {name: signature for name, signature in signatures.items() if signature is not None}
            self._delete([name for name in self._seen if name not in times])
            known = index_tables.signatures(self._connection.cursor()) if found else {}
            for run_ids in index_tables.batches([name for name in found if known.get(name) != found[name]]):
                self._replace(run_ids, found)
            # A folder may be changed again within the same tick of the clock: a fresh one is looked at once more.
            self._seen = {name: time_ns for name, time_ns in times.items() if now_ns - time_ns > FRESH_NS}

    def rebuild(self) -> IngestReport:
        """Forgets everything and reads all run folders again.

        Raises:
            StoreError: The run folders cannot be listed, or the database fails and cannot be made anew.
        """
        return self._mended(self._rebuild)

    def _rebuild(self) -> IngestReport:
        with self._lock:
            self._reset()
            return self._ingest()

    def record(self, run_id: str) -> Record:
        """The whole record of a run, read from its file.

        Raises:
            RecordError: There is no such run, or its record cannot be read.
        """
        return self.run_dir(run_id).record()

    def run_dir(self, run_id: str) -> RunDir:
        """The folder of a run: images, log, annotations.

        Raises:
            RecordError: There is no such run.
        """
        return find_run(self.runs_dir, run_id)

    def unfinished(self) -> list[UnfinishedRun]:
        """Runs without a record: waiting, running or lost."""
        return unfinished_runs(self.runs_dir)

    def annotate(self, run_id: str, **changes: object) -> None:
        """Changes note, tags, favourite or deleted of a run, in its folder and in the index.

        Raises:
            RecordError: There is no such run.
        """
        self.run_dir(run_id).annotate(**changes)
        self.ingest()

    def snapshot(self, target: Path) -> None:
        """Writes a consistent copy of the database to a file that does not exist yet.

        DuckDB copies it, since reading the file ourselves would, on closing it, free the lock that this process holds.
        """
        self._mended(lambda: self._copy_to(target))

    def _copy_to(self, target: Path) -> None:
        with self._lock:
            try:
                index_tables.copy_to(self._connection.cursor(), target)
            except duckdb.Error:
                target.unlink(missing_ok=True)  # half a copy, in the way of the next attempt
                raise

    def _frame(self, query: str, **params: object) -> "pd.DataFrame":
        ask = super()._frame
        return self._mended(lambda: ask(query, **params))

    def _rows(self, query: str, **params: object) -> list[dict[str, Any]]:
        ask = super()._rows
        return self._mended(lambda: ask(query, **params))

    def _mended(self, action: Callable[[], Result]) -> Result:
        """Does something with the database; where its file turns out to be damaged, it is made anew, once.

        Damage shows late: a block is read, and its checksum compared, only when somebody asks for what is in it.
        """
        if self._gate.is_inside:
            return action()  # A part of something larger, which is done again as a whole.
        with self._gate.shared():
            connection = self._connection
            try:
                return action()
            except duckdb.Error as error:
                if not _is_damage(error):
                    raise StoreError("store-damaged", path=str(self.path), reason=str(error)) from error
                reason = str(error)
                # Cursors in those frames would keep the damaged file open, and DuckDB would give it to us again.
                traceback.clear_frames(error.__traceback__)
        try:
            with self._gate.alone():  # for other threads' cursors would do the same
                if self._connection is connection:
                    self._start_over(reason)
            with self._gate.shared():
                return action()
        except duckdb.Error as error:
            raise StoreError("store-damaged", path=str(self.path), reason=str(error)) from error

    def _start_over(self, reason: str) -> None:
        with suppress(duckdb.Error):
            self._connection.close()
        self._set_aside(reason)
        self._connection = duckdb.connect(self.path, config=NO_EXTENSIONS)
        self._rebuild()

    def _open(self) -> duckdb.DuckDBPyConnection:
        try:
            return duckdb.connect(self.path, config=NO_EXTENSIONS)
        except duckdb.Error as error:
            raise_if_busy(self.path, str(error))
            self._set_aside(str(error))
        try:
            return duckdb.connect(self.path, config=NO_EXTENSIONS)
        except duckdb.Error as error:
            raise StoreError("store-unwritable", path=str(self.path), reason=str(error)) from error

    def _set_aside(self, reason: str) -> None:
        moved = set_aside(self.path, reason)
        self.notices = (
            Notice(message_id="store-rebuilt-broken", params={"path": str(self.path), "moved": str(moved)}),
        )

    def _version(self) -> str | None:
        cursor = self._connection.cursor()
        tables = {name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if not tables:
            return None
        rows = []
        if tables >= {"meta", "files", "runs"}:
            with suppress(duckdb.BinderException, duckdb.ConversionException):  # another meta than ours
                rows = cursor.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
        if not rows or not re.fullmatch(r"\d+\.\d+", str(rows[0][0])):
            # Somebody's own database, named by mistake: making it anew would destroy it.
            raise StoreError("store-foreign", path=str(self.path))
        return str(rows[0][0])

    def _reset(self) -> None:
        with self._transaction() as cursor:
            index_tables.make(cursor, _version_text())
        self._generation = next(_GENERATIONS)

    def _replace(self, run_ids: list[str], found: dict[str, Signature]) -> None:
        runs = {run_id: read_run(RunDir(self.runs_dir / run_id), found[run_id]) for run_id in run_ids}
        remaining = [run_ids]
        while remaining:
            part = remaining.pop()
            try:
                self._insert(part, [runs[run_id] for run_id in part])
            except REFUSED as error:
                # Something that only the database refuses. In halves, so that only the run in question is left out.
                middle = len(part) // 2
                if middle:
                    remaining += [part[middle:], part[:middle]]
                else:
                    run = RunDir(self.runs_dir / part[0])
                    self._insert(part, [unreadable(run, found[run.run_id], str(error))])

    def _insert(self, run_ids: list[str], runs: list[Rows]) -> None:
        with self._transaction() as cursor:
            index_tables.insert(cursor, run_ids, runs)
        self._generation = next(_GENERATIONS)

    def _delete(self, run_ids: list[str]) -> None:
        if not run_ids:
            return
        with self._transaction() as cursor:
            index_tables.delete(cursor, run_ids)
        self._generation = next(_GENERATIONS)

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        cursor.begin()
        try:
            yield cursor
        except BaseException:
            with suppress(duckdb.Error):  # a damaged database refuses this too; the first error says why
                cursor.rollback()
            raise
        cursor.commit()


def rebuild(runs_dir: Path, db_path: Path) -> IngestReport:
    """Makes the database anew from the run folders.

    Raises:
        StoreBusy: Another process has the file open.
    """
    with Store(db_path, runs_dir) as store:
        return store.rebuild()


def open_copy(path: Path, *, memory_mib: int, threads: int) -> duckdb.DuckDBPyConnection:
    """Opens a copy of the database for the statement of a person: it can read this file and nothing else.

    No other file, no network, no extension, no spilling to disk, and none of that can be switched on again.
    """
    return duckdb.connect(
        path,
        read_only=True,
        config={
            "enable_external_access": "false",
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "max_temp_directory_size": "0KiB",
            "memory_limit": f"{memory_mib}MiB",
            "threads": str(threads),
            "lock_configuration": "true",
        },
    )


def _is_damage(error: duckdb.Error) -> bool:
    # A checksum that does not fit has the bare class; an internal error follows from nonsense that passed as data.
    kinds = (duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
    return type(error) is duckdb.Error or isinstance(error, kinds) or "orrupt" in str(error)


def _version_text() -> str:
    # A record that an older program could not read may be readable now, so its version counts too.
    return f"{SCHEMA_VERSION}.{records.SCHEMA_VERSION}"
