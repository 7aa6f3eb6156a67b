"""The words and units that a catalogue row may use. A new word is a new entry here, and nothing else."""

import re
from collections.abc import Mapping

from runners.specs import SCHEDULERS

WORKLOADS = ("text-to-image", "bert-pretraining", "t5-finetuning", "other")
TIERS = ("article", "same-harness", "same-task", "related")
STATUSES = ("published", "not available")
DEVICE_KINDS = ("hpu", "cuda", "rocm", "xpu", "mps", "cpu", "tpu", "ipu", "neuron")

CONDITION_WORDS: Mapping[str, tuple[str, ...]] = {
    "weights": ("real", "architecture", "bundled"),
    "precision": ("fp32", "tf32", "fp16", "bf16", "bf16-mixed", "fp16-mixed", "fp8", "int8"),
    "timed_region": ("denoise+vae", "end-to-end", "unet-loop", "training-steps"),
    "mode": ("eager", "lazy", "graph", "compile"),
    "scheduler": (*SCHEDULERS, "DDPM", "LMS", "Euler a", "Heun", "UniPC", "LCM"),
}
"""Conditions that two rows share only when they use the same word: a misspelt one would look like a difference."""
WARMUP_RULE = re.compile(
    r"none|until-no-trend|first-(batch|step|[2-9]-(batches|steps)|[1-9]\d+-(batches|steps))-dropped"
)

OTHER_METRICS = {"printed_speedup": "x", "device_memory_gb": "GB", "devices_per_server": "devices"}
"""Canonical metrics that are no speeds, with their units."""

SAME_UNIT = {
    "s/img": "s/image",
    "img/s": "images/s",
    "image/s": "images/s",
    "sample/s": "samples/s",
    "step/s": "steps/s",
    "sec": "s",
    "seconds": "s",
    "count": "devices",
    "sequences/s": "samples/s",
    "it/s": "steps/s",
}
"""How sources write a unit, and how we do."""
FACTORS: Mapping[tuple[str, str], float] = {
    ("ms", "s"): 0.001,
    ("min", "s"): 60,
    ("h", "s"): 3600,
    ("ms/image", "s/image"): 0.001,
    ("ms/sample", "s/sample"): 0.001,
    ("ms/step", "s/step"): 0.001,
    ("MB", "GB"): 0.001,
    ("samples/s", "images/s"): 1,  # where an image is what a benchmark calls a sample
}
"""What a value in the first unit is multiplied by to be one in the second."""
RECIPROCALS = frozenset(
    pair for noun in ("image", "sample", "step") for pair in ((f"{noun}s/s", f"s/{noun}"), (f"s/{noun}", f"{noun}s/s"))
)
"""Units of which one is 1 / the other."""
BATCH_SECONDS: Mapping[str, float] = {"s": 1, "s/batch": 1, "ms": 0.001, "ms/batch": 0.001}
"""Units of the time of a whole batch of images, in seconds."""
ROUNDING = 0.005
"""How far a converted value may be from the exact one: sources round to three digits."""


def needed_for(unit: str, canonical_unit: str) -> tuple[str, ...]:
    """The conditions without which a published unit says nothing in ours: how many images a batch or a step made."""
    if canonical_unit != "s/image":
        return ()
    if unit in BATCH_SECONDS:
        return ("batch_size_per_device",)
    return ("batch_size_per_device", "steps") if SAME_UNIT.get(unit, unit) == "steps/s" else ()


def converted(
    value: float, unit: str, canonical_unit: str, *, batch_size: int | None = None, steps: int | None = None
) -> tuple[float, float] | None:
    """A published value in our unit.

    Args:
        value: As published.
        unit: As published.
        canonical_unit: Ours.
        batch_size: Images per batch that the value tells of, where the unit counts batches or steps.
        steps: Denoising steps per image, where the unit counts steps.

    Returns:
        The value, and how far another may be from it, as a share of it; None where no conversion is known.
    """
    if canonical_unit == "s/image" and unit in BATCH_SECONDS:
        return (value * BATCH_SECONDS[unit] / batch_size, ROUNDING) if batch_size else None
    unit = SAME_UNIT.get(unit, unit)
    if canonical_unit == "s/image" and unit == "steps/s":
        return (steps / (value * batch_size), ROUNDING) if steps and batch_size else None
    if unit == canonical_unit:
        return value, 1e-9
    if (unit, canonical_unit) in RECIPROCALS:
        return 1 / value, ROUNDING
    if factor := FACTORS.get((unit, canonical_unit)):
        return value * factor, ROUNDING
    return None
