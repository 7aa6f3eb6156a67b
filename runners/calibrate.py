"""How close to this machine's limit: what a calibration measured, and how much of it a run reached. No torch here.

A calibration (`runners.workloads.calibration`) is a run like any other, with its lease, record and grade. The newest
one of each device is kept beside the run folders too, as one small file, so that whoever wants it need not look
through all runs; if that file is lost, calibrating again makes it anew.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runners.flops import flops_per_sample
from runners.lease import lease_name
from runners.records import DeviceInfo, Record, write_json_atomically

FOLDER = ".calibration"
"""Below the folder of runs; no run folder has such a name."""
WORKLOAD = "calibration"
MATMUL, COPY, IDLE = "matmul_{}_tflops", "copy_{}_gb_per_s", "idle_w"
"""Names of its metrics, by precision, and of the detail that holds the idle power."""
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
KEPT_IN = "calibration"
"""Where a run's `details` hold the calibration that it was measured beside."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What one device was measured to do."""

    run_id: str
    created_utc: str
    device: str
    cores: int | None
    matmul_tflops: Mapping[str, float]
    """The fastest matrix product, by precision: fp32, tf32, fp16, bf16."""
    copy_gb_per_s: Mapping[str, float]
    """Read and written bytes of a large copy, by precision."""
    idle_w: float | None = None
    """Mean power before anything ran; None where there is no counter."""
    grade: str | None = None
    """Of its run: C or D where other load may have made it too slow."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            **vars(self),
            "matmul_tflops": dict(self.matmul_tflops),
            "copy_gb_per_s": dict(self.copy_gb_per_s),
        }


@dataclass(frozen=True, kw_only=True)
class Share:
    """How much of the measured limit a run reached on one clock."""

    timed_region: str | None
    precision: str
    """The arithmetic of the limit."""
    tflops: float
    """Of one device: samples per second times FLOPs of a sample."""
    limit_tflops: float

    @property
    def share(self) -> float:
        """1 where the run was as fast as the largest matrix products alone."""
        return self.tflops / self.limit_tflops


def from_record(record: Record) -> Calibration:
    """What a calibration's record says."""

    def rates(name: str) -> dict[str, float]:
        found = {each: record.metric(name.format(each)) for each in PRECISIONS}
        return {each: metric.value for each, metric in found.items() if metric is not None}

    return Calibration(
        run_id=record.run_id,
        created_utc=record.finished_utc,
        device=record.device.name,
        cores=record.device.cores,
        matmul_tflops=rates(MATMUL),
        copy_gb_per_s=rates(COPY),
        idle_w=record.details.get(IDLE),
        grade=record.audit.grade,
    )


def keep(runs_dir: Path, record: Record) -> None:
    """Makes it the newest of its device.

    Raises:
        OSError: The file cannot be written.
    """
    path = _path(runs_dir, record.device)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json_atomically(path, from_record(record).to_json())


def newest(runs_dir: Path, device: DeviceInfo) -> Calibration | None:
    """The newest calibration of that device; None where there is none, or the file is of another device or damaged."""
    with suppress(OSError, ValueError):
        found = from_json(json.loads(_path(runs_dir, device).read_text(encoding="utf-8")))
        # The lock's name says only "cpu-0": the machine may have become another, or the process have fewer cores.
        if found is not None and (found.device, found.cores) == (device.name, device.cores):
            return found
    return None


def from_json(document: object) -> Calibration | None:
    """A calibration from a file or a record's details; None where it is none."""
    if not isinstance(document, dict):
        return None
    try:
        idle_w = document.get("idle_w")
        return Calibration(
            run_id=str(document["run_id"]),
            created_utc=str(document["created_utc"]),
            device=str(document["device"]),
            cores=document["cores"] if isinstance(document["cores"], int) else None,
            matmul_tflops={str(name): float(value) for name, value in document["matmul_tflops"].items()},
            copy_gb_per_s={str(name): float(value) for name, value in document["copy_gb_per_s"].items()},
            idle_w=None if idle_w is None else float(idle_w),
            grade=document["grade"] if isinstance(document.get("grade"), str) else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def calibration_of(record: Record, runs_dir: Path | None = None) -> Calibration | None:
    """The calibration that stood when the run was made, else the newest of its device.

    Args:
        record: Of a run.
        runs_dir: Where run folders are; None for only what the record holds.
    """
    kept = from_json(record.details.get(KEPT_IN))
    if kept is not None or runs_dir is None or record.origin != "measured":
        return kept
    return newest(runs_dir, record.device)


def shares(record: Record, calibration: Calibration) -> list[Share]:
    """The share on each clock of a run; empty where its work has no formula or that precision was not calibrated."""
    precision = arithmetic(record)
    limit = calibration.matmul_tflops.get(precision)
    if not limit or limit <= 0:
        return []
    found = []
    for metric in record.metrics:
        if metric.name not in ("images_per_s", "samples_per_s"):
            continue
        region = metric.timed_region or record.conditions.timed_region
        each = flops_per_sample(replace(record.conditions, timed_region=region))
        if each is not None and metric.value > 0:
            tflops = metric.value / (record.conditions.devices or 1) * each / 1e12
            found.append(Share(timed_region=region, precision=precision, tflops=tflops, limit_tflops=limit))
    return found


def arithmetic(record: Record) -> str:
    """In which arithmetic the heavy work was really done: on NVIDIA, fp32 may have been tf32."""
    plain = (record.conditions.precision or "").removesuffix("-mixed")
    convolutions = record.conditions.workload == "text-to-image"
    switches = ("tf32_matmul", "tf32_convolution") if convolutions else ("tf32_matmul",)
    if plain == "fp32" and record.device.kind == "cuda" and any(record.audit.readings.get(name) for name in switches):
        return "tf32"
    return plain


def _path(runs_dir: Path, device: DeviceInfo) -> Path:
    return runs_dir / FOLDER / f"{lease_name(device.kind, device.index)}.json"
