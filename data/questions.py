"""What can be asked of the index: each question is one file of `queries/`, with every parameter bound.

No text of a person ever becomes SQL here; that is `data.query`, in a child process.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from data.ingest import Problem
from data.measurements import Measurement, doubts, measurement_of
from data.record_rows import CONDITION_FIELDS, TABLES
from runners.records import Conditions, Metric

if TYPE_CHECKING:
    import pandas as pd

QUERIES_DIR = Path(__file__).parent / "queries"
NO_LIMIT = 2**62
WHOLE_COLUMNS = tuple(name for columns in TABLES.values() for name, kind in columns.items() if str(kind) == "int64")


class Cursor(Protocol):
    """The part of a database cursor that questions need."""

    @property
    def description(self) -> Sequence[Sequence[Any]] | None:
        """Names of the result's columns, first of each item."""

    def execute(self, query: str, parameters: object = ..., /) -> Self:
        """Runs a statement."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    def df(self) -> "pd.DataFrame":
        """All rows as a frame."""


class Questions:
    """The reading half of the store. Each call uses a cursor of its own and drains it."""

    def __init__(self, cursor: Callable[[], Cursor]) -> None:
        """Takes what makes a new cursor."""
        self._cursor = cursor

    def runs(
        self,
        *,
        workloads: Sequence[str] = (),
        statuses: Sequence[str] = (),
        devices: Sequence[str] = (),
        models: Sequence[str] = (),
        precisions: Sequence[str] = (),
        batch_sizes: Sequence[int] = (),
        origins: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        text: str = "",
        include_deleted: bool = False,
        limit: int | None = None,
    ) -> "pd.DataFrame":
        """Runs, newest first, with their conditions, annotations and headline metric; empty filters filter nothing.

        Args:
            workloads: Names of workloads.
            statuses: ok, failed, cancelled, timeout, lost.
            devices: Device names as in `device_name`.
            models: Canonical models.
            precisions: fp32, bf16, …
            batch_sizes: Samples per device and step.
            origins: measured, or "imported from …".
            run_ids: These runs only.
            text: Found anywhere in prompt, note, tags, device, model, error or id, in any case.
            include_deleted: Whether runs that a person deleted are shown.
            limit: At most so many; None for all.
        """
        frame = self._frame(
            "runs",
            workloads=list(workloads),
            statuses=list(statuses),
            devices=list(devices),
            models=list(models),
            precisions=list(precisions),
            batch_sizes=list(batch_sizes),
            origins=list(origins),
            run_ids=list(run_ids),
            text=text,
            include_deleted=include_deleted,
            limit=NO_LIMIT if limit is None else limit,
        )
        # pandas would make floats of whole numbers that may be missing: a width of 512.0 pixels.
        return frame.astype({name: "Int64" for name in WHOLE_COLUMNS if name in frame.columns})

    def metrics(self, *, run_ids: Sequence[str] = (), names: Sequence[str] = ()) -> "pd.DataFrame":
        """Metrics of runs that are not deleted, in the order of the records; empty filters filter nothing."""
        return self._frame("metrics", run_ids=list(run_ids), names=list(names))

    def series(self, run_id: str) -> "pd.DataFrame":
        """The series of one run: name, unit, phase, n, minimum, median, maximum, samples."""
        return self._frame("series", run_id=run_id)

    def artifacts(self, *, run_ids: Sequence[str] = (), kinds: Sequence[str] = ()) -> "pd.DataFrame":
        """Files that runs made, newest run first: run_id, path (relative to the run folder), kind, sha256."""
        return self._frame("artifacts", run_ids=list(run_ids), kinds=list(kinds))

    def images(self, *, text: str = "", favourites: bool = False) -> list[dict[str, Any]]:
        """Images of runs that are not deleted, newest run first: run_id, path (relative to the run folder), favourite.

        Args:
            text: Each of its words must occur in prompt, negative prompt, note, tags, device, model or id.
            favourites: Only those that a person marked.
        """
        return self._rows("images", words=text.split(), favourites=favourites)

    def measurements(self, *, workloads: Sequence[str] = (), names: Sequence[str] = ()) -> list[Measurement]:
        """Metrics of runs that ended well and are not deleted, newest first, ready for `compare`."""
        rows = self._rows("measurements", workloads=list(workloads), names=list(names))
        return [_measurement(row) for row in rows]

    def newest_measurements(
        self, *, workload: str, name: str, timed_regions: Sequence[str], limit: int
    ) -> list[Measurement]:
        """The newest result of each device and configuration, newest first, ready for `compare`.

        Args:
            workload: Name of the workload.
            name: Name of the metric.
            timed_regions: Which clocks count; results without one do anyway.
            limit: At most so many.
        """
        regions = list(timed_regions)
        rows = self._rows("newest_measurements", workload=workload, name=name, timed_regions=regions, limit=limit)
        return [_measurement(row) for row in rows]

    def filter_values(self) -> dict[str, list[Any]]:
        """The values that each filter of `runs` can take, by the filter's name."""
        [row] = self._rows("filter_values")
        return {name: values or [] for name, values in row.items()}

    def problems(self) -> list[Problem]:
        """Records that cannot be read."""
        rows = self._rows("problems")
        return [Problem(**{**row, "params": json.loads(row["params"])}) for row in rows]

    def _frame(self, query: str, **params: object) -> "pd.DataFrame":
        return self._cursor().execute(_sql(query), params).df()

    def _rows(self, query: str, **params: object) -> list[dict[str, Any]]:
        cursor = self._cursor().execute(_sql(query), params)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


@cache
def _sql(name: str) -> str:
    return (QUERIES_DIR / f"{name}.sql").read_text(encoding="utf-8")


def _measurement(row: dict[str, Any]) -> Measurement:
    interval = None if row["interval_low"] is None else (row["interval_low"], row["interval_high"])
    return measurement_of(
        run_id=row["run_id"],
        device_name=row["device_name"],
        device_kind=row["device_kind"],
        status=row["status"],
        warnings=doubts(row["warnings"], row["grade_reasons"]),
        grade=row["grade"],
        conditions=Conditions(**{name: row[name] for name in CONDITION_FIELDS}),
        metric=Metric(
            name=row["metric_name"],
            value=row["metric_value"],
            unit=row["metric_unit"],
            interval=interval,
            n=row["metric_n"],
            higher_is_better=row["higher_is_better"],
            timed_region=row["metric_timed_region"],
        ),
    )
