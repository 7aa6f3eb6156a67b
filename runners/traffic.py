"""Bytes that a workload must at least read from a device's memory: the floor under every time. No torch here.

A forward pass reads every weight once for the whole batch, a backward pass once more. Activations, gradients and the
optimizer come on top and are not counted. What a device's caches can keep from one pass to the next is taken off: half
a GiB, which is twice the largest among the devices of `peaks.csv` (256 MB on MI300X). So only models of more than that
have a floor, and a real run is far above it.
"""

from runners.records import Conditions

CACHED_BYTES = 2**29
BYTES_PER_WEIGHT = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
SD1_UNET_PARAMETERS = 859_520_964


def weight_bytes(conditions: Conditions) -> float | None:
    """Of the weights that every pass reads, an unknown precision counting as 1; None for a model not known here."""
    from runners.preflight_training import parameters_of_model

    plain = (conditions.precision or "").removesuffix("-mixed")
    each = BYTES_PER_WEIGHT.get(plain, 1)
    if conditions.workload == "text-to-image":
        return each * SD1_UNET_PARAMETERS if conditions.model == "stable-diffusion-1" else None
    parameters = parameters_of_model(conditions.model or "")
    return None if parameters is None else each * parameters


def least_bytes_per_batch(conditions: Conditions) -> float | None:
    """What one device reads at least for one batch (all steps of its images) or one training step.

    It supposes that each device holds the whole model, as in data parallel runs.
    """
    weights = weight_bytes(conditions)
    if weights is None:
        return None
    passes = 2 if conditions.workload != "text-to-image" else conditions.steps
    return None if passes is None else passes * max(0.0, weights - CACHED_BYTES)
