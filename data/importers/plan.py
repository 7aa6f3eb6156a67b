"""What an import would do: each file's runs, what is missing, what is there already, and what is wrong.

A plan writes nothing, so it is the preview too; `data.importers.keep.store` carries it out.
"""

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from data import bundle
from data.importers import answers as answering
from data.importers import detect, mlperf_inference
from data.importers.draft import Draft, ImportRefused
from data.importers.reading import Source
from data.record_rows import rows_of
from runners.errors import RecordError
from runners.plausibility import marked
from runners.records import Audit, Conditions, DeviceInfo, Record
from runners.rundir import RunDir, utc_now

State = Literal["new", "duplicate", "deleted"]
"""duplicate: the same content is here already; deleted: it is, but a person deleted it, so it comes back."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run of a file."""

    run_id: str
    title: str
    state: State
    record: Record
    """As it would be stored; where something is asked for, with "not published" in its place."""
    asked: tuple[str, ...] = ()
    """Without answers to these the file is not taken in."""
    useful: tuple[str, ...] = ()
    """The file does not say these, and comparisons look at them."""
    image: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class FilePlan:
    """One file."""

    source: Source
    format: str | None
    runs: tuple[RunPlan, ...] = ()
    companion_of: str | None = None
    """This file only adds to that one."""
    problem: tuple[str, Mapping[str, Any]] | None = None
    """Message id and parameters: the file is refused as a whole."""

    @property
    def asked(self) -> tuple[str, ...]:
        """What has to be answered before the file is taken in."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.asked))

    @property
    def useful(self) -> tuple[str, ...]:
        """What is worth answering."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.useful))


def make_plan(sources: Sequence[Source], answers: Mapping[str, str], runs_dir: Path) -> list[FilePlan]:
    """Reads all files and looks at what each would become.

    Args:
        sources: The files.
        answers: What they do not say, by field; the same for all of them.
        runs_dir: Where run folders live: duplicates are looked for there.

    Raises:
        ImportRefused: An answer is none that can be given; what is wrong with a file is in its plan.
    """
    given = answering.checked(answers)
    read = [_read(source) for source in sources]
    companions = [item.source for item in read if item.format == detect.COMPANION]
    summaries = [item.source for item in read if item.format == "mlperf-inference" and not item.problem]
    for item in read:
        if item.format == "mlperf-inference":
            _complete(item, companions)
    # What one file lacks is not held against another that says it itself.
    lacking = {name for item in read for draft in item.drafts for name in answering.lacking(draft)}
    return [_file_plan(item, summaries, given, lacking, runs_dir) for item in read]


@dataclass
class _Read:
    """A file with what was found in it, before any answer."""

    source: Source
    format: str | None = None
    drafts: list[Draft] = field(default_factory=list)
    bundled: list[bundle.BundledRun] = field(default_factory=list)
    problem: tuple[str, Mapping[str, Any]] | None = None


def _read(source: Source) -> _Read:
    item = _Read(source)
    try:
        item.format = detect.detect(source)
        if item.format == detect.BUNDLE:
            item.bundled = bundle.read(source)
        elif item.format != detect.COMPANION:
            item.drafts = detect.FORMATS[item.format].read(source)
    except ImportRefused as error:
        item.problem = (error.message_id, error.params)
    return item


def _complete(item: _Read, companions: Sequence[Source]) -> None:
    try:
        item.drafts = [_completed(draft, companions) for draft in item.drafts]
    except ImportRefused as error:
        item.problem = (error.message_id, error.params)


def _companion(source: Source, summaries: Sequence[Source]) -> FilePlan:
    if summaries:
        return FilePlan(source=source, format=detect.COMPANION, companion_of=summaries[0].name)
    problem: tuple[str, Mapping[str, Any]] = ("import-companion-alone", {"file": source.name})
    return FilePlan(source=source, format=detect.COMPANION, problem=problem)


