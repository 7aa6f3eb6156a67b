"""The store: the only place that opens DuckDB, an index of the run folders.

DuckDB lets one process open a file for writing and shuts out every other, readers included. So one process has one
`Store`, with one connection. Each call works on a cursor of its own and drains its result before it returns: since
DuckDB 2.0 an open result owns its connection. Writes go one at a time behind a lock. Nothing is lost when the file is:
it is made again from the folders.
"""

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from data.errors import StoreBusy, StoreError
from data.ingest import IngestReport, Signature, UnfinishedRun, read_run, scan, unfinished_runs, unreadable
from data.questions import Questions
from data.record_rows import TABLES, Rows, arrow_table
from runners import records
from runners.records import Record
from runners.rundir import RunDir, find_run

SCHEMA_VERSION = 2
"""Of the database. Raise it with every change of schema.sql or record_rows: older files are then made anew."""

HERE = Path(__file__).parent
BATCH_RUNS = 500

DatabaseError = duckdb.Error
DatabaseConnection = duckdb.DuckDBPyConnection


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
        self._lock = threading.RLock()
        existed = path.exists()
        self._connection = self._open()
        super().__init__(lambda: self._connection.cursor())
        version = self._version()
        if version == _version_text():
            return
        with self._lock:
            self._reset()
            report = self.ingest()
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

    def close(self) -> None:
        """Closes the database and frees it for other processes."""
        with self._lock:
            self._connection.close()

    def ingest(self) -> IngestReport:
        """Takes in what changed in the run folders since the last time; cheap when nothing did."""
        started = time.perf_counter()
        with self._lock:
            found, unfinished = scan(self.runs_dir)
            known = self._signatures()
            changed = [run_id for run_id, signature in found.items() if known.get(run_id) != signature]
            gone = [run_id for run_id in known if run_id not in found]
            with self._transaction() as cursor:
                _delete(cursor, gone)
            for run_ids in _batches(changed):
                self._replace(run_ids, found)
        added = sum(run_id not in known for run_id in changed)
        return IngestReport(
            added=added,
            updated=len(changed) - added,
            removed=len(gone),
            unchanged=len(found) - len(changed),
            unfinished=unfinished,
            problems=tuple(self.problems()),
            duration_s=time.perf_counter() - started,
        )

    def rebuild(self) -> IngestReport:
        """Forgets everything and reads all run folders again."""
        with self._lock:
            self._reset()
            return self.ingest()

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
        name = str(target).replace("'", "''")
        with self._lock:
            cursor = self._connection.cursor()
            [[own]] = cursor.execute("SELECT current_database()").fetchall()
            cursor.execute(f"ATTACH '{name}' AS snapshot_copy")
            try:
                quoted = own.replace('"', '""')
                cursor.execute(f'COPY FROM DATABASE "{quoted}" TO snapshot_copy').fetchall()
            finally:
                cursor.execute("DETACH snapshot_copy")

    def _open(self) -> duckdb.DuckDBPyConnection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return duckdb.connect(self.path)
        except OSError as error:
            raise StoreError("store-unwritable", path=str(self.path), reason=str(error)) from error
        except duckdb.Error as error:
            self._set_aside(error)
        return duckdb.connect(self.path)

    def _set_aside(self, error: duckdb.Error) -> None:
        """Moves a broken file out of the way; raises where the file is not what is wrong."""
        text = str(error)
        if "Could not set lock" in text:
            holder = re.search(r"\(PID (\d+)\)", text)
            raise StoreBusy("store-busy", path=str(self.path), pid=int(holder[1]) if holder else "unknown") from error
        usable = self.path.is_file() and os.access(self.path, os.R_OK | os.W_OK)
        if not usable or "No space" in text:
            raise StoreError("store-unwritable", path=str(self.path), reason=text) from error
        moved = self.path.with_name(f"{self.path.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}")
        self.path.replace(moved)
        self.path.with_name(self.path.name + ".wal").unlink(missing_ok=True)
        self.notices = (
            Notice(message_id="store-rebuilt-broken", params={"path": str(self.path), "moved": str(moved)}),
        )

    def _version(self) -> str | None:
        cursor = self._connection.cursor()
        tables = {name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if not tables:
            return None
        if not tables >= {"meta", "files", "runs"}:
            # Somebody's own database, named by mistake: making it anew would destroy it.
            self._connection.close()
            raise StoreError("store-foreign", path=str(self.path))
        rows = cursor.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
        return rows[0][0] if rows else None

    def _reset(self) -> None:
        with self._transaction() as cursor:
            tables = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
            for (table,) in tables:
                quoted = table.replace('"', '""')
                cursor.execute(f'DROP TABLE "{quoted}"')
            cursor.execute((HERE / "schema.sql").read_text(encoding="utf-8"))
            cursor.execute("INSERT INTO meta VALUES ('version', $version)", {"version": _version_text()})

    def _signatures(self) -> dict[str, Signature]:
        columns = ", ".join(TABLES["files"])
        rows = self._connection.cursor().execute(f"SELECT {columns} FROM files").fetchall()  # noqa: S608 - our names
        return {run_id: (first, second, third, fourth) for run_id, first, second, third, fourth in rows}

    def _replace(self, run_ids: list[str], found: dict[str, Signature]) -> None:
        runs = [read_run(RunDir(self.runs_dir / run_id), found[run_id]) for run_id in run_ids]
        try:
            self._insert(run_ids, runs)
        except (duckdb.DataError, duckdb.IntegrityError, pa.ArrowInvalid):
            # Something that only the database refuses. One by one, so that only the run in question is left out.
            for run_id, rows in zip(run_ids, runs, strict=True):
                try:
                    self._insert([run_id], [rows])
                except (duckdb.DataError, duckdb.IntegrityError, pa.ArrowInvalid) as error:
                    run = RunDir(self.runs_dir / run_id)
                    self._insert([run_id], [unreadable(run, found[run_id], str(error))])

    def _insert(self, run_ids: list[str], runs: list[Rows]) -> None:
        rows: Rows = {table: [row for run in runs for row in run.get(table, [])] for table in TABLES}
        with self._transaction() as cursor:
            _delete(cursor, run_ids)
            for table, items in rows.items():
                if items:
                    cursor.register("batch", arrow_table(table, items))
                    cursor.execute(f"INSERT INTO {table} BY NAME SELECT * FROM batch")  # noqa: S608 - our names
                    cursor.unregister("batch")

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        cursor.begin()
        try:
            yield cursor
        except BaseException:
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


def _version_text() -> str:
    # A record that an older program could not read may be readable now, so its version counts too.
    return f"{SCHEMA_VERSION}.{records.SCHEMA_VERSION}"


def _delete(cursor: duckdb.DuckDBPyConnection, run_ids: list[str]) -> None:
    if run_ids:
        for table in TABLES:
            cursor.execute(
                f"DELETE FROM {table} WHERE run_id IN (SELECT unnest($run_ids))",  # noqa: S608 - our names
                {"run_ids": run_ids},
            )


def _batches(run_ids: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(run_ids)
    while batch := list(islice(remaining, BATCH_RUNS)):
        yield batch
