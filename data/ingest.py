"""From run folders to rows: which folders changed, what is in them, and what could not be read."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import StoreError
from data.record_rows import Rows, as_json, rows_of, storable
from runners.errors import RecordError, SpecError
from runners.rundir import RunDir, is_run_folder, list_runs

INT64 = 2**63 - 1
Signature = tuple[int, int, int | None, int | None]
"""Modification time (ns) and size (bytes) of record.json, then of annotations.json."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A record that cannot be read; its files are left as they are."""

    run_id: str
    path: str
    message_id: str
    """Key of `runners.messages`; `data.messages.render` knows those too."""
    params: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """What an ingest changed in the index."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    """Runs whose folder or record is gone."""
    unchanged: int = 0
    unfinished: int = 0
    """Folders without a record: still running, or lost."""
    problems: tuple[Problem, ...] = ()
    """All records that cannot be read, not only new ones."""
    duration_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class UnfinishedRun:
    """A run folder without a record: it is waiting, running, or lost."""

    run_id: str
    workload: str | None
    """None where `spec.json` cannot be read; then `problem` says why."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    created_utc: str | None = None
    source: str | None = None
    cancel_asked: bool = False
    last_event: Mapping[str, Any] | None = None
    """The newest line of events.jsonl; its `t` says when the run last gave a sign of life."""
    problem: Problem | None = None


def scan(runs_dir: Path) -> tuple[dict[str, Signature], int]:
    """The signature of every folder that has a record, and the number of folders that have none.

    Raises:
        StoreError: The folder of runs cannot be listed.
    """
    found = {name: signature_of(runs_dir / name) for name in folder_times(runs_dir)}
    whole = {name: signature for name, signature in found.items() if signature is not None}
    return whole, len(found) - len(whole)


def folder_times(runs_dir: Path) -> dict[str, int]:
    """When each run folder was last changed, in nanoseconds: whatever is written here is renamed into place.

    Raises:
        StoreError: The folder of runs cannot be listed.
    """
    try:
        with os.scandir(runs_dir) as entries:
            return {
                entry.name: entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries if is_run_folder(entry)
            }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError("runs-dir-unreadable", path=str(runs_dir), reason=error.strerror or str(error)) from error


def signature_of(folder: Path) -> Signature | None:
    """The signature of a run folder; None where there is no record."""
    record = _stat(folder / "record.json")
    if record is None:
        return None
    annotations = _stat(folder / "annotations.json")
    # A pipe or a device may never end: such annotations are none, and read_run refuses such a record.
    usable = annotations if annotations and stat.S_ISREG(annotations.st_mode) else None
    return (
        _time_ns(record),
        record.st_size,
        _time_ns(usable) if usable else None,
        usable.st_size if usable else None,
    )


def read_run(run: RunDir, signature: Signature) -> Rows:
    """The rows of one folder; a record that cannot be read yields a row of `problems` instead."""
    try:
        if not run.record_path.is_file():
            raise RecordError("record-unreadable", path=str(run.record_path), reason="it is not a regular file")
        record = run.record()
        if record.run_id != run.run_id:
            reason = f"its run_id is {record.run_id}, its folder is {run.run_id}"
            raise RecordError("record-unreadable", path=str(run.record_path), reason=reason)
        annotations = {} if signature[2] is None else run.annotations()
        return {**_files(run, signature), **rows_of(record, annotations, run.record_path)}
    except RecordError as error:
        return {**_files(run, signature), "problems": [_problem(run, error)]}


def unreadable(run: RunDir, signature: Signature, reason: str) -> Rows:
    """The rows of a folder whose record the database refuses."""
    error = RecordError("record-unreadable", path=str(run.record_path), reason=reason)
    return {**_files(run, signature), "problems": [_problem(run, error)]}


def read_problems(runs_dir: Path) -> tuple[int, list[Problem]]:
    """Reads every record from its file, without a database.

    Returns:
        The number of records, and those that cannot be read.
    """
    found, _ = scan(runs_dir)
    problems = []
    for run_id, signature in sorted(found.items()):
        for row in read_run(RunDir(runs_dir / run_id), signature).get("problems", []):
            problems.append(Problem(**{**row, "params": json.loads(row["params"])}))
    return len(found), problems


def unfinished_runs(runs_dir: Path) -> list[UnfinishedRun]:
    """Run folders without a record, oldest first; read from their files, the database knows nothing of them."""
    return [_unfinished(run) for run in list_runs(runs_dir) if not run.has_record()]


def _unfinished(run: RunDir) -> UnfinishedRun:
    last_event = None
    for event in run.events():
        last_event = event
    try:
        request = run.request()
    except SpecError as error:
        path = str(run.path / "spec.json")
        problem = Problem(run_id=run.run_id, path=path, message_id=error.message_id, params=error.params)
        return UnfinishedRun(run_id=run.run_id, workload=None, last_event=last_event, problem=problem)
    return UnfinishedRun(
        run_id=run.run_id,
        workload=request.workload,
        fields=request.fields,
        created_utc=request.created_utc,
        source=request.source,
        cancel_asked=run.cancel_asked(),
        last_event=last_event,
    )


def _files(run: RunDir, signature: Signature) -> Rows:
    names = ("record_mtime_ns", "record_size_bytes", "annotations_mtime_ns", "annotations_size_bytes")
    return {"files": [{"run_id": run.run_id, **dict(zip(names, signature, strict=True))}]}


def _problem(run: RunDir, error: RecordError) -> dict[str, str]:
    params = storable(as_json(error.params))
    path = storable(str(run.record_path))
    return {"run_id": run.run_id, "path": path, "message_id": error.message_id, "params": params}


def _time_ns(status: os.stat_result) -> int:
    # Some file systems keep times beyond what a column takes; only whether it changed matters.
    return status.st_mtime_ns & INT64


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
