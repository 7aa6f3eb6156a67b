"""What the store does to the tables of its index, given a cursor: make them, fill them, empty them, copy them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

from data.ingest import Signature
from data.questions import Cursor
from data.record_rows import TABLES, Rows, arrow_table
from data.view_docs import VIEWS

HERE = Path(__file__).parent
BATCH_RUNS = 500


class WritingCursor(Cursor, Protocol):
    """The part of a database cursor that writing needs."""

    def register(self, view_name: str, python_object: object, /) -> object:
        """Shows an Arrow table under a name."""

    def unregister(self, view_name: str, /) -> object:
        """Takes the name back."""


def make(cursor: WritingCursor, version: str) -> None:
    """Drops all tables and views, and makes those of `schema.sql` and `views.sql`, with their descriptions."""
    for (view,) in cursor.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall():
        cursor.execute(f"DROP VIEW {_quoted(view)}")
    for (table,) in cursor.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall():
        cursor.execute(f"DROP TABLE {_quoted(table)}")
    for name in ("schema.sql", "views.sql"):
        cursor.execute((HERE / name).read_text(encoding="utf-8"))
    for name, view in VIEWS.items():
        cursor.execute(f"COMMENT ON VIEW {_quoted(name)} IS {_literal(view.about)}")
        for column, about in view.columns.items():
            cursor.execute(f"COMMENT ON COLUMN {_quoted(name)}.{_quoted(column)} IS {_literal(about)}")
    cursor.execute("INSERT INTO meta VALUES ('version', $version)", {"version": version})


def signatures(cursor: Cursor) -> dict[str, Signature]:
    """What the index knows of each folder's files."""
    columns = ", ".join(TABLES["files"])
    rows = cursor.execute(f"SELECT {columns} FROM files").fetchall()  # noqa: S608 - our names
    return {run_id: (first, second, third, fourth) for run_id, first, second, third, fourth in rows}


def insert(cursor: WritingCursor, run_ids: list[str], runs: list[Rows]) -> None:
    """Replaces what the tables hold of some runs."""
    rows: Rows = {table: [row for run in runs for row in run.get(table, [])] for table in TABLES}
    delete(cursor, run_ids)
    for table, items in rows.items():
        if items:
            cursor.register("batch", arrow_table(table, items))
            cursor.execute(f"INSERT INTO {table} BY NAME SELECT * FROM batch")  # noqa: S608 - our names
            cursor.unregister("batch")


def delete(cursor: Cursor, run_ids: list[str]) -> None:
    """Forgets some runs."""
    if run_ids:
        for table in TABLES:
            cursor.execute(
                f"DELETE FROM {table} WHERE run_id IN (SELECT unnest($run_ids))",  # noqa: S608 - our names
                {"run_ids": run_ids},
            )


def copy_to(cursor: Cursor, target: Path) -> None:
    """Writes all tables into a new database file."""
    [[own]] = cursor.execute("SELECT current_database()").fetchall()
    cursor.execute(f"ATTACH {_literal(str(target))} AS snapshot_copy")
    try:
        cursor.execute(f"COPY FROM DATABASE {_quoted(own)} TO snapshot_copy").fetchall()
    finally:
        cursor.execute("DETACH snapshot_copy")


def batches(run_ids: Iterable[str]) -> Iterator[list[str]]:
    """The ids in lists of a size that one transaction holds well."""
    remaining = iter(run_ids)
    while batch := list(islice(remaining, BATCH_RUNS)):
        yield batch


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _literal(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
