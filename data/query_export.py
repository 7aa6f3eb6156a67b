"""The result of a query as CSV or Parquet."""

import json
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from data.exports.tables import csv_bytes, parquet_bytes
from data.query import QueryResult

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_NUMBERS = ("DOUBLE", "FLOAT")


def result_to_csv(result: QueryResult) -> bytes:
    """UTF-8 with a header; lists and structures as JSON."""
    return csv_bytes(result.columns, result.rows)


def result_to_parquet(result: QueryResult) -> bytes:
    """Numbers, truth values, dates and times keep their types; anything else is text, lists and structures as JSON."""
    arrays, names = [], []
    for index, (name, kind) in enumerate(zip(result.columns, result.types, strict=True)):
        arrays.append(_array([row[index] for row in result.rows], kind))
        # Two columns of a result may have one name; of a file they may not.
        names.append(name if name not in names else f"{name}_{index + 1}")
    return parquet_bytes(pa.Table.from_arrays(arrays, names=names))


def _array(values: list[Any], kind: str) -> pa.Array:
    if kind in _WHOLE:
        return pa.array(values, pa.int64())
    if kind in _NUMBERS or kind.startswith("DECIMAL"):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kind == "BOOLEAN":
        return pa.array(values, pa.bool_())
    try:
        if kind == "TIMESTAMP":
            return pa.array([value and datetime.fromisoformat(value) for value in values], pa.timestamp("us"))
        if kind == "DATE":
            return pa.array([value and date.fromisoformat(value) for value in values], pa.date32())
    except (ValueError, TypeError):
        pass  # infinity, or a year beyond Python's: as text then
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
