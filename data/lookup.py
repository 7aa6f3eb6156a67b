"""From an id to a measurement: of a run, read from its file, or of a published number.

Works without the database, so also while the app holds it.
"""

from pathlib import Path
from uuid import UUID

from data.catalogue import Catalogue
from data.comparability import Verdict, compare
from data.errors import UnknownMeasurement
from data.measurements import Measurement, measurements_of
from data.plausibility import judged
from data.record_rows import rows_of
from runners.rundir import find_run


def measurements_by_id(id_: str, catalogue: Catalogue, runs_dir: Path, metric: str | None = None) -> list[Measurement]:
    """All measurements of a run, or the one of a reference.

    Args:
        id_: Id of a run (a UUID) or of a reference row.
        catalogue: The published numbers.
        runs_dir: Where the run folders are.
        metric: Only this metric of a run; None for all.

    Raises:
        UnknownMeasurement: There is no such reference, or the run has no such metric.
        RecordError: There is no such run, or its record cannot be read.
    """
    if not _is_run_id(id_):
        return [catalogue.measurement(id_)]
    run = find_run(runs_dir, id_)
    record = run.record()
    rows_of(record, {}, run.record_path)  # what the index would refuse is refused here too
    own = [item for item in measurements_of(record) if metric in (None, item.metric)]
    found = judged(own, catalogue.measurements)
    if not found:
        raise UnknownMeasurement("no-measurement", id=id_)
    return found


def compare_ids(
    id_a: str, id_b: str, catalogue: Catalogue, runs_dir: Path, metric: str | None = None
) -> tuple[Measurement, Measurement, Verdict]:
    """Compares two ids; where a run has several metrics, those that can be compared best.

    Raises:
        UnknownMeasurement: See `measurements_by_id`.
        RecordError: See `measurements_by_id`.
    """
    pairs = [
        (a, b, compare(a, b))
        for a in measurements_by_id(id_a, catalogue, runs_dir, metric)
        for b in measurements_by_id(id_b, catalogue, runs_dir, metric)
    ]
    return min(pairs, key=lambda pair: pair[2].weight)


def _is_run_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
