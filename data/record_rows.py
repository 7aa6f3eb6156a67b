"""A record as rows of the index.

Records come from files that anybody may have edited, so every cell is checked against its column here: one odd record
becomes a problem of its own and never spoils the batch it is inserted with.
"""

import dataclasses
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from runners.errors import RecordError
from runners.plausibility import marked
from runners.records import Conditions, Record

TEXT, WHOLE, NUMBER, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us")
CONDITION_TYPES: Mapping[str, pa.DataType] = {
    "width_px": WHOLE,
    "height_px": WHOLE,
    "sequence_length": WHOLE,
    "target_length": WHOLE,
    "steps": WHOLE,
    "guidance": NUMBER,
    "batch_size_per_device": WHOLE,
    "devices": WHOLE,
    "tf32": FLAG,
    "gradient_checkpointing": FLAG,
    "learning_rate": NUMBER,
    "software_year": WHOLE,
    "epochs": NUMBER,
}
"""Types of the condition fields; those that are not listed are texts."""
CONDITION_FIELDS = tuple(item.name for item in dataclasses.fields(Conditions))

TABLES: Mapping[str, Mapping[str, pa.DataType]] = {
    "files": {
        "run_id": TEXT,
        "record_mtime_ns": WHOLE,
        "record_size_bytes": WHOLE,
        "annotations_mtime_ns": WHOLE,
        "annotations_size_bytes": WHOLE,
    },
    "runs": {
        **dict.fromkeys(("run_id", "group_id", "origin", "workload", "preset", "status"), TEXT),
        "repeat": WHOLE,
        **dict.fromkeys(("created_utc", "started_utc", "finished_utc"), TIME),
        **dict.fromkeys(("device_kind", "device_name"), TEXT),
        **dict.fromkeys(("device_memory_bytes", "device_cores"), WHOLE),
        **{name: CONDITION_TYPES.get(name, TEXT) for name in CONDITION_FIELDS},
        **dict.fromkeys(("conditions_hash", "prompt", "error_type", "error_message_id", "error_message"), TEXT),
        **dict.fromkeys(("sync_policy", "grade", "spec", "environment", "details", "note"), TEXT),
        **dict.fromkeys(("warnings", "grade_reasons", "tags"), pa.list_(TEXT)),
        **dict.fromkeys(("favourite", "deleted"), FLAG),
        "search_text": TEXT,
    },
    "metrics": {
        "run_id": TEXT,
        "position": WHOLE,
        **dict.fromkeys(("name", "unit", "timed_region"), TEXT),
        **dict.fromkeys(("value", "interval_low", "interval_high"), NUMBER),
        "n": WHOLE,
        "higher_is_better": FLAG,
    },
    "series": {
        "run_id": TEXT,
        "position": WHOLE,
        **dict.fromkeys(("name", "unit", "phase"), TEXT),
        "n": WHOLE,
        **dict.fromkeys(("minimum", "median", "maximum"), NUMBER),
        "samples": pa.list_(NUMBER),
    },
    "phases": {"run_id": TEXT, "position": WHOLE, "name": TEXT, "duration_s": NUMBER},
    "artifacts": {"run_id": TEXT, "position": WHOLE, **dict.fromkeys(("path", "kind", "sha256"), TEXT)},
    "problems": dict.fromkeys(("run_id", "path", "message_id", "params"), TEXT),
}
"""Columns of every table that is made from files, as in schema.sql."""

Rows = dict[str, list[dict[str, Any]]]


def rows_of(record: Record, annotations: Mapping[str, Any], path: Path) -> Rows:
    """The rows of one run.

    Args:
        record: What the run left.
        annotations: What people added; odd values count as absent.
        path: The record's file, for the message.

    Raises:
        RecordError: A value does not fit its column.
    """
    try:
        record = marked(record)
        rows: Rows = {
            "runs": [_run_row(record, annotations)],
            "metrics": [
                {
                    **vars(metric),
                    "interval_low": metric.interval[0] if metric.interval else None,
                    "interval_high": metric.interval[1] if metric.interval else None,
                }
                for metric in record.metrics
            ],
            "series": [{**vars(item), **_summary(item.values), "samples": item.values} for item in record.series],
            "phases": [dict(vars(phase)) for phase in record.phases],
            "artifacts": [dict(vars(artifact)) for artifact in record.artifacts],
        }
        return {table: _checked(table, record.run_id, items) for table, items in rows.items()}
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise RecordError("record-unreadable", path=str(path), reason=str(error)) from error


