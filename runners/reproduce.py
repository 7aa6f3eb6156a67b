"""The same images again: as a shell command of LikeForLike, and as a script of a few lines that needs diffusers only.

Both make a run's images in the same batches, since arithmetic in another batch size may round differently.
"""

import shlex
from typing import Any

from runners.errors import SpecError
from runners.models import weights_kind
from runners.paths import BUNDLED_MODEL_DIR, PROJECT_DIR
from runners.records import Record
from runners.spec_fields import fields_of
from runners.specs import SPECS, TextToImageSpec, resolve_text_to_image, spec_from_fields

_SCHEDULER_CLASSES = {
    "DDIM": ("DDIMScheduler", ""),
    "PNDM": ("PNDMScheduler", ", skip_prk_steps=True"),
    "Euler": ("EulerDiscreteScheduler", ""),
    "DPM++ 2M": ("DPMSolverMultistepScheduler", ""),
}
_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def shell_command(record: Record) -> str:
    """The command that runs the same again; fields at their defaults are left out."""
    parts = ["python", "-m", "runners", "run", record.workload]
    spec_class = SPECS.get(record.workload)
    defaults = {field.name: field.default for field in fields_of(spec_class)} if spec_class else {}
    for name, value in record.spec.items():
        if value is not None and (name not in defaults or value != defaults[name]):
            parts += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(parts)


def python_snippet(record: Record, index: int = 0) -> str | None:
    """A script that makes one image of a text-to-image run and saves it as `image.png`.

    Args:
        record: A run that ended well.
        index: Which of its images.

    Returns:
        The script, or None where it would make another image: with random weights, on a Gaudi (whose pipeline is
        another one), or where the record does not say enough.
    """
    if record.workload != "text-to-image" or record.device.kind in ("hpu", "none"):
        return None
    try:
        spec: TextToImageSpec = resolve_text_to_image(spec_from_fields("text-to-image", record.spec))
    except SpecError:
        return None  # written by another program, or by another version of this one
    precision = record.conditions.precision
    kind = weights_kind(spec.weights)
    if kind == "architecture" or precision not in _DTYPES:
        return None
    device = "cuda" if record.device.kind == "rocm" else record.device.kind
    model = _bundled_path() if kind == "bundled" else spec.weights
    scheduler, extra = _SCHEDULER_CLASSES[spec.scheduler]
    first = index - index % spec.batch_size
    seeds = [spec.seed + first + number for number in range(spec.batch_size)]
    values: dict[str, Any] = {
        "prompt": spec.prompt,
        "negative_prompt": spec.negative_prompt or None,
        "num_images_per_prompt": len(seeds),
        "num_inference_steps": spec.steps,
        "guidance_scale": spec.guidance,
        "width": spec.width,
        "height": spec.height,
    }
    arguments = "".join(f"    {name}={value!r},\n" for name, value in values.items() if value is not None)
    return f"""import torch
from diffusers import {scheduler}, StableDiffusionPipeline

pipe = StableDiffusionPipeline.from_pretrained(
    {model!r},
    torch_dtype=torch.{_DTYPES[precision]},
    use_safetensors=True,
    safety_checker=None,
    requires_safety_checker=False,
).to({device!r})
pipe.scheduler = {scheduler}.from_config(pipe.scheduler.config{extra})

# The starting noise comes from the CPU, one generator per image, so that a seed means the same on every device.
shape = (
    pipe.unet.config.in_channels,
    {spec.height} // pipe.vae_scale_factor,
    {spec.width} // pipe.vae_scale_factor,
)
noise = [torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed)) for seed in {seeds!r}]
images = pipe(
{arguments}    latents=torch.stack(noise).to({device!r}, torch.{_DTYPES[precision]}),
).images
images[{index % spec.batch_size}].save("image.png")
"""


def _bundled_path() -> str:
    """Relative to the checkout, which is where the command of the same page works too."""
    return str(BUNDLED_MODEL_DIR.relative_to(PROJECT_DIR))
