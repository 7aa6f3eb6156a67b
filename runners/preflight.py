"""What a run will need, before anything starts."""

import json
from pathlib import Path

from runners.device import Backend
from runners.errors import DeviceUnavailable, DoesNotFit
from runners.models import folder_parameters, weights_kind
from runners.paths import BUNDLED_MODEL_DIR
from runners.specs import TextToImageSpec

GIB = 2**30
BYTES_PER_VALUE = {"fp32": 4, "bf16": 2, "fp16": 2}

# Stable Diffusion 1.x: 859.5 M (UNet) + 83.7 M (VAE) + 123.1 M (text encoder) parameters, and the VAE's first width.
SD1_PARAMETERS = 1_066_235_307
SD1_VAE_CHANNELS = 128
# The libraries themselves in a worker process, on the host.
LIBRARIES_BYTES = 600_000_000
# The peak lies in the VAE decoder's last blocks, which hold some ten copies of (pixels x first width): measured 1.3 GiB
# in fp32 over the weights for one 512x512 image of Stable Diffusion 1.x (stock classes, CPU), that is 350 M values.
COPIES_AT_THE_PEAK = 10.5


def weights_bytes(weights: str, precision: str) -> int:
    """Memory of the weights, in bytes; Stable Diffusion 1.x is assumed for what is not on this machine yet."""
    folder = _folder(weights)
    parameters = folder_parameters(folder) if folder is not None else SD1_PARAMETERS
    return parameters * BYTES_PER_VALUE[precision]


def activation_bytes(spec: TextToImageSpec, precision: str) -> int:
    """Estimated peak of one batch over the weights, in bytes.

    Args:
        spec: A specification whose width and height are filled in.
        precision: The number format that will be used.
    """
    area = (spec.width or 512) * (spec.height or 512)
    # Above the published size attention grows faster than the area does.
    growth = max(1.0, area / (512 * 512)) ** 0.2
    values = COPIES_AT_THE_PEAK * area * _vae_channels(spec.weights) * growth
    return int(values * spec.batch_size * BYTES_PER_VALUE[precision])


def _folder(weights: str) -> Path | None:
    kind = weights_kind(weights)
    return BUNDLED_MODEL_DIR if kind == "bundled" else Path(weights).expanduser() if kind == "folder" else None


def _vae_channels(weights: str) -> int:
    folder = _folder(weights)
    if folder is None:
        return SD1_VAE_CHANNELS
    try:
        config = json.loads((folder / "vae" / "config.json").read_text(encoding="utf-8"))
        return int(config["block_out_channels"][0])
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        # The loader says what is wrong with the folder; here the published width has to do.
        return SD1_VAE_CHANNELS


def check_text_to_image(spec: TextToImageSpec, device: Backend, precision: str, *, already_loaded: bool) -> None:
    """Refuses what cannot run on this device.

    Args:
        spec: A specification whose width and height are filled in.
        device: Where it will run.
        precision: The number format that will be used.
        already_loaded: Whether the weights are in the device's memory by now.

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
    free = device.free_memory_bytes()
    weights = 0 if already_loaded else weights_bytes(spec.weights, precision) + LIBRARIES_BYTES
    activations = activation_bytes(spec, precision)
    if free is None or weights + activations <= free:
        return
    one_image = activations / spec.batch_size
    fitting = int((free - weights) // one_image) if free > weights else 0
    raise DoesNotFit(
        "does-not-fit-batch" if fitting else "does-not-fit",
        needed_gib=round((weights + activations) / GIB, 1),
        weights_gib=round(weights / GIB, 1),
        activations_gib=round(activations / GIB, 1),
        available_gib=round(free / GIB, 1),
        device=device.kind,
        **({"fitting": fitting} if fitting else {}),
    )