def _file_plan(
    item: _Read, summaries: Sequence[Source], given: Mapping[str, Any], lacking: Set[str], runs_dir: Path
) -> FilePlan:
    source = item.source
    if item.problem or item.format is None:
        return FilePlan(source=source, format=item.format, problem=item.problem)
    if item.format == detect.COMPANION:
        return _companion(source, summaries)
    try:
        if item.format == detect.BUNDLE:
            runs = tuple(_bundled(run, source, runs_dir) for run in item.bundled)
        else:
            sha256 = source.sha256()
            runs = tuple(
                _run_plan(draft, item, sha256, answering.fitting(draft, given, lacking), runs_dir)
                for draft in item.drafts
            )
            _refuse_repeated(runs, source)
    except ImportRefused as error:
        return FilePlan(source=source, format=item.format, problem=(error.message_id, error.params))
    return FilePlan(source=source, format=item.format, runs=runs)


def _completed(draft: Draft, companions: Sequence[Source]) -> Draft:
    for companion in companions:
        before = draft.device_name
        draft = mlperf_inference.with_companion(draft, companion)
        if before and draft.device_name != before:
            raise ImportRefused("import-companion-ambiguous", file=companion.name)
    return draft


def _run_plan(draft: Draft, item: _Read, sha256: str, given: Mapping[str, Any], runs_dir: Path) -> RunPlan:
    source, format_name = item.source, str(item.format)
    run_id = draft.run_id()
    filled = answering.applied(draft, given, source.name)
    state = state_of(runs_dir, run_id)
    # What is here already needs no answers.
    asked, useful = answering.missing(filled) if state != "duplicate" else ((), ())
    record = _record(filled, run_id, detect.FORMATS[format_name].origin, _origin(format_name, sha256, draft, given))
    try:
        rows_of(record, {}, source.path)  # what the index would refuse is refused here
    except RecordError as error:
        raise ImportRefused("import-unreadable", file=source.name, reason=str(error.params.get("reason"))) from error
    return RunPlan(
        run_id=run_id,
        title=draft.title,
        state=state,
        record=record,
        asked=asked,
        useful=useful,
        image=draft.image,
    )


def _origin(format_name: str, sha256: str, draft: Draft, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": format_name,
        "file_sha256": sha256,
        "run_of_file": draft.title,
        "answered": dict(given),
        "time": "from the file" if draft.started_utc else "answered" if "created" in given else "of the import",
    }


def _record(draft: Draft, run_id: str, origin: str, imported: Mapping[str, Any]) -> Record:
    now = utc_now()
    created = draft.started_utc or draft.finished_utc or now
    workload = draft.workload or answering.NOT_PUBLISHED
    kind = draft.device_kind or answering.NOT_PUBLISHED
    record = Record(
        run_id=run_id,
        workload=workload,
        status=draft.status,
        spec=dict(draft.spec),
        conditions=Conditions(workload=workload, **draft.conditions),
        device=DeviceInfo(
            kind=kind, name=draft.device_name or answering.NOT_PUBLISHED, memory_bytes=draft.device_memory_bytes
        ),
        environment=dict(draft.environment),
        created_utc=created,
        started_utc=draft.started_utc,
        finished_utc=draft.finished_utc or created,
        origin=f"imported from {origin}",
        phases=draft.phases,
        series=draft.series,
        metrics=draft.metrics,
        audit=Audit(sync_policy=answering.NOT_PUBLISHED, warnings=draft.warnings),
        details={**{name: value for name, value in draft.details.items() if value is not None}, "import": imported},
    )
    return marked(record)


def state_of(runs_dir: Path, run_id: str) -> State:
    """Whether a run of that id is here."""
    run = RunDir(runs_dir / run_id)
    if not os.path.lexists(run.record_path):
        return "new"
    return "deleted" if run.annotations().get("deleted") is True else "duplicate"


def _bundled(item: bundle.BundledRun, source: Source, runs_dir: Path) -> RunPlan:
    run = RunDir(runs_dir / item.run_id)
    state = state_of(runs_dir, item.run_id)
    if state != "new" and not bundle.same_record(run, item.record):
        raise ImportRefused("bundle-conflict", file=source.name, run_id=item.run_id)
    return RunPlan(run_id=item.run_id, title=item.record.workload, state=state, record=item.record)


def _refuse_repeated(runs: Sequence[RunPlan], source: Source) -> None:
    """A row that stands twice in a file is one run; which is fine, but two folders cannot have one name."""
    seen: set[str] = set()
    for run in runs:
        if run.run_id in seen:
            raise ImportRefused("import-repeated-run", file=source.name, title=run.title)
        seen.add(run.run_id)
