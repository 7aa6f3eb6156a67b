"""Carries out what a plan says: run folders are made beside the others, whole, and then take their names."""

import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from data import bundle
from data.importers import detect
from data.importers.draft import ImportRefused
from data.importers.plan import FilePlan, RunPlan
from runners.errors import RecordError
from runners.records import Artifact, record_to_json, write_json_atomically
from runners.rundir import Request, RunDir, sha256_of

STAGING = ".import-"
FORGOTTEN_S = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """What became of one file."""

    name: str
    format: str | None
    added: tuple[str, ...] = ()
    """Ids of runs."""
    restored: tuple[str, ...] = ()
    """They were here, deleted by a person."""
    duplicates: tuple[str, ...] = ()
    problem: tuple[str, Mapping[str, Any]] | None = None


def store(plan: FilePlan, runs_dir: Path) -> FileResult:
    """Takes one file in: all of it, or nothing.

    Raises:
        ImportRefused: The folder cannot be written.
    """
    result = FileResult(name=plan.source.name, format=plan.format, problem=plan.problem)
    if plan.problem is None and plan.asked:
        params = {"file": plan.source.name, "names": ", ".join(plan.asked)}
        result = replace(result, problem=("import-asked", params))
    if result.problem or plan.companion_of:
        return result
    by_state = {
        state: tuple(run.run_id for run in plan.runs if run.state == state) for state in ("new", "deleted", "duplicate")
    }
    wanted = {*by_state["new"], *by_state["deleted"]}
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        _sweep(runs_dir)
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=runs_dir))
    except (OSError, ValueError) as error:
        raise ImportRefused("import-unwritable", path=str(runs_dir), reason=str(error)) from error
    try:
        if plan.format == detect.BUNDLE:
            bundle.extract(plan.source, staging, wanted)
            _merge_annotations(plan, staging, runs_dir)
        else:
            for run in plan.runs:
                if run.run_id in wanted:
                    _write(run, staging / run.run_id)
        _publish(wanted, staging, runs_dir)
    except ImportRefused as error:
        return replace(result, problem=(error.message_id, error.params))
    except OSError as error:
        raise ImportRefused("import-unwritable", path=str(runs_dir), reason=error.strerror or str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return replace(result, added=by_state["new"], restored=by_state["deleted"], duplicates=by_state["duplicate"])


def _write(run: RunPlan, folder: Path) -> None:
    record = run.record
    folder.mkdir()
    request = Request(
        run_id=run.run_id,
        workload=record.workload,
        fields=dict(record.spec),
        created_utc=record.created_utc,
        source="import",
    )
    write_json_atomically(folder / "spec.json", asdict(request))
    if run.image is not None:
        image = folder / "images" / "000.png"
        image.parent.mkdir()
        image.write_bytes(run.image)
        record = replace(record, artifacts=(Artifact(path="images/000.png", kind="image", sha256=sha256_of(image)),))
    try:
        write_json_atomically(folder / "record.json", record_to_json(record))
        RunDir(folder).record()
    except (RecordError, ValueError) as error:
        raise ImportRefused("import-unreadable", file=run.title or run.run_id, reason=str(error)) from error


def _publish(run_ids: Iterable[str], staging: Path, runs_dir: Path) -> None:
    """Gives the folders their names; where one of them cannot have it, none of them has."""
    done: list[tuple[Path, Path | None]] = []
    try:
        for run_id in sorted(run_ids):
            target, old = runs_dir / run_id, None
            if target.exists():
                if not RunDir(target).has_record():
                    raise ImportRefused("import-unfinished-here", run_id=run_id)
                old = staging / f"{run_id}.old"
                target.rename(old)
                done.append((target, old))
                (staging / run_id).rename(target)
            else:
                (staging / run_id).rename(target)
                done.append((target, None))
    except (OSError, ImportRefused):
        for target, old in reversed(done):
            shutil.rmtree(target, ignore_errors=True)
            if old is not None:
                with suppress(OSError):
                    old.rename(target)
        raise


def _merge_annotations(plan: FilePlan, staging: Path, runs_dir: Path) -> None:
    """Notes and tags of a run that is here already stay; what it has none of comes from the bundle."""
    for run in plan.runs:
        here, there = RunDir(runs_dir / run.run_id), RunDir(staging / run.run_id)
        if run.state == "deleted":
            merged = {**there.annotations(), **here.annotations(), "deleted": False}
            write_json_atomically(there.path / "annotations.json", merged)
        elif run.state == "new" and there.annotations().get("deleted") is True:
            write_json_atomically(there.path / "annotations.json", {**there.annotations(), "deleted": False})


def _sweep(runs_dir: Path) -> None:
    """Removes what an import left that was killed long ago."""
    for folder in runs_dir.glob(f"{STAGING}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > FORGOTTEN_S:
                shutil.rmtree(folder, ignore_errors=True)
