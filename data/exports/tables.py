"""Runs as tables: one row for each metric, with the conditions under which it was measured beside it."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.exports.selection import ChosenRun
from data.record_rows import CONDITION_FIELDS, CONDITION_TYPES, FLAG, NUMBER, TEXT, WHOLE, storable
from runners.records import Metric, record_to_json

COLUMNS: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("run_id", "origin", "status", "created_utc", "device_kind", "device_name"), TEXT),
    **{name: CONDITION_TYPES.get(name, TEXT) for name in CONDITION_FIELDS},
    "metric": TEXT,
    "value": NUMBER,
    "unit": TEXT,
    "interval_low": NUMBER,
    "interval_high": NUMBER,
    "n": WHOLE,
    "higher_is_better": FLAG,
    "metric_timed_region": TEXT,
    "grade": TEXT,
    "grade_reasons": TEXT,
    "warnings": TEXT,
    "note": TEXT,
    "tags": TEXT,
}
"""Columns of CSV and Parquet, with their types. Times are UTC; empty means "not published" or "not measured"."""
JSON_VERSION = 1
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(runs: Sequence[ChosenRun]) -> list[dict[str, Any]]:
    """One row for each metric; a run without any has one row without a value."""
    return [_row(run, metric) for run in runs for metric in (run.record.metrics or (None,))]


def to_csv(runs: Sequence[ChosenRun]) -> bytes:
    """UTF-8 with a header; a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    return csv_bytes(list(COLUMNS), [list(row.values()) for row in rows(runs)])


def to_parquet(runs: Sequence[ChosenRun]) -> bytes:
    """One table with typed columns."""
    table = pa.Table.from_pylist(rows(runs), schema=pa.schema(list(COLUMNS.items())))
    return parquet_bytes(table)


def to_json(runs: Sequence[ChosenRun]) -> bytes:
    """The whole records with their samples, and what people added."""
    items = [{"record": record_to_json(run.record), "annotations": dict(run.annotations)} for run in runs]
    document = {"version": JSON_VERSION, "runs": items}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode("utf-8", "replace")


def csv_bytes(names: Sequence[str], lines: Sequence[Sequence[Any]]) -> bytes:
    """Names and lines as CSV."""
    target = io.StringIO(newline="")
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(value) for value in line] for line in lines)
    return target.getvalue().encode("utf-8", "replace")


def parquet_bytes(table: pa.Table) -> bytes:
    """An Arrow table as a Parquet file."""
    target = io.BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _row(run: ChosenRun, metric: Metric | None) -> dict[str, Any]:
    record = run.record
    values: dict[str, Any] = {
        **{name: getattr(record, name) for name in ("run_id", "origin", "status", "created_utc")},
        "device_kind": record.device.kind,
        "device_name": record.device.name,
        **vars(record.conditions),
        "grade": record.audit.grade,
        "grade_reasons": "; ".join(record.audit.reasons),
        "warnings": "; ".join(record.audit.warnings),
        "note": run.note,
        "tags": ", ".join(run.tags),
    }
    if metric is not None:
        low, high = metric.interval or (None, None)
        values |= {
            "metric": metric.name,
            "value": metric.value if metric.value == metric.value else None,
            "unit": metric.unit,
            "interval_low": low,
            "interval_high": high,
            "n": metric.n,
            "higher_is_better": metric.higher_is_better,
            "metric_timed_region": metric.timed_region,
        }
    return {name: _typed(values.get(name), kind) for name, kind in COLUMNS.items()}


def _typed(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str):
        return storable(value)
    return float(value) if kind == NUMBER and value is not None else value
