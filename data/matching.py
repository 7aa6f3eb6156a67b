"""A published number -> the local run that comes nearest to it, and what cannot be matched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.references import Reference
from runners.errors import DoesNotFit
from runners.preflight import GIB, LIBRARIES_BYTES, activation_bytes, weights_bytes
from runners.preflight_training import check_memory
from runners.records import Conditions, DeviceInfo
from runners.registry import make_spec
from runners.spec_fields import fields_of
from runners.specs import PRECISIONS, SCHEDULERS, SPECS

WARMUP_BATCHES = 2
"""The published rule for images: the first two batches are dropped."""
MEASURED_BATCHES = 6
WARMUP_STEPS, MEASURED_STEPS = 2, 10
"""The fewest that an interval can be given for."""
# bf16-mixed and fp16-mixed are autocast; for images the pure format is what the libraries offer.
_PRECISIONS = {"bf16-mixed": "bf16", "fp16-mixed": "fp16", "tf32": "fp32"}
_NOT_ON: Mapping[str, tuple[str, ...]] = {"cpu": ("fp16",), "mps": ("bf16",)}
"""Formats for which torch has no usable kernels on a kind of device."""


@dataclass(frozen=True, kw_only=True)
class Match:
    """A run like a published one."""

    workload: str
    fields: Mapping[str, Any]
    """Values of its specification; empty where there is no such run."""
    unmatched: tuple[tuple[str, Mapping[str, Any]], ...]
    """What differs from the published run: message ids of `data.messages` with parameters, the heaviest first."""


def match(reference: Reference, device: DeviceInfo) -> Match:
    """The nearest run on this machine.

    Args:
        reference: The published number.
        device: What the run would use; its kind decides on number formats, its memory on the batch.
    """
    conditions = reference.conditions
    if conditions.workload not in SPECS:
        message = ("match-no-workload", {"workload": conditions.workload})
        return Match(workload=conditions.workload, fields={}, unmatched=(message,))
    if conditions.model not in _MODELS.get(conditions.workload, (conditions.model,)):
        message = ("match-no-model", {"model": reference.model_as_published})
        return Match(workload=conditions.workload, fields={}, unmatched=(message,))
    unmatched: list[tuple[str, Mapping[str, Any]]] = []
    if (conditions.devices or 1) > 1:
        unmatched.append(("match-devices", {"devices": conditions.devices}))
    fields: dict[str, Any] = {"weights": "architecture"}
    fields["precision"] = _precision(conditions, device.kind, unmatched)
    if conditions.workload == "text-to-image":
        fields |= _image_fields(reference, unmatched)
        fields |= _fitted(fields, device, unmatched)
    else:
        fields |= _training_fields(reference)
        fields |= _fitted_training(conditions.workload, fields, device, unmatched)
    known = {field.name for field in fields_of(SPECS[conditions.workload])}
    if conditions.workload != "bert-pretraining":  # pretraining begins with random weights anyway
        unmatched.append(("match-weights", {}))
    for name in ("batch_size_per_device", "precision", "timed_region"):
        if getattr(conditions, name) is None:
            unmatched.append(("match-not-published", {"field": name}))
    kept = {name: value for name, value in fields.items() if name in known and value is not None}
    return Match(workload=conditions.workload, fields=kept, unmatched=tuple(unmatched))


def _fitted(
    fields: Mapping[str, Any], device: DeviceInfo, unmatched: list[tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """The batch, or the largest one below it that the device's memory holds by the estimate of `runners.preflight`."""
    if not device.memory_bytes:
        return {}
    values = {name: value for name, value in fields.items() if value is not None}
    precision = str(values.get("precision", "fp32"))
    weights = weights_bytes(str(values["weights"]), precision) + LIBRARIES_BYTES
    one = activation_bytes(make_spec("text-to-image", {**values, "batch_size": 1}), precision)
    asked = int(values["batch_size"])
    fitting = max(1, min(asked, (device.memory_bytes - weights) // one))
    if fitting == asked:
        return {}
    needed, available = (round(value / GIB, 1) for value in (weights + asked * one, device.memory_bytes))
    params = {"batch": asked, "needed_gib": needed, "available_gib": available, "fitting": fitting}
    unmatched.append(("match-memory", params))
    return {"batch_size": fitting, "images": fitting * (WARMUP_BATCHES + MEASURED_BATCHES)}


def _training_fields(reference: Reference) -> dict[str, Any]:
    conditions = reference.conditions
    return {
        "model": conditions.model,
        "batch_size": conditions.batch_size_per_device or 1,
        "steps": MEASURED_STEPS,
        "warmup_steps": WARMUP_STEPS,
        "sequence_length": conditions.sequence_length,
        "source_length": conditions.sequence_length,
        "target_length": conditions.target_length,
        "gradient_checkpointing": conditions.gradient_checkpointing,
    }


def _fitted_training(
    workload: str, fields: Mapping[str, Any], device: DeviceInfo, unmatched: list[tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """A smaller batch, or where even one sample does not fit, the largest model that does."""
    known = {field.name for field in fields_of(SPECS[workload])}
    spec = make_spec(workload, {name: value for name, value in fields.items() if name in known and value is not None})
    try:
        check_memory(spec, device.kind, device.memory_bytes)
    except DoesNotFit as refusal:
        told = refusal.params
    else:
        return {}
    needed_gib = round(float(str(told["state_gib"])) + float(str(told["activations_gib"])), 1)
    params = {"batch": spec.batch_size, "needed_gib": needed_gib, "available_gib": told["available_gib"]}
    if "fitting" in told:
        unmatched.append(("match-memory", {**params, "fitting": told["fitting"]}))
        return {"batch_size": told["fitting"]}
    # First in the list: it is the one that ends the comparison.
    unmatched.insert(0, ("match-model-memory", {**params, "model": spec.model, "smaller": told["smaller"]}))
    return {"batch_size": 1, "model": told["smaller"] if told["smaller"] != "-" else spec.model}


_MODELS = {"text-to-image": ("stable-diffusion-1",), "bert-pretraining": ("bert-base",), "t5-finetuning": ("t5-3b",)}


def _image_fields(reference: Reference, unmatched: list[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    conditions = reference.conditions
    batch_size = conditions.batch_size_per_device or 1
    if conditions.scheduler is not None and conditions.scheduler not in SCHEDULERS:
        unmatched.append(("match-scheduler", {"scheduler": conditions.scheduler}))
    return {
        "width": conditions.width_px or 512,
        "height": conditions.height_px or 512,
        "steps": conditions.steps or 50,
        "guidance": conditions.guidance or 7.5,
        "scheduler": conditions.scheduler if conditions.scheduler in SCHEDULERS else "DDIM",
        "batch_size": batch_size,
        "images": batch_size * (WARMUP_BATCHES + MEASURED_BATCHES),
        "warmup_batches": WARMUP_BATCHES,
        "previews": False,
        "seed": 42,
    }


def _precision(conditions: Conditions, device_kind: str, unmatched: list[tuple[str, Mapping[str, Any]]]) -> str | None:
    published = conditions.precision
    if published is None:
        return None
    wanted = _PRECISIONS.get(published, published)
    if wanted not in PRECISIONS or wanted in _NOT_ON.get(device_kind, ()):
        unmatched.append(("match-precision", {"precision": published, "substitute": "fp32", "device": device_kind}))
        return "fp32"
    # Training in fp16 or bf16 is always mixed with fp32 here, making images never.
    here = wanted if conditions.workload == "text-to-image" or wanted == "fp32" else f"{wanted}-mixed"
    if here != published:
        unmatched.append(("match-mixed", {"precision": published, "substitute": here}))
    return wanted
