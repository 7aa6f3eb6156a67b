"""What a run will need, before anything starts."""

import dataclasses

from runners.device import Backend
from runners.errors import DeviceUnavailable, DoesNotFit
from runners.models import weights_kind
from runners.specs import TextToImageSpec

GIB = 2**30
BYTES_PER_VALUE = {"fp32": 4, "bf16": 2, "fp16": 2}

# Stable Diffusion 1.x: 859.5 M (UNet) + 83.7 M (VAE) + 123.1 M (text encoder) parameters.
SD1_PARAMETERS = 1_066_235_307
# The libraries themselves in a worker process, on the host.
LIBRARIES_BYTES = 600_000_000
# Peak activations of one 512x512 image, in values, at the VAE decoder's last blocks and the UNet's widest attention:
# measured 1.3 GiB in fp32 over the weights (stock classes, CPU); attention grows with the square of the pixels.
SD1_ACTIVATION_VALUES = 350_000_000


def needed_bytes(spec: TextToImageSpec, precision: str) -> int:
    """Estimated peak memory of a Stable Diffusion 1.x run, in bytes: weights, activations and libraries.

    Args:
        spec: A specification whose width and height are filled in.
        precision: The number format that will be used.
    """
    per_value = BYTES_PER_VALUE[precision]
    width, height = spec.width or 512, spec.height or 512
    area = width * height / (512 * 512)
    activations = SD1_ACTIVATION_VALUES * per_value * spec.batch_size * max(area, area**1.2)
    return int(SD1_PARAMETERS * per_value + activations + LIBRARIES_BYTES)


def check_text_to_image(spec: TextToImageSpec, device: Backend, precision: str) -> None:
    """Refuses what cannot run on this device.

    Raises:
        DeviceUnavailable: The device does not run that precision.
        DoesNotFit: The estimate exceeds the free memory; the message shows the sum and what would fit.
    """
    usable = device.precisions()
    if precision not in usable:
        raise DeviceUnavailable(
            "precision-unsupported",
            device=device.kind,
            precision=precision,
            reason="torch has no usable kernels for it there",
            alternatives=", ".join(usable),
        )
    if weights_kind(spec.weights) == "bundled":
        return
    free = device.free_memory_bytes()
    needed = needed_bytes(spec, precision)
    if free is None or needed <= free:
        return
    fitting = _fitting_batch_size(spec, precision, free)
    weights = SD1_PARAMETERS * BYTES_PER_VALUE[precision] + LIBRARIES_BYTES
    raise DoesNotFit(
        "does-not-fit-batch" if fitting else "does-not-fit",
        needed_gib=round(needed / GIB, 1),
        weights_gib=round(weights / GIB, 1),
        activations_gib=round((needed - weights) / GIB, 1),
        available_gib=round(free / GIB, 1),
        device=device.kind,
        **({"fitting": fitting} if fitting else {}),
    )


def _fitting_batch_size(spec: TextToImageSpec, precision: str, free: int) -> int:
    """The largest smaller batch that fits; 0 when not even one image does."""
    for batch_size in range(spec.batch_size - 1, 0, -1):
        if needed_bytes(dataclasses.replace(spec, batch_size=batch_size, images=batch_size), precision) <= free:
            return batch_size
    return 0
