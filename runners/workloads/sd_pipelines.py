"""Loads Stable Diffusion pipelines: from a folder, from the hub, or as the published architecture without weights."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.device import Backend
from runners.errors import WeightsError
from runners.models import check_pipeline_folder, weights_kind
from runners.paths import BUNDLED_MODEL_DIR

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

# Stable Diffusion 1.x, from the published config.json files of CompVis/stable-diffusion-v1-4: 859,520,964 parameters
# in the UNet, 83,653,863 in the VAE, 123,060,480 in the text encoder (CLIP ViT-L/14).
SD1_UNET = {
    "sample_size": 64,
    "in_channels": 4,
    "out_channels": 4,
    "layers_per_block": 2,
    "block_out_channels": (320, 640, 1280, 1280),
    "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 768,
    "attention_head_dim": 8,
}
SD1_VAE = {
    "sample_size": 512,
    "in_channels": 3,
    "out_channels": 3,
    "latent_channels": 4,
    "layers_per_block": 2,
    "block_out_channels": (128, 256, 512, 512),
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "scaling_factor": 0.18215,
}
SD1_TEXT = {
    "vocab_size": 49408,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 77,
    "projection_dim": 768,
}
SD1_SCHEDULER = {
    "num_train_timesteps": 1000,
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
}
HUB_PATTERNS = ("model_index.json", "*/*.json", "tokenizer/*.txt", "*/*.safetensors")


@dataclass(frozen=True, kw_only=True)
class LoadedPipeline:
    """A pipeline on its device, and what it is."""

    pipe: Any
    model: str
    """Canonical architecture for the conditions."""
    weights: str
    """real, architecture or bundled."""
    scheduler_config: dict[str, Any]
    """As it was loaded; every run makes its own scheduler from it."""
    load_s: float
    tokenizer: str
    """own, or "bundled" where the architecture has none of its own."""


def load_pipeline(
    weights: str, device: Backend, precision: str, progress: "Callable[[str, int, int], None]"
) -> LoadedPipeline:
    """Loads a pipeline onto the device.

    Args:
        weights: bundled, architecture, a local folder or a hub id.
        device: Where it goes.
        precision: fp32, fp16 or bf16.
        progress: Called with a phase ("download", "load"), and done and all bytes where they are known.

    Raises:
        WeightsError: The weights are missing, unsafe, damaged or not finite, or the hub cannot be reached.
    """
    started_s = time.perf_counter()
    dtype = _dtype(precision)
    kind = weights_kind(weights)
    if kind == "architecture":
        progress("load", 0, 0)
        pipe, model = _architecture(device, dtype), "stable-diffusion-1"
    else:
        folder = _fetch(weights, progress) if kind == "hub" else Path(weights).expanduser()
        if kind == "bundled":
            folder = BUNDLED_MODEL_DIR
        check_pipeline_folder(folder)
        progress("load", 0, 0)
        pipe = _from_folder(folder, device, dtype)
        _check_finite(pipe, str(folder))
        model = "likeforlike-bundled" if kind == "bundled" else _canonical_model(pipe.unet.config)
    pipe.set_progress_bar_config(disable=True)
    return LoadedPipeline(
        pipe=pipe,
        model=model,
        weights={"folder": "real", "hub": "real"}.get(kind, kind),
        scheduler_config=dict(pipe.scheduler.config),
        load_s=time.perf_counter() - started_s,
        tokenizer="bundled" if kind == "architecture" else "own",
    )


def make_scheduler(name: str, config: dict[str, Any], device: Backend) -> Any:
    """A fresh scheduler: state from an earlier run must not leak into the next."""
    import diffusers

    if device.kind == "hpu" and name in ("DDIM", "Euler"):
        from optimum.habana.diffusers import GaudiDDIMScheduler, GaudiEulerDiscreteScheduler

        return {"DDIM": GaudiDDIMScheduler, "Euler": GaudiEulerDiscreteScheduler}[name].from_config(config)
    classes = {
        "DDIM": diffusers.DDIMScheduler,
        "PNDM": diffusers.PNDMScheduler,
        "Euler": diffusers.EulerDiscreteScheduler,
        "DPM++ 2M": diffusers.DPMSolverMultistepScheduler,
    }
    # skip_prk_steps: without it PNDM begins with twelve Runge-Kutta calls that Stable Diffusion never used.
    extra = {"skip_prk_steps": True} if name == "PNDM" else {}
    return classes[name].from_config(config, **extra)


def _dtype(precision: str) -> "torch.dtype":
    import torch

    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]


def _from_folder(folder: Path, device: Backend, dtype: "torch.dtype") -> Any:
    options: dict[str, Any] = {
        "torch_dtype": dtype,
        "use_safetensors": True,
        "local_files_only": True,
        "safety_checker": None,
        "requires_safety_checker": False,
    }
    # The libraries raise many types for damaged files (SafetensorError is a plain Exception); each means the same.
    try:
        if device.kind == "hpu":
            return _gaudi_pipeline(folder, dtype, options)
        from diffusers import StableDiffusionPipeline

        text_encoder = _text_encoder(folder, dtype)
        return StableDiffusionPipeline.from_pretrained(folder, text_encoder=text_encoder, **options).to(device.kind)
    except WeightsError:
        raise
    except Exception as error:
        if "out of memory" in str(error).lower() or isinstance(error, MemoryError | ImportError):
            raise
        reason = f"{type(error).__name__}: {str(error)[:300]}"
        if "meta tensor" in str(error):
            reason = "tensors are missing from the UNet or the VAE"
        raise WeightsError("weights-damaged", path=str(folder), reason=reason) from error


def _text_encoder(folder: Path, dtype: "torch.dtype") -> Any:
    """Loaded by itself, since the library fills what a file lacks with random values and only says so here."""
    from transformers import CLIPTextModel

    model, information = CLIPTextModel.from_pretrained(
        folder / "text_encoder",
        torch_dtype=dtype,
        use_safetensors=True,
        local_files_only=True,
        output_loading_info=True,
    )
    # Positions are counted, not learned; older files hold them and newer ones do not.
    missing = sorted(key for key in information["missing_keys"] if not key.endswith("position_ids"))
    if missing:
        reason = f"the text encoder lacks {len(missing)} tensors, first {missing[0]}"
        raise WeightsError("weights-damaged", path=str(folder), reason=reason)
    return model


def _gaudi_pipeline(folder: Path, dtype: "torch.dtype", options: dict[str, Any]) -> Any:
    import torch
    from optimum.habana import GaudiConfig
    from optimum.habana.diffusers import GaudiStableDiffusionPipeline

    # A GaudiConfig made here needs no hub, unlike the name "Habana/stable-diffusion". Full bf16 weights turn autocast
    # off; in fp32 it stays off as well, so that the precision in the record is the one that ran.
    pipe = GaudiStableDiffusionPipeline.from_pretrained(
        folder,
        use_habana=True,
        use_hpu_graphs=True,
        gaudi_config=GaudiConfig(use_torch_autocast=False),
        sdp_on_bf16=dtype == torch.bfloat16,
        text_encoder=_text_encoder(folder, dtype),
        **options,
    )
    # As in the library's own example: the attention processor of the instance is replaced by the HPU one.
    pipe.unet.set_default_attn_processor(pipe.unet)
    return pipe


def _architecture(device: Backend, dtype: "torch.dtype") -> Any:
    import torch
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    with torch.device("meta"):
        unet, vae = UNet2DConditionModel(**SD1_UNET), AutoencoderKL(**SD1_VAE)
    for module in (unet, vae):
        # On "meta" the change of type costs nothing; memory is taken once, on the device, in the final type.
        (module if dtype == torch.float32 else module.to(dtype)).to_empty(device=device.kind)
        _fill_with_random_weights(module)
        module.eval()
    text_encoder = CLIPTextModel(CLIPTextConfig(**SD1_TEXT)).eval().to(device.kind, dtype)
    components = {
        "vae": vae,
        "unet": unet,
        "text_encoder": text_encoder,
        # CLIP's vocabulary is a download; any ids below 49,408 make the same arithmetic, so the bundled words do.
        "tokenizer": CLIPTokenizer.from_pretrained(BUNDLED_MODEL_DIR / "tokenizer", model_max_length=77),
        "scheduler": DDIMScheduler(**SD1_SCHEDULER),
        "safety_checker": None,
        "feature_extractor": None,
        "requires_safety_checker": False,
    }
    if device.kind != "hpu":
        return StableDiffusionPipeline(**components)
    from optimum.habana import GaudiConfig
    from optimum.habana.diffusers import GaudiStableDiffusionPipeline

    return GaudiStableDiffusionPipeline(
        **components,
        use_habana=True,
        use_hpu_graphs=True,
        gaudi_config=GaudiConfig(use_torch_autocast=False),
        bf16_full_eval=dtype == torch.bfloat16,
        sdp_on_bf16=dtype == torch.bfloat16,
    )


def _fill_with_random_weights(module: Any) -> None:
    """Norms become identities; other weights are uniform with variance 1/fan_in, so that values stay finite."""
    import torch

    generator = torch.Generator(device=next(module.parameters()).device).manual_seed(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() == 1:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
            else:
                bound = (3.0 / parameter[0].numel()) ** 0.5
                parameter.uniform_(-bound, bound, generator=generator)


def _check_finite(pipe: Any, path: str) -> None:
    import torch

    for part in ("unet", "vae", "text_encoder"):
        for name, parameter in getattr(pipe, part).named_parameters():
            # The extremes are NaN where any value is, and need no copy of the tensor.
            if not torch.isfinite(torch.stack(torch.aminmax(parameter))).all():
                raise WeightsError("weights-not-finite", path=path, tensor=f"{part}.{name}")


def _canonical_model(config: Any) -> str:
    """The family that a UNet belongs to: what decides whether speeds can be compared, not its name."""
    same = all(_plain(config.get(key)) == _plain(value) for key, value in SD1_UNET.items() if key != "sample_size")
    if same:
        return "stable-diffusion-1"
    return "stable-diffusion-2" if config.get("cross_attention_dim") == 1024 else "custom"


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _fetch(model_id: str, progress: "Callable[[str, int, int], None]") -> Path:
    """Downloads what is missing into the hub cache; a cancelled download goes on where it stopped next time."""
    from huggingface_hub import snapshot_download
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class ReportingTqdm(tqdm):
        """Reports bytes instead of drawing a bar; counts of files are left out."""

        def update(self, n: float | None = 1) -> bool | None:
            shown: bool | None = super().update(n)
            if self.unit == "B" and self.total:
                progress("download", int(self.n), int(self.total))
            return shown

    try:
        return Path(snapshot_download(model_id, allow_patterns=list(HUB_PATTERNS), tqdm_class=ReportingTqdm))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise WeightsError("hub-unreachable", model=model_id, reason=reason) from error
