"""Carries one run out in this process and leaves its record: used by the run's own child process and by the worker."""

import dataclasses
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from runners import audit, calibrate, environment
from runners.device import Backend, backend, select
from runners.energy import Meter, with_energy
from runners.errors import Cancelled, DeviceUnavailable, DoesNotFit, RunnersError, SpecError
from runners.lease import Lease, lease_name, take
from runners.plausibility import marked
from runners.records import (
    Artifact,
    Audit,
    Conditions,
    DeviceInfo,
    ErrorInfo,
    Metric,
    Phase,
    Record,
    Series,
    Status,
)
from runners.registry import load_function, make_spec, workload
from runners.reserve import is_disk_full
from runners.rundir import Request, RunDir, sha256_of, utc_now

# Progress lines closer together than this are left out (except the first and last of a phase): a reader polls once a
# second or so, and a step of the bundled model takes only some 30 ms.
PROGRESS_INTERVAL_S = 0.15

REFUSALS = (SpecError, DeviceUnavailable, DoesNotFit)
"""Errors by which nothing was run: what was asked for is impossible here."""
UNKNOWN_WORKLOAD = "unknown"


@dataclass
class RunContext:
    """What a workload gets besides its specification."""

    run_dir: RunDir
    device: Backend
    models: dict[str, Any] = field(default_factory=dict)
    """Loaded models that outlive one run; the worker passes the same dict again."""
    energy: Meter | None = None
    """Reads the device's energy counter while what is measured runs."""
    quiet: bool = False
    """Whether another process tells how far the run is."""
    _last_progress_s: float = 0.0

    def progress(self, phase: str, step: int = 0, steps: int = 0, **values: object) -> None:
        """Tells how far the run is; cheap enough to be called at every step."""
        now = time.monotonic()
        if self.quiet:
            return
        if 0 < step < steps and now - self._last_progress_s < PROGRESS_INTERVAL_S:
            return
        self._last_progress_s = now
        self.run_dir.append_event("progress", phase=phase, step=step, steps=steps, **values)

    def check_cancelled(self) -> None:
        """Called at every step.

        Raises:
            Cancelled: Somebody asked the run to stop.
        """
        if self.run_dir.cancel_asked():
            raise Cancelled


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a workload returns; the rest of the record is the same for all."""

    conditions: Conditions
    phases: tuple[Phase, ...] = ()
    series: tuple[Series, ...] = ()
    metrics: tuple[Metric, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    audit: Audit
    details: Mapping[str, Any] = field(default_factory=dict)


def all_refusals() -> list[type[RunnersError]]:
    """`REFUSALS` with their subclasses: what the error's type of a refused run may be."""
    return [*REFUSALS, *(kind for refusal in REFUSALS for kind in refusal.__subclasses__())]


def choose_device(request: Request, wanted: str) -> Backend:
    """The backend a run uses: none for workloads without torch.

    Raises:
        DeviceUnavailable: The wanted device is not here.
    """
    if wanted == "auto" and not workload(request.workload).needs_torch:
        return backend("none")
    return select(wanted)


