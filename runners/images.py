"""PNG files that say how they were made, in the text that the common web interfaces read."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

# The names that the web interfaces use for the same samplers.
SAMPLER_NAMES = {"DDIM": "DDIM", "PNDM": "PLMS", "Euler": "Euler", "DPM++ 2M": "DPM++ 2M"}


def parameters_text(
    *,
    prompt: str,
    negative_prompt: str,
    steps: int,
    scheduler: str,
    guidance: float,
    seed: int,
    width_px: int,
    height_px: int,
    model: str,
    extra: dict[str, str],
) -> str:
    """The `parameters` text: prompt, negative prompt, then one line of `Key: value` pairs.

    Args:
        prompt: As it was given.
        negative_prompt: As it was given; left out when empty.
        steps: Denoising steps.
        scheduler: Our name; the file gets the web interfaces' one.
        guidance: Classifier-free guidance scale.
        seed: Of this image, not of the batch.
        width_px: Width.
        height_px: Height.
        model: Which weights.
        extra: More pairs (device, time, versions); values with commas or colons are quoted as JSON.
    """
    pairs = {
        "Steps": str(steps),
        "Sampler": SAMPLER_NAMES[scheduler],
        "CFG scale": f"{guidance:g}",
        "Seed": str(seed),
        "Size": f"{width_px}x{height_px}",
        "Model": model,
        "RNG": "CPU",
        **extra,
    }
    lines = [prompt]
    if negative_prompt:
        lines.append(f"Negative prompt: {negative_prompt}")
    lines.append(", ".join(f"{key}: {_quoted(value)}" for key, value in pairs.items()))
    return "\n".join(lines)


def save_png(image: "Image", path: Path, parameters: str, details: dict[str, Any]) -> None:
    """Writes the image with its texts, to a temporary name first, so that no reader sees half a file."""
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    # iTXt carries any language; the readers of `parameters` take it as they take tEXt.
    add = info.add_text if parameters.isascii() else info.add_itxt
    add("parameters", parameters)
    info.add_text("likeforlike", json.dumps(details))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    image.save(temporary, format="PNG", pnginfo=info)
    temporary.replace(path)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False) if any(mark in value for mark in ',:"\n') else value
