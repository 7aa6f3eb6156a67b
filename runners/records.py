"""The record: what a run leaves behind, as one JSON document of schema version 1.

A record is the truth about one run; the database is only an index of records. It keeps raw samples (`series`) and the
conditions under which they arose; statistics (`metrics`) are derived from the samples by `runners.stats`.
"""

import dataclasses
import hashlib
import json
import math
import os
import secrets
import stat
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from runners.errors import RecordError

SCHEMA_VERSION = 1
MAX_RECORD_BYTES = 256 * 2**20
"""Long series live beside the record; a larger file was not written by us."""

Status = Literal["ok", "failed", "cancelled", "timeout", "lost"]
STATUSES: tuple[Status, ...] = get_args(Status)


def new_run_id() -> str:
    """A UUIDv7 (RFC 9562): its first 48 bits are the time in ms, so that names sort by age."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = secrets.randbits(74)
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76 | (random_bits >> 62) << 64
    value |= 0b10 << 62 | random_bits & (2**62 - 1)
    return str(uuid.UUID(int=value))


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The canonical fields that a comparison reads; None means "not published" or "does not apply".

    The same fields describe our own runs and published numbers, so that `data.comparability.compare` sees no
    difference between them.
    """

    workload: str
    """text-to-image, bert-pretraining, t5-finetuning, synthetic."""
    model: str | None = None
    """Canonical architecture: stable-diffusion-1, bert-base, t5-3b, likeforlike-bundled, …"""
    weights: str | None = None
    """real, architecture or bundled."""
    width_px: int | None = None
    height_px: int | None = None
    sequence_length: int | None = None
    target_length: int | None = None
    steps: int | None = None
    """Denoising steps, or training steps."""
    scheduler: str | None = None
    guidance: float | None = None
    batch_size_per_device: int | None = None
    devices: int | None = None
    precision: str | None = None
    """fp32, tf32, fp16, bf16, bf16-mixed, fp16-mixed."""
    tf32: bool | None = None
    timed_region: str | None = None
    """denoise+vae, end-to-end, unet-loop, training-steps."""
    warmup_rule: str | None = None
    """first-2-batches-dropped, first-3-batches-dropped, first-batch-dropped, none, …"""
    gradient_checkpointing: bool | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    mode: str | None = None
    """eager, lazy, graph or compile."""
    software: str | None = None
    """Main library and version, as one readable text: "diffusers 0.42.1, torch 2.13.0"."""
    software_year: int | None = None
    epochs: float | None = None

    def hash(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON: equal exactly when all fields are equal."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """The accelerator that did the work."""

    kind: str
    """hpu, cuda, rocm, xpu, mps, cpu or none."""
    name: str
    """What the driver calls it: "GAUDI2", "NVIDIA A100-SXM4-80GB", "AMD EPYC …"."""
    index: int = 0
    memory_bytes: int | None = None
    cores: int | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """Timed values in the order in which they arose."""

    name: str
    """denoise_vae_s, end_to_end_s, text_encoder_s, denoising_s, vae_s, step_s, loss, …"""
    unit: str
    phase: str
    """warm-up or measured."""
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A statistic derived from series."""

    name: str
    """s_per_image, images_per_s, batch_latency_s, samples_per_s, …"""
    value: float
    unit: str
    interval: tuple[float, float] | None = None
    """95 % interval; None below n = 6."""
    n: int
    higher_is_better: bool
    timed_region: str | None = None
    """Which clock: denoise+vae or end-to-end; None where the workload has one."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of the run: load, first-call, warm-up, measured."""

    name: str
    duration_s: float


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file that the run made; the path is relative to the run folder."""

    path: str
    kind: str
    """image, log, tensorboard."""
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ErrorInfo:
    """Why a run did not end ok."""

    type: str
    message_id: str
    params: Mapping[str, Any]
    message: str
    log_tail: str = ""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """How the numbers were taken."""

    sync_policy: str
    """Where the host waited for the device, in words of `runners.measure`."""
    warnings: tuple[str, ...] = ()
    grade: str | None = None
    """A to D; see `runners.audit`. None for imported and failed runs."""
    reasons: tuple[str, ...] = ()
    """Why the grade is not A, worst first: keys of `runners.messages`."""
    readings: Mapping[str, Any] = field(default_factory=dict)
    """What else went on meanwhile, from `runners.audit.readings_between`."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run, whole. See the module's docstring."""

    run_id: str
    workload: str
    status: Status
    spec: Mapping[str, Any]
    conditions: Conditions
    device: DeviceInfo
    environment: Mapping[str, Any]
    created_utc: str
    """ISO 8601 with a trailing Z: when the run was accepted."""
    started_utc: str | None = None
    finished_utc: str
    schema_version: int = SCHEMA_VERSION
    group_id: str | None = None
    repeat: int = 0
    origin: str = "measured"
    """measured, or "imported from …"."""
    preset: str | None = None
    error: ErrorInfo | None = None
    phases: tuple[Phase, ...] = ()
    series: tuple[Series, ...] = ()
    metrics: tuple[Metric, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    audit: Audit = field(default_factory=lambda: Audit(sync_policy="none"))
    details: Mapping[str, Any] = field(default_factory=dict)
    """Workload-specific facts: latents_sha256, seeds, loader, …"""

    def metric(self, name: str, timed_region: str | None = None) -> Metric | None:
        """The metric of that name (and clock, where one is given), or None."""
        for metric in self.metrics:
            if metric.name == name and timed_region in (None, metric.timed_region):
                return metric
        return None


def record_to_json(record: Record) -> dict[str, Any]:
    """The record as plain JSON types; numbers that are not finite become null, for JSON has none."""
    document: dict[str, Any] = _finite(dataclasses.asdict(record))
    document["conditions"]["hash"] = record.conditions.hash()
    return document


def record_from_json(document: object, path: str = "record") -> Record:
    """The record in a JSON document.

    Args:
        document: What `json.loads` gave.
        path: Where it came from, for the message.

    Raises:
        RecordError: It is of a later schema version, or lacks a field, or a field has another type.
    """
    if not isinstance(document, dict):
        raise RecordError("record-unreadable", path=path, reason="it is not a JSON object")
    version = document.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise RecordError("record-unreadable", path=path, reason="schema_version is missing")
    if version > SCHEMA_VERSION:
        raise RecordError("record-from-future", path=path, version=version, supported=SCHEMA_VERSION)
    try:
        return _build_record(document)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RecordError("record-unreadable", path=path, reason=f"{type(error).__name__}: {error}") from error


def read_record(path: Path) -> Record:
    """Reads `record.json`.

    Raises:
        RecordError: The file is missing, cut short, not JSON, or not a record that this version reads.
    """
    try:
        information = path.stat()
        if not stat.S_ISREG(information.st_mode):
            raise RecordError("record-unreadable", path=str(path), reason="it is not a file")
        if information.st_size > MAX_RECORD_BYTES:
            raise RecordError("record-unreadable", path=str(path), reason=f"it has {information.st_size} bytes")
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError("record-unreadable", path=str(path), reason=str(error)) from error
    return record_from_json(document, str(path))


def write_json_atomically(path: Path, document: object) -> None:
    """Writes to a temporary name, flushes to disk, renames: a reader sees the old file or the new, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _build_record(document: dict[str, Any]) -> Record:
    # Unknown keys are left out rather than refused: a later release may add some within the same schema version.
    values = {key: value for key, value in document.items() if key in _names(Record)}
    if values["status"] not in STATUSES:
        raise ValueError(f"status {values['status']!r} is not one of {', '.join(STATUSES)}")
    values["conditions"] = _build(Conditions, values["conditions"])
    values["device"] = _build(DeviceInfo, values["device"])
    values["error"] = _build(ErrorInfo, values["error"]) if values.get("error") else None
    values["audit"] = _build(Audit, values.get("audit") or {"sync_policy": "none"})
    audit = values["audit"]
    values["audit"] = dataclasses.replace(audit, warnings=tuple(audit.warnings), reasons=tuple(audit.reasons))
    for key, cls in (("phases", Phase), ("metrics", Metric), ("artifacts", Artifact)):
        values[key] = tuple(_build(cls, item) for item in values.get(key) or ())
    values["metrics"] = tuple(_checked_metric(metric) for metric in values["metrics"])
    # A null among the samples was NaN or infinity when it was measured.
    values["series"] = tuple(
        _build(Series, {**item, "values": tuple(math.nan if v is None else _number(v) for v in item["values"])})
        for item in values.get("series") or ()
    )
    for key in ("spec", "environment"):
        if not isinstance(values[key], dict):
            raise TypeError(f"{key} is not an object")
    for key in ("run_id", "workload", "created_utc", "finished_utc", "origin"):
        if not isinstance(values.get(key, ""), str):
            raise TypeError(f"{key} is not a text")
    if not isinstance(values.get("repeat", 0), int):
        raise TypeError("repeat is not a whole number")
    return Record(**values)


def _checked_metric(metric: Metric) -> Metric:
    if not isinstance(metric.name, str) or not isinstance(metric.unit, str):
        raise TypeError("a metric's name or unit is not a text")
    # A bound that was not finite became null when it was written; half an interval says nothing.
    bounded = metric.interval is not None and None not in (metric.interval[0], metric.interval[1])
    interval = (_number(metric.interval[0]), _number(metric.interval[1])) if metric.interval and bounded else None
    # null is what a value that was not finite became when it was written.
    value = math.nan if metric.value is None else _number(metric.value)
    return dataclasses.replace(metric, value=value, interval=interval, n=int(metric.n))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _build(cls: Any, values: dict[str, Any]) -> Any:
    names = _names(cls)
    return cls(**{key: value for key, value in values.items() if key in names})


def _names(cls: Any) -> set[str]:
    return {item.name for item in dataclasses.fields(cls)}