def execute(
    run_dir: RunDir,
    models: dict[str, Any] | None = None,
    leases: dict[str, Lease] | None = None,
    work: Callable[[Any, RunContext], Outcome] | None = None,
) -> Record:
    """Runs what `spec.json` asks for and writes the record; while another process has the device, it waits.

    Args:
        run_dir: The run's folder.
        models: Loaded models to use and to add to.
        leases: Devices that stay held after the run, by name, because models remain on them.
        work: What to do instead of the workload's own function.

    Returns:
        The record: ok, failed or cancelled. A run that was refused before it began (bad specification, missing
        device, does not fit) is a failed one whose error is of a class in `REFUSALS`.
    """
    spec, info, started_utc = None, None, None
    with run_dir.hold():
        try:
            request = run_dir.request()
            spec = make_spec(request.workload, request.fields)
            device = choose_device(request, spec.device)
            info = device.info()
            with _leased(run_dir, lease_name(info.kind, info.index), request, leases):
                if run_dir.cancel_asked():
                    raise Cancelled  # while it waited; it has not begun
                started_utc = utc_now()
                run_dir.append_event("started", pid=os.getpid(), device=dataclasses.asdict(info))
                context = RunContext(run_dir=run_dir, device=device, models=models if models is not None else {})
                context.energy = Meter(info.kind, info.index)
                context.energy.prepare()
                before = audit.read()
                outcome = (work or load_function(request.workload))(spec, context)
                outcome = _beside_the_limit(outcome, context, info)
                readings = audit.readings_between(before, audit.read(), os.cpu_count() or 1)
            record = marked(_success_record(request, spec, _graded(outcome, info, readings), info, started_utc))
        except RunnersError as error:
            status: Status = "cancelled" if isinstance(error, Cancelled) else "failed"
            record = failure_record(run_dir, status, error, info, started_utc, spec)
        except Exception as error:  # outermost frame of a run: whatever the libraries raise becomes its record
            traceback.print_exc(file=sys.stderr)
            record = failure_record(run_dir, "failed", _explained(error, info, spec), info, started_utc, spec)
        record = write_final(run_dir, record)
        if record.workload == calibrate.WORKLOAD and record.status == "ok":
            with suppress(OSError):  # the record has it all; calibrating again makes the file
                calibrate.keep(run_dir.path.parent, record)
        return record


def _beside_the_limit(outcome: Outcome, context: RunContext, info: DeviceInfo) -> Outcome:
    """The outcome with its energy, and the calibration that stands while it was measured."""
    found = calibrate.newest(context.run_dir.path.parent, info)
    if context.energy is not None:
        outcome = with_energy(outcome, context.energy, found.idle_w if found else None)
    if found is None or outcome.conditions.workload in (calibrate.WORKLOAD, "synthetic"):
        return outcome
    return dataclasses.replace(outcome, details={**outcome.details, calibrate.KEPT_IN: found.to_json()})


def _graded(outcome: Outcome, info: DeviceInfo, readings: dict[str, Any]) -> Outcome:
    said = outcome.audit
    found = audit.reasons(readings, said.warnings, outcome.metrics, info.kind, said.sync_policy)
    graded = dataclasses.replace(said, grade=audit.grade(found), reasons=tuple(found), readings=readings)
    return dataclasses.replace(outcome, audit=graded)


def write_final(run_dir: RunDir, record: Record) -> Record:
    """Writes the record, or where even the reserved disk space does not hold it, a small one that says so."""
    try:
        run_dir.write_record(record)
    except OSError as problem:
        if not is_disk_full(problem):
            raise
        record = failure_record(run_dir, "failed", RunnersError("disk-full", path=str(run_dir.path.parent)))
        run_dir.write_record(record)
    return record


@contextmanager
def _leased(run_dir: RunDir, name: str, request: Request, kept: dict[str, Lease] | None) -> Iterator[None]:
    """Holds the device; where leases are kept, the one from the last run is taken over, and others are let go."""
    told: list[str] = []

    def waiting(holder: str) -> None:
        if run_dir.cancel_asked():
            raise Cancelled
        if told[-1:] != [holder]:
            told.append(holder)
            run_dir.append_event("waiting", device=name, holder=holder)

    if kept is not None and name in kept:
        yield
        return
    for other in list(kept or {}):
        # Models on another device are of no use to this run, and that device may be of use to others.
        (kept or {}).pop(other).release()
    held = take(name, f"run {request.run_id}, {request.workload}", waiting=waiting)
    if kept is not None:
        kept[name] = held
        yield
        return
    with held:
        yield


