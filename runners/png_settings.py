"""Settings read back from a PNG: from our own files and those of the common Stable Diffusion web interfaces.

LikeForLike, AUTOMATIC1111, Forge, SD.Next, stable-diffusion.cpp   text "parameters": prompt, negative prompt, and a
                                                                   line of `Key: value` pairs
Fooocus    text "parameters" that is a JSON object
ComfyUI    text "prompt": the graph of nodes as JSON
InvokeAI   text "invokeai_metadata": a JSON object

Nothing but the text chunks before the image data is read: no pixel is decoded.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from runners.errors import SpecError
from runners.images import SAMPLER_NAMES
from runners.registry import make_spec
from runners.specs import PRECISIONS, SCHEDULERS

MAX_FILE_BYTES = 50_000_000
MAX_TEXT_CHARACTERS = 2_000_000
MAX_NODES = 2_000
MAX_DEPTH = 40

# Names of the same samplers elsewhere, in lower case. Ancestral and SDE variants are other algorithms.
_SAMPLERS = {
    **{name.lower(): ours for ours, name in SAMPLER_NAMES.items()},
    **{name.lower(): name for name in SCHEDULERS},
    "ddim": "DDIM",
    "plms": "PNDM",
    "pndm": "PNDM",
    "euler": "Euler",
    "dpm++ 2m": "DPM++ 2M",
    "dpmpp_2m": "DPM++ 2M",
    "dpm++2m": "DPM++ 2M",
}
# What a file says about itself and not about how the image was made.
_INFORMATION = {
    *("version", "model hash", "device", "software", "time", "latents sha256", "rng", "created", "app_version"),
    *("torch", "diffusers", "transformers", "precision used"),
}
_PAIR = re.compile(r'\s*([\w][\w \-/+]*?):\s*("(?:\\.|[^\\"])*"|[^,]*)(?:,|$)')


@dataclass(frozen=True, kw_only=True)
class PngSettings:
    """What a file tells about how its image was made."""

    origin: str
    """The program that wrote the settings."""
    fields: dict[str, Any]
    """Fields of a text-to-image specification; each is one that it accepts."""
    left_out: tuple[tuple[str, str], ...]
    """What the file says besides and could not be taken over: name and value, as they stand there."""


def read_png_settings(content: bytes) -> PngSettings:
    """Reads the settings of one file.

    Args:
        content: The whole file.

    Raises:
        SpecError: It is too large, no PNG, damaged, or says nothing about how it was made.
    """
    texts = _texts(content)
    for name, read in _READERS.items():
        if name in texts:
            found = read(texts[name])
            if found is not None:
                return found
    raise SpecError("png-without-settings", found=", ".join(sorted(texts)) or "-")


def _texts(content: bytes) -> dict[str, str]:
    from PIL import Image, UnidentifiedImageError

    if len(content) > MAX_FILE_BYTES:
        raise SpecError("png-too-large", size_bytes=len(content), maximum_bytes=MAX_FILE_BYTES)
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise SpecError("png-not-a-png")
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            found = dict(image.info)
    except UnidentifiedImageError:
        raise SpecError("png-damaged", reason="it cannot be read") from None
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        # Pillow raises these for damaged chunks and for texts that unpack to more than they should.
        raise SpecError("png-damaged", reason=str(error)[:200]) from error
    return {str(key): value for key, value in found.items() if isinstance(value, str) and value.strip()}


def _from_parameters(text: str) -> PngSettings | None:
    text = text[:MAX_TEXT_CHARACTERS]
    document = _json_object(text)
    if document is not None:
        return _from_fooocus(document)
    lines = text.strip().split("\n")
    pairs = [(key.strip(), _unquoted(value.strip())) for key, value in _PAIR.findall(lines[-1])]
    if len(pairs) < 3:
        return _settings("AUTOMATIC1111", {"prompt": text.strip()}, [])
    prompt: list[str] = []
    negative: list[str] = []
    target = "prompt"
    for line in lines[:-1]:
        if line.startswith("Negative prompt:"):
            target, line = "negative", line.removeprefix("Negative prompt:").lstrip()
        (prompt if target == "prompt" else negative).append(line)
    told = {key.lower(): value for key, value in pairs}
    ours = told.get("version", "").startswith("LikeForLike")
    known = {"steps": "steps", "cfg scale": "guidance", "seed": "seed", "sampler": "scheduler", "size": "size"}
    values: dict[str, Any] = {"prompt": "\n".join(prompt).strip(), "negative_prompt": "\n".join(negative).strip()}
    values |= {field: told[key] for key, field in known.items() if key in told}
    values |= {"weights": told.get("model"), "precision": told.get("precision") if ours else None}
    taken = {*known, "model", "rng", *(["precision"] if ours else [])}
    rest = [(key, value) for key, value in pairs if key.lower() not in taken]
    if told.get("rng", "GPU").upper() != "CPU":
        rest.append(("RNG", told.get("rng", "GPU")))
    return _settings("LikeForLike" if ours else "AUTOMATIC1111", values, rest)


def _from_fooocus(document: dict[str, Any]) -> PngSettings | None:
    values = {
        "prompt": document.get("prompt"),
        "negative_prompt": document.get("negative_prompt"),
        "steps": document.get("steps"),
        "guidance": document.get("guidance_scale"),
        "seed": document.get("seed"),
        "scheduler": document.get("sampler"),
        "weights": document.get("base_model"),
        "size": "x".join(re.findall(r"\d+", str(document.get("resolution", "")))[:2]),
    }
    used = {*values, "guidance_scale", "sampler", "base_model", "resolution"}
    return _settings("Fooocus", values, [(str(k), _short(v)) for k, v in document.items() if k not in used])


def _from_invokeai(text: str) -> PngSettings | None:
    document = _json_object(text)
    if document is None:
        return None
    model = document.get("model")
    values = {
        "prompt": document.get("positive_prompt"),
        "negative_prompt": document.get("negative_prompt"),
        "steps": document.get("steps"),
        "guidance": document.get("cfg_scale"),
        "seed": document.get("seed"),
        "scheduler": document.get("scheduler"),
        "width": document.get("width"),
        "height": document.get("height"),
        "weights": model.get("name") or model.get("model_name") if isinstance(model, dict) else model,
    }
    used = {"positive_prompt", "negative_prompt", "steps", "cfg_scale", "seed", "scheduler", "width", "height", "model"}
    rest = [(str(key), _short(value)) for key, value in document.items() if key not in used and value not in (None, [])]
    return _settings("InvokeAI", values, rest)


def _from_comfyui(text: str) -> PngSettings | None:
    graph = _json_object(text)
    if graph is None:
        return None
    nodes = {str(key): node for key, node in list(graph.items())[:MAX_NODES] if _is_node(node)}
    sampler = next(
        (node for node in nodes.values() if "sampler_name" in node["inputs"] and "steps" in node["inputs"]), None
    )
    if sampler is None:
        return None
    told = sampler["inputs"]
    latent = _upstream(nodes, told.get("latent_image"), lambda node: "width" in node["inputs"])
    size = latent["inputs"] if latent else {}
    checkpoint = _upstream(nodes, told.get("model"), lambda node: "ckpt_name" in node["inputs"])
    values = {
        "prompt": _text_of(nodes, told.get("positive")),
        "negative_prompt": _text_of(nodes, told.get("negative")),
        "steps": told.get("steps"),
        "guidance": told.get("cfg"),
        "seed": told.get("seed", told.get("noise_seed")),
        "scheduler": told.get("sampler_name"),
        "width": size.get("width"),
        "height": size.get("height"),
        "weights": checkpoint["inputs"]["ckpt_name"] if checkpoint else None,
    }
    rest = [(name, _short(told[name])) for name in ("scheduler", "denoise") if name in told]
    used = {"KSampler", "KSamplerAdvanced", "CLIPTextEncode", "VAEDecode", "SaveImage", "PreviewImage"}
    used |= {"EmptyLatentImage", "CheckpointLoaderSimple"}
    others = sorted({str(node["class_type"]) for node in nodes.values()} - used)
    return _settings("ComfyUI", values, [*rest, *(("node", name) for name in others)])


def _is_node(node: object) -> bool:
    return isinstance(node, dict) and isinstance(node.get("class_type"), str) and isinstance(node.get("inputs"), dict)


def _upstream(nodes: dict[str, Any], link: object, wanted: Callable[[Any], bool]) -> Any:
    """The nearest node that feeds a link and is of the wanted kind, or None."""
    for node in _feeding(nodes, link):
        if wanted(node):
            return node
    return None


def _feeding(nodes: dict[str, Any], link: object) -> Iterator[Any]:
    """The nodes before a link, nearest first. A graph of a broken file may have circles: each node comes once."""
    level, seen = [link], set[str]()
    for _ in range(MAX_DEPTH):
        following: list[object] = []
        for item in level:
            name = str(item[0]) if isinstance(item, list) and len(item) == 2 else None
            if name is None or name in seen or name not in nodes:
                continue
            seen.add(name)
            yield nodes[name]
            following += [value for value in nodes[name]["inputs"].values() if isinstance(value, list)]
        level = following


def _text_of(nodes: dict[str, Any], link: object) -> str | None:
    for node in _feeding(nodes, link):
        for name in ("text", "text_g", "string", "value", "prompt"):
            if isinstance(node["inputs"].get(name), str):
                return str(node["inputs"][name])
    return None


def _settings(origin: str, told: dict[str, Any], rest: list[tuple[str, str]]) -> PngSettings | None:
    """Keeps what the specification accepts; anything else is listed as left out."""
    size = re.fullmatch(r"\s*(\d+)\s*x\s*(\d+)\s*", str(told.pop("size", "")))
    if size:
        told |= {"width": size[1], "height": size[2]}
    fields: dict[str, Any] = {}
    left_out: list[tuple[str, str]] = []
    for name, value in told.items():
        taken = _taken(name, value)
        if taken is not None:
            fields[name] = taken
        elif value not in (None, ""):
            left_out.append((name, _short(value)))
    left_out += [(name, value) for name, value in rest if name.lower() not in _INFORMATION or name == "RNG"]
    if not fields.get("prompt") and len(fields) < 2:
        return None
    return PngSettings(origin=origin, fields=fields, left_out=tuple(left_out[:60]))


def _taken(name: str, value: Any) -> Any:
    """The value as the specification's field takes it, or None."""
    if name == "precision":
        return value if value in PRECISIONS else None
    if name == "scheduler":
        return _SAMPLERS.get(str(value).strip().lower())
    if name == "weights":
        # A name in a file is no path on this machine: only what means the same everywhere is taken.
        return value if value in ("bundled", "architecture") or _is_hub_id(value) else None
    if value is None or isinstance(value, bool | list | dict):
        return None
    if name in ("prompt", "negative_prompt"):
        return str(value) if str(value).strip() else None
    try:
        number: float = float(str(value)) if name == "guidance" else int(str(value).strip().removesuffix(".0"))
        make_spec("text-to-image", {"prompt": "-", name: number})
    except (ValueError, OverflowError, SpecError):
        return None
    return number


def _is_hub_id(value: object) -> bool:
    return (
        isinstance(value, str) and re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", value) is not None and ".." not in value
    )


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value.strip('"')


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else text[:119] + "…"


_READERS: dict[str, Callable[[str], PngSettings | None]] = {
    "invokeai_metadata": _from_invokeai,
    "parameters": _from_parameters,
    "prompt": _from_comfyui,
}