def storable(text: str) -> str:
    """The text as a column takes it: half a surrogate pair is legal in JSON and in file names, and in no column."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_json(value: object) -> str:
    """JSON text that a JSON column takes: numbers that are not finite become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)
        return json.dumps(finite, ensure_ascii=False)


def arrow_table(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table with the columns of that table."""
    return pa.Table.from_pylist(list(rows), schema=pa.schema(list(TABLES[table].items())))


def _run_row(record: Record, annotations: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(record.conditions.workload, str):
        raise TypeError("conditions.workload is not a text")  # the column holds the record's own
    note, tags = annotations.get("note"), annotations.get("tags")
    row: dict[str, Any] = {
        **{name: getattr(record, name) for name in ("group_id", "repeat", "origin", "workload", "preset", "status")},
        **{name: _time(getattr(record, name)) for name in ("created_utc", "started_utc", "finished_utc")},
        **vars(record.conditions),
        "workload": record.workload,
        "device_kind": record.device.kind,
        "device_name": record.device.name,
        "device_memory_bytes": record.device.memory_bytes,
        "device_cores": record.device.cores,
        "conditions_hash": record.conditions.hash(),
        "prompt": _prompt(record.spec),
        "error_type": record.error.type if record.error else None,
        "error_message_id": record.error.message_id if record.error else None,
        "error_message": record.error.message if record.error else None,
        "sync_policy": record.audit.sync_policy,
        "warnings": list(record.audit.warnings),
        "grade": record.audit.grade,
        "grade_reasons": list(record.audit.reasons),
        **{name: as_json(getattr(record, name)) for name in ("spec", "environment", "details")},
        "note": note if isinstance(note, str) else "",
        "tags": [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        "favourite": annotations.get("favourite") is True,
        "deleted": annotations.get("deleted") is True,
    }
    searched = ("workload", "preset", "status", "model", "precision", "device_name", "prompt", "error_message", "note")
    negative = record.spec.get("negative_prompt")
    texts = [
        record.run_id,
        *(row[name] for name in searched),
        *row["tags"],
        negative if isinstance(negative, str) else "",
    ]
    return {**row, "search_text": "\n".join(text for text in texts if text).lower()}


def _prompt(spec: Mapping[str, Any]) -> str | None:
    fields = spec.get("fields")
    prompt = (fields if isinstance(fields, dict) else spec).get("prompt")
    return prompt if isinstance(prompt, str) else None


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    moment = datetime.fromisoformat(value)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _summary(values: tuple[float, ...]) -> dict[str, float | int | None]:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return {"n": len(values), "minimum": None, "median": None, "maximum": None}
    return {
        "n": len(values),
        "minimum": min(finite),
        "median": statistics.median(finite),
        "maximum": max(finite),
    }


def _checked(table: str, run_id: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    columns = TABLES[table]
    result = []
    for position, row in enumerate(rows):
        full = {**row, "run_id": run_id, "position": position}
        result.append({name: _cell(table, name, kind, full.get(name)) for name, kind in columns.items()})
    return result


def _cell(table: str, name: str, kind: pa.DataType, value: Any) -> Any:
    if value is None or kind == TIME:
        return value
    if pa.types.is_list(kind):
        return [_cell(table, name, kind.value_type, item) for item in value] if kind.value_type == TEXT else value
    if kind == TEXT and isinstance(value, str):
        return storable(value)
    if kind == FLAG and isinstance(value, bool):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind == NUMBER:
            return None if math.isnan(value) else float(value)  # not a number: not measured
        if kind == WHOLE and value == int(value) and abs(value) < 2**63:
            return int(value)
    raise TypeError(f"{table}.{name} is {value!r:.60}, not of type {kind}")
