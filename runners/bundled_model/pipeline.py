"""The pipeline folder: written for both sets of libraries that the project supports, and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.bundled_model.architecture import build_scheduler, build_text_encoder, build_unet, build_vae
from runners.bundled_model.tokenizer import load_tokenizer, write_tokenizer

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

BUNDLED = Path(__file__).resolve().parents[2] / "data" / "models" / "bundled"


def build_conditioning(folder: Path) -> tuple[CLIPTokenizer, CLIPTextModel]:
    """Write the tokenizer into a folder and return it with an untrained text encoder for it."""
    write_tokenizer(folder)
    tokenizer = load_tokenizer(folder)
    return tokenizer, build_text_encoder(len(tokenizer), tokenizer.bos_token_id, tokenizer.eos_token_id)


def save_pipeline(folder: Path, vae: AutoencoderKL, unet: UNet2DConditionModel, text_encoder: CLIPTextModel) -> None:
    """Write an ordinary `StableDiffusionPipeline` folder: safetensors, half precision, no safety checker.

    The modules are left in half precision.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in {"vae": vae, "unet": unet}.items():
        module.half().save_pretrained(folder / name, safe_serialization=True)
    _save_text_encoder(folder / "text_encoder", text_encoder)
    build_scheduler().save_pretrained(folder / "scheduler")
    write_tokenizer(folder / "tokenizer")
    (folder / "model_index.json").write_text(json.dumps(_model_index(), indent=2) + "\n")
    for path in folder.rglob("*"):
        # safetensors writes files that only their owner may read, and an image built from them runs as somebody else.
        path.chmod(0o755 if path.is_dir() else 0o644)
        if path.name == "config.json":
            _forget_origin(path)


def _forget_origin(path: Path) -> None:
    """Take out of a configuration where on this machine its weights came from."""
    settings = json.loads(path.read_text())
    if settings.pop("_name_or_path", None) is not None:
        path.write_text(json.dumps(settings, indent=2) + "\n")


def _save_text_encoder(folder: Path, text_encoder: CLIPTextModel) -> None:
    """Write the text encoder in the form that transformers 4 and 5 both read.

    Version 5 itself would leave out the "text_model." of each name, and version 4 would then start from random weights
    with no more than a warning. It would also record half precision as the type to run in, beside components in single.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    prefix = "text_model."
    weights = {
        prefix + name.removeprefix(prefix): tensor.half().contiguous()
        for name, tensor in text_encoder.state_dict().items()
        if not name.endswith("position_ids")
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    settings = text_encoder.config.to_diff_dict()
    settings = {key: value for key, value in settings.items() if key not in ("dtype", "transformers_version")}
    settings |= {"architectures": ["CLIPTextModel"], "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def _model_index() -> dict[str, Any]:
    return {
        "_class_name": "StableDiffusionPipeline",
        "_diffusers_version": "0.35.1",
        "feature_extractor": [None, None],
        "image_encoder": [None, None],
        "requires_safety_checker": False,
        "safety_checker": [None, None],
        "scheduler": ["diffusers", "DDIMScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
    }


def save_untrained(folder: Path) -> None:
    """Write a pipeline of this architecture with random weights: the floor of the evaluation."""
    import torch

    torch.manual_seed(0)
    _, text_encoder = build_conditioning(folder / "tokenizer")
    save_pipeline(folder, build_vae(), build_unet(), text_encoder)


def load_pipeline(folder: Path, device: str = "cpu") -> StableDiffusionPipeline:
    """Return the pipeline of a folder in single precision, without progress bars."""
    import torch
    from diffusers import StableDiffusionPipeline

    pipeline: StableDiffusionPipeline = StableDiffusionPipeline.from_pretrained(
        str(folder), torch_dtype=torch.float32, use_safetensors=True, local_files_only=True
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(device)
