"""Questions of a person in SQL: one SELECT, in a child process, on a copy, with limits.

The statement is text from outside, so nothing that it could reach is worth reaching: the child sees a copy of the
database that nobody else uses, opened for reading only, with every way to other files, the network and extensions
shut for good. It cannot outlive its time or grow beyond its memory.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.errors import QueryError, StoreBusy
from data.store import Notice, Store
from runners.paths import PROJECT_DIR

MAX_SQL_CHARACTERS = 20_000
TOO_MUCH_MEMORY = 77
"""Exit code of the child; `query_child` sets it."""
GRACE_S = 3.0
"""What the child may take beyond its limit to start and to answer, before it is killed."""


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """What one query may take; `memory_mib` is the memory of its whole process."""

    limit_s: float = 5.0
    memory_mib: int = 512
    threads: int = 2
    max_rows: int = 10_000
    max_result_mib: int = 16


@dataclass(frozen=True, kw_only=True)
class QueryResult:
    """The rows of a query, as JSON types."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's names of the columns' types."""
    rows: list[list[Any]]
    truncated: bool
    """Whether there were more rows than `max_rows`."""


def run_query(sql: str, copy: Path, limits: QueryLimits = QueryLimits()) -> QueryResult:
    """Runs one SELECT on a copy of the database.

    Args:
        sql: What a person wrote.
        copy: A file made by `Store.snapshot` or `database_copy`.
        limits: What it may take.

    Raises:
        QueryError: It is not one SELECT, it failed, or it took too much.
    """
    if not sql.strip():
        raise QueryError("query-empty")
    try:
        sql.encode()
    except UnicodeEncodeError as error:  # bytes of a command line that are no text, or half a surrogate pair
        raise QueryError("query-not-text", position=error.start + 1) from None
    if len(sql) > MAX_SQL_CHARACTERS:
        raise QueryError("query-too-long", length=len(sql), maximum=MAX_SQL_CHARACTERS)
    answer = _ask_child({"sql": sql, "path": str(copy), **asdict(limits)}, limits)
    if "message_id" in answer:
        raise QueryError(answer["message_id"], **answer["params"])
    return QueryResult(
        columns=tuple(answer["columns"]),
        types=tuple(answer["types"]),
        rows=answer["rows"],
        truncated=answer["truncated"],
    )


@contextmanager
def database_copy(
    db_path: Path, runs_dir: Path, tell: Callable[[tuple[Notice, ...]], None] = lambda _: None
) -> Iterator[Path]:
    """A temporary copy of the database, up to date with the run folders; gone when the block ends.

    While another process (the app) holds the database, the copy is made from the run folders instead: slower, but
    right, and it disturbs nobody.

    Args:
        db_path: The database file.
        runs_dir: The run folders.
        tell: Gets what happened to the database.

    Raises:
        StoreError: The database cannot be opened.
    """
    with tempfile.TemporaryDirectory(prefix="likeforlike-query-") as folder:
        copy = Path(folder) / "copy.duckdb"
        try:
            with Store(db_path, runs_dir) as store:
                store.ingest()
                store.snapshot(copy)
                tell(store.notices)
        except StoreBusy:
            Store(copy, runs_dir).close()
        yield copy


def _ask_child(request: dict[str, Any], limits: QueryLimits) -> dict[str, Any]:
    kept = ("PATH", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    try:
        child = subprocess.run(
            [sys.executable, "-m", "data.query_child"],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=limits.limit_s + GRACE_S,
            cwd=PROJECT_DIR,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise QueryError("query-timeout", limit_s=limits.limit_s) from None
    try:
        answer: dict[str, Any] = json.loads(child.stdout)
    except ValueError:
        raise _died(child.returncode, child.stderr.decode(errors="replace"), limits.memory_mib) from None
    return answer


def _died(code: int, stderr: str, limit_mib: int) -> QueryError:
    """Why there is no answer: a signal means that it took too much, anything else is said as Python said it."""
    if code == TOO_MUCH_MEMORY:
        return QueryError("query-memory", limit_mib=limit_mib)
    if code < 0:
        return QueryError("query-died", how=signal.Signals(-code).name)
    last = (stderr.strip().splitlines() or ["-"])[-1]
    if "MemoryError" in last or "std::bad_alloc" in last:
        return QueryError("query-died", how=f"exit code {code}")
    return QueryError("query-failed-oddly", how=f"exit code {code}", reason=last[:500])
