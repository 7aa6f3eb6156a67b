"""The child that runs one query of a person: a request on stdin, one JSON document on stdout.

Run as `python -m data.query_child` by `data.query`; not for people.
"""

import json
import os
import resource
import sys
import threading
import time
from contextlib import suppress
from datetime import date, datetime
from datetime import time as clock_time
from decimal import Decimal
from typing import Any

import psutil

from data.query import TOO_MUCH_MEMORY
from data.store import DatabaseConnection, DatabaseError, open_copy

MIB = 2**20
ADDRESS_SPACE_MIB = 3_072
"""For the whole process with its libraries; the memory that it really holds is watched, see `_watch_memory`."""
OWN_MIB = 192
"""What Python, the libraries and the answer take of `memory_mib`; the database gets the rest."""
WATCH_S = 0.01
FETCHED_ROWS = 256


class Refused(Exception):
    """The query is not one that is run here."""

    def __init__(self, message_id: str, **params: object) -> None:
        super().__init__(message_id)
        self.answer = {"message_id": message_id, "params": params}


def main() -> None:
    """Answers one request."""
    request = json.load(sys.stdin)
    _limit_process(request["limit_s"], request["threads"])
    threading.Thread(target=_watch_memory, args=(request["memory_mib"] * MIB,), daemon=True).start()
    json.dump(answer({**request, "memory_mib": max(64, request["memory_mib"] - OWN_MIB)}), sys.stdout)


def _watch_memory(limit_bytes: int) -> None:
    """Ends this process when it takes more than it may: not all that the database does counts against its own limit."""
    process = psutil.Process()
    while process.memory_info().rss <= limit_bytes:
        time.sleep(WATCH_S)
    os._exit(TOO_MUCH_MEMORY)


def _limit_process(limit_s: float, threads: int) -> None:
    """Limits of the operating system, below those of the database; where one is not supported, the others remain."""
    for kind, most in (
        (resource.RLIMIT_AS, ADDRESS_SPACE_MIB * MIB),
        (resource.RLIMIT_CPU, int(limit_s * threads) + 10),
        (resource.RLIMIT_FSIZE, 0),  # Not one byte into any file; the answer goes through a pipe.
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The rows of a query, or the message id and parameters of why there are none."""
    finished = threading.Event()
    interrupted = threading.Event()
    connection = open_copy(request["path"], memory_mib=request["memory_mib"], threads=request["threads"])

    def stop() -> None:
        if not finished.wait(request["limit_s"]):
            interrupted.set()
            connection.interrupt()

    watch = threading.Thread(target=stop, daemon=True)
    watch.start()
    try:
        return _run(connection, request)
    except Refused as refused:
        return refused.answer
    except MemoryError:
        return Refused("query-too-large", limit_mib=request["max_result_mib"]).answer
    except DatabaseError as error:
        if interrupted.is_set():
            return Refused("query-timeout", limit_s=request["limit_s"]).answer
        return Refused("query-failed", reason=str(error)[:2_000]).answer
    finally:
        finished.set()
        watch.join()
        connection.close()


def _run(connection: DatabaseConnection, request: dict[str, Any]) -> dict[str, Any]:
    statements = connection.extract_statements(request["sql"])
    if not statements:
        raise Refused("query-empty")
    if len(statements) != 1:
        raise Refused("query-one-statement", count=len(statements))
    try:
        kind = statements[0].type.name
    except ValueError:  # the Python package has no name for some of the database's statements
        kind = request["sql"].split()[0][:40].upper()
    if kind != "SELECT":
        raise Refused("query-only-select", kind=kind)
    cursor = connection.execute(statements[0])
    columns = cursor.description or []
    rows: list[list[Any]] = []
    size_bytes = 0
    while len(rows) <= request["max_rows"] and (fetched := cursor.fetchmany(FETCHED_ROWS)):
        for values in fetched:
            row = [_plain(value) for value in values]
            size_bytes += len(json.dumps(row))
            if size_bytes > request["max_result_mib"] * MIB:
                raise Refused("query-too-large", limit_mib=request["max_result_mib"])
            rows.append(row)
    return {
        "columns": [column[0] for column in columns],
        "types": [str(column[1]) for column in columns],
        "rows": rows[: request["max_rows"]],
        "truncated": len(rows) > request["max_rows"],
    }


def _plain(value: object) -> Any:
    """A value of the database as a JSON type."""
    if isinstance(value, float):
        return value if value - value == 0 else None  # NaN and infinity have no JSON.
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        return _plain(float(value))
    if isinstance(value, date | datetime | clock_time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


if __name__ == "__main__":
    main()
