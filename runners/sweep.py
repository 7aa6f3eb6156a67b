"""Several runs for one question: the same thing N times, or at growing batch sizes.

A sweep over batch sizes doubles until memory ends or throughput falls. Each size is a run of its own, in a fresh
process. All runs of a sweep share a `group_id` made from what was asked, so the same command goes on where an
interrupted sweep stopped: a size that has its record already is not run again.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runners import environment
from runners.errors import DoesNotFit, RecordError, RunnersError, SpecError
from runners.records import Record
from runners.registry import make_spec, preset_fields
from runners.rundir import list_runs
from runners.specs import TextToImageSpec

FALLEN_SHARE = 0.95
"""Throughput under this share of the best so far has fallen: a sweep ends there."""
Run = Callable[[Mapping[str, Any], str, int], Record]
"""Carries out one run: its fields, its group, its place in the group."""


def sweep(
    runs_dir: Path, workload: str, fields: Mapping[str, Any], preset: str | None, largest: int, run: Run
) -> Iterator[tuple[int, Record | None, RunnersError | None]]:
    """Runs at batch sizes from the specification's own, doubling.

    Args:
        runs_dir: Where earlier runs of the same sweep are looked for.
        workload: One that has a batch size.
        fields: Values of its specification.
        preset: Named values to start from.
        largest: No batch size above this.
        run: Carries out one run and waits for its record.

    Yields:
        Each batch size with its record, whether new or found; or with the refusal that ends the sweep: it cannot fit,
        or it is beyond what a specification may say.

    Raises:
        SpecError: The specification is not valid at its own batch size.
    """
    values = {**preset_fields(workload, preset), **fields}
    first = make_spec(workload, values)
    if not hasattr(first, "batch_size"):
        raise SpecError("sweep-without-batch", workload=workload)
    group_id = sweep_id(workload, values)
    done = finished(runs_dir, group_id)
    best, size = 0.0, int(first.batch_size)
    while size <= largest:
        record = done.get(size)
        if record is None:
            try:
                record = run(at_batch_size(first, values, size), group_id, size)
            except (DoesNotFit, SpecError) as refusal:
                yield size, None, refusal
                return
        yield size, record, None
        rate = throughput(record)
        if record.status != "ok" or rate is None or rate < FALLEN_SHARE * best:
            return
        best = max(best, rate)
        size *= 2


def sweep_id(workload: str, values: Mapping[str, Any]) -> str:
    """The group of a sweep: the same for the same question, whatever the order of its fields."""
    text = json.dumps([workload, {key: str(value) for key, value in values.items()}], sort_keys=True)
    return f"sweep-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def finished(runs_dir: Path, group_id: str) -> dict[int, Record]:
    """Records of a sweep's runs by batch size; failed ones count too, since memory that ended is an answer."""
    found: dict[int, Record] = {}
    for run_dir in list_runs(runs_dir):
        try:
            if run_dir.request().group_id != group_id or not run_dir.has_record():
                continue
            record = run_dir.record()
        except (RecordError, SpecError):
            continue
        if not _made_here(record):
            continue
        out_of_memory = record.error is not None and record.error.message_id == "out-of-memory"
        if record.status == "ok" or out_of_memory:
            found[int(record.spec["batch_size"])] = record
    return found


def _made_here(record: Record) -> bool:
    """Not brought from another machine, whose memory and speed are no answer for this one."""
    here = environment.describe()
    return all(record.environment.get(name) == here[name] for name in ("cpu", "cores", "memory_bytes"))


def at_batch_size(first: Any, values: Mapping[str, Any], size: int) -> dict[str, Any]:
    """The fields at another batch size, with as many batches."""
    changed = {**values, "batch_size": size}
    if isinstance(first, TextToImageSpec):
        changed["images"] = first.images // first.batch_size * size
    return changed


def throughput(record: Record) -> float | None:
    """Samples or images per second; for images on the published clock, which comes first."""
    return next((metric.value for metric in record.metrics if metric.name.endswith("s_per_s")), None)
