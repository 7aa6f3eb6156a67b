"""Which models can be chosen, and whether a folder of weights is safe and whole enough to be loaded. No torch."""

import json
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runners.errors import WeightsError
from runners.messages import N_
from runners.paths import BUNDLED_MODEL_DIR

HUB_IDS = ("CompVis/stable-diffusion-v1-4", "stable-diffusion-v1-5/stable-diffusion-v1-5")

MAX_HEADER_BYTES = 100_000_000
"""The safetensors format's own limit."""

_PICKLED_SUFFIXES = (".bin", ".ckpt", ".pt", ".pth", ".pkl")
_COMPONENTS = ("unet", "vae", "text_encoder")
_PIPELINE_CLASSES = ("StableDiffusionPipeline", "GaudiStableDiffusionPipeline")
# model_index.json may name any class, and an older diffusers (the Gaudi set's) runs code that lies beside it. So every
# entry must be one that a Stable Diffusion 1.x pipeline is made of: component -> library -> classes.
_COMPONENT_CLASSES: dict[str, dict[str, tuple[str, ...]]] = {
    "unet": {"diffusers": ("UNet2DConditionModel",)},
    "vae": {"diffusers": ("AutoencoderKL",)},
    "text_encoder": {"transformers": ("CLIPTextModel",)},
    "tokenizer": {"transformers": ("CLIPTokenizer", "CLIPTokenizerFast")},
    "scheduler": {
        "diffusers": (
            *("DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler", "EulerAncestralDiscreteScheduler"),
            *("DPMSolverMultistepScheduler", "LMSDiscreteScheduler", "DDPMScheduler", "HeunDiscreteScheduler"),
            *("UniPCMultistepScheduler", "DEISMultistepScheduler"),
        )
    },
}
# Never loaded (the safety checker is off), so only their libraries are checked; null means "none".
_OPTIONAL_COMPONENTS = ("safety_checker", "feature_extractor", "image_encoder")
_LIBRARIES = ("diffusers", "transformers", "stable_diffusion")


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """One entry of the model list."""

    id: str
    """What goes into the specification's `weights`."""
    title: str
    kind: str
    """bundled, architecture, cached or hub."""
    cached: bool
    """Whether it can be loaded without the network."""


def list_models() -> list[ModelChoice]:
    """The bundled model, the models in the local hub cache, the published architecture, then the offered hub ids."""
    cached = cached_hub_ids()
    choices = [
        ModelChoice(id="bundled", title=N_("Bundled small model (64 px)"), kind="bundled", cached=True),
        *(ModelChoice(id=name, title=name, kind="cached", cached=True) for name in cached),
        ModelChoice(
            id="architecture",
            title=N_("Stable Diffusion 1.x, random weights (timing only)"),
            kind="architecture",
            cached=True,
        ),
        *(ModelChoice(id=name, title=name, kind="hub", cached=False) for name in HUB_IDS if name not in cached),
    ]
    return choices


def hub_cache_dir() -> Path:
    """The hub library's cache folder, by its documented variables; found without importing the library."""
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"])
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


def cached_hub_ids() -> list[str]:
    """Hub ids of Stable Diffusion pipelines that are whole in the local cache, sorted."""
    names = set()
    for index_path in hub_cache_dir().glob("models--*/snapshots/*/model_index.json"):
        try:
            check_pipeline_folder(index_path.parent)
        except WeightsError:
            continue
        names.add(index_path.parent.parent.parent.name.removeprefix("models--").replace("--", "/", 1))
    return sorted(names)


def is_hub_id(weights: str) -> bool:
    """Whether a text has the form owner/name and is not a path that exists."""
    parts = weights.split("/")
    allowed = all(part and all(c.isalnum() or c in "-_." for c in part) and part[0] not in ".-" for part in parts)
    return len(parts) == 2 and allowed and len(weights) <= 200 and not Path(weights).exists()


