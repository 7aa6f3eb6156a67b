"""Which runs are handed out. Read from their folders, so this works while another process holds the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import StoreError
from data.record_rows import rows_of
from runners.errors import RecordError
from runners.plausibility import marked
from runners.records import Record
from runners.rundir import RunDir, find_run, list_runs


class ExportError(StoreError):
    """Nothing could be handed out; what is here is untouched."""


@dataclass(frozen=True, kw_only=True)
class ChosenRun:
    """A run with what people added to it."""

    run: RunDir
    record: Record
    annotations: Mapping[str, Any]

    @property
    def note(self) -> str:
        """A person's note, or an empty text."""
        note = self.annotations.get("note")
        return note if isinstance(note, str) else ""

    @property
    def tags(self) -> list[str]:
        """A person's tags."""
        tags = self.annotations.get("tags")
        return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def choose(
    runs_dir: Path,
    run_ids: Sequence[str] = (),
    *,
    workload: str | None = None,
    device: str | None = None,
    status: str | None = None,
) -> list[ChosenRun]:
    """The named runs in their order; without names all that are not deleted, oldest first.

    Records that cannot be read are left out of "all", and refused where they are named.

    Raises:
        ExportError: No run is left.
        RecordError: A named run is missing, or its record cannot be read.
    """
    found = []
    for run in [find_run(runs_dir, run_id) for run_id in run_ids] or list_runs(runs_dir):
        if not run_ids and not run.has_record():
            continue
        try:
            record = marked(run.record())
            annotations = run.annotations()
            rows_of(record, annotations, run.record_path)  # what the index would refuse is refused here too
        except RecordError:
            if run_ids:
                raise
            continue
        wanted = (
            workload in (None, record.workload)
            and device in (None, record.device.name)
            and status in (None, record.status)
        )
        if wanted and (run_ids or annotations.get("deleted") is not True):
            found.append(ChosenRun(run=run, record=record, annotations=annotations))
    if not found:
        raise ExportError("export-nothing")
    return found