def failure_record(
    run_dir: RunDir,
    status: Status,
    error: RunnersError,
    info: DeviceInfo | None = None,
    started_utc: str | None = None,
    spec: Any = None,
) -> Record:
    """The record of a run that did not end ok; made by the run itself, or by its parent when it cannot.

    Args:
        run_dir: The run's folder; the end of its log goes into the record.
        status: failed, cancelled, timeout or lost.
        error: What happened.
        info: The device, where it was known.
        started_utc: When it started, where it did.
        spec: The checked specification, where there is one.
    """
    request = _request_or_what_is_known(run_dir)
    if info is None:
        info, started_utc = _what_the_run_said(run_dir)
    fields = dataclasses.asdict(spec) if spec is not None else dict(request.fields)
    batch_size = fields.get("batch_size")
    return Record(
        run_id=request.run_id,
        workload=request.workload,
        status=status,
        spec=fields,
        conditions=Conditions(
            workload=request.workload,
            batch_size_per_device=batch_size if isinstance(batch_size, int) else None,
        ),
        device=info,
        environment=environment.describe(),
        created_utc=request.created_utc,
        started_utc=started_utc,
        finished_utc=utc_now(),
        preset=request.preset,
        group_id=request.group_id,
        repeat=request.repeat,
        error=ErrorInfo(
            type=type(error).__name__,
            message_id=error.message_id,
            params=error.params,
            message=str(error),
            log_tail=run_dir.log_tail(),
        ),
        artifacts=kept_images(run_dir),
    )


def _request_or_what_is_known(run_dir: RunDir) -> Request:
    """What was asked for; of a damaged specification only the run's id is left."""
    try:
        return run_dir.request()
    except SpecError:
        return Request(run_id=run_dir.run_id, workload=UNKNOWN_WORKLOAD, fields={}, created_utc=utc_now())


def _what_the_run_said(run_dir: RunDir) -> tuple[DeviceInfo, str | None]:
    """Device and start from the run's own event; a damaged one, or one of another version, tells what it can."""
    started = run_dir.latest_event("started") or {}
    told = started.get("device")
    known = {item.name for item in dataclasses.fields(DeviceInfo)}
    values = {key: value for key, value in told.items() if key in known} if isinstance(told, dict) else {}
    device = DeviceInfo(**{"kind": "none", "name": "not known", **values})
    return device, started["t"] if isinstance(started.get("t"), str) else None


def kept_images(run_dir: RunDir) -> tuple[Artifact, ...]:
    """The images in the run folder, with their hashes."""
    return tuple(
        Artifact(path=f"images/{path.name}", kind="image", sha256=sha256_of(path))
        for path in sorted(run_dir.images_dir.glob("*.png"))
        if path.is_file()
    )


def _success_record(request: Request, spec: Any, outcome: Outcome, info: DeviceInfo, started_utc: str) -> Record:
    return Record(
        run_id=request.run_id,
        workload=request.workload,
        status="ok",
        spec=dataclasses.asdict(spec),
        conditions=outcome.conditions,
        device=info,
        environment=environment.describe(),
        created_utc=request.created_utc,
        started_utc=started_utc,
        finished_utc=utc_now(),
        preset=request.preset,
        group_id=request.group_id,
        repeat=request.repeat,
        phases=outcome.phases,
        series=outcome.series,
        metrics=outcome.metrics,
        artifacts=outcome.artifacts,
        audit=outcome.audit,
        details=outcome.details,
    )


def _explained(error: Exception, info: DeviceInfo | None, spec: Any) -> RunnersError:
    # CUDA, XPU and HPU raise torch.OutOfMemoryError or a RuntimeError that says so; the CPU allocator a RuntimeError.
    text = str(error)
    out_of_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if out_of_memory or "out of memory" in text.lower() or "can't allocate memory" in text:
        return RunnersError(
            "out-of-memory", device=info.name if info else "?", batch_size=getattr(spec, "batch_size", 1)
        )
    if isinstance(error, OSError) and is_disk_full(error):
        return RunnersError("disk-full", path=str(error.filename or ""))
    return RunnersError("unexpected", type=type(error).__name__, text=text[:2000])