def weights_kind(weights: str) -> str:
    """bundled, architecture, folder or hub.

    Raises:
        WeightsError: It is none of them, so it must be a folder that is not there.
    """
    if weights in ("bundled", "architecture"):
        return weights
    # RuntimeError: ~nobody names no user; OSError and ValueError: too long, or a null byte.
    with suppress(OSError, RuntimeError, ValueError):
        if Path(weights).expanduser().is_dir():
            return "folder"
    if is_hub_id(weights):
        return "hub"
    raise WeightsError("weights-missing", path=weights)


def absolute_weights(weights: str) -> str:
    """A local folder by its absolute path, so that another process finds the same one; anything else as it is.

    Raises:
        WeightsError: It is neither a folder nor another kind of weights.
    """
    return str(Path(weights).expanduser().resolve()) if weights_kind(weights) == "folder" else weights


def folder_parameters(folder: Path) -> int:
    """How many values the folder's safetensors files hold, from their headers; 0 for files that cannot be read."""
    total = 0
    for path in folder.glob("*/*.safetensors"):
        with (
            suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError),
            path.open("rb") as file,
        ):
            length = min(int.from_bytes(file.read(8), "little"), MAX_HEADER_BYTES)
            header = json.loads(file.read(length))
            total += sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    return total


def check_weights(weights: str) -> None:
    """Looks at a choice of weights before any process is started.

    Raises:
        WeightsError: A local folder is missing, empty, not a pipeline, or has only pickled weights.
    """
    kind = weights_kind(weights)
    if kind == "folder":
        check_pipeline_folder(Path(weights).expanduser())
    if kind == "bundled":
        check_pipeline_folder(BUNDLED_MODEL_DIR)


def check_pipeline_folder(folder: Path) -> None:
    """Checks that a folder is a Stable Diffusion pipeline with safetensors weights and standard classes only.

    Raises:
        WeightsError: It is empty, not a pipeline, or has only pickled weights.
    """
    if not folder.is_dir() or not any(folder.iterdir()):
        raise WeightsError("weights-empty", path=str(folder))
    index = _read_index(folder)
    if index.get("_class_name") not in _PIPELINE_CLASSES:
        reason = f"model_index.json names {index.get('_class_name')!r}"
        raise WeightsError("weights-not-a-pipeline", path=str(folder), reason=reason)
    for component in _COMPONENT_CLASSES.keys() | {key for key, value in index.items() if isinstance(value, list)}:
        if not _is_allowed(component, index.get(component)):
            reason = f"model_index.json gives {str(index.get(component))[:80]} for {component}"
            raise WeightsError("weights-not-a-pipeline", path=str(folder), reason=reason)
    for component in _COMPONENTS:
        _check_component(folder, component)


def _is_allowed(component: str, entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 2:
        return False
    library, name = entry
    if component in _COMPONENT_CLASSES:
        return name in _COMPONENT_CLASSES[component].get(library, ())
    return component in _OPTIONAL_COMPONENTS and (entry == [None, None] or library in _LIBRARIES)


def _read_index(folder: Path) -> dict[str, object]:
    try:
        index = json.loads((folder / "model_index.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLED_SUFFIXES)
        if pickled:
            raise WeightsError("weights-pickled", path=str(folder), files=", ".join(pickled[:5])) from None
        reason = "model_index.json is missing"
        raise WeightsError("weights-not-a-pipeline", path=str(folder), reason=reason) from None
    except (OSError, ValueError, RecursionError) as error:
        reason = f"model_index.json cannot be read: {error}"
        raise WeightsError("weights-not-a-pipeline", path=str(folder), reason=reason) from error
    if not isinstance(index, dict):
        raise WeightsError("weights-not-a-pipeline", path=str(folder), reason="model_index.json is not an object")
    return index


def _check_component(folder: Path, component: str) -> None:
    part = folder / component
    if not (part / "config.json").is_file():
        raise WeightsError("weights-not-a-pipeline", path=str(folder), reason=f"{component}/config.json is missing")
    if any(part.glob("*.safetensors")):
        return
    pickled = sorted(f"{component}/{path.name}" for path in part.iterdir() if path.suffix in _PICKLED_SUFFIXES)
    if pickled:
        raise WeightsError("weights-pickled", path=str(folder), files=", ".join(pickled[:5]))
    raise WeightsError("weights-not-a-pipeline", path=str(folder), reason=f"{component} has no safetensors file")
