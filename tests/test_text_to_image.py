"""Text to image with the real classes: a tiny Stable Diffusion made here, and the bundled model on real prompts."""

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image

from runners.device import select
from runners.errors import Cancelled, DoesNotFit, WeightsError, WorkloadFailed
from runners.execute import RunContext, execute
from runners.paths import BUNDLED_MODEL_DIR
from runners.rundir import RunDir, create_run
from runners.specs import SCHEDULERS, TextToImageSpec
from runners.workloads import sd_pipelines
from runners.workloads.sd_preview import fit_preview_map, latents_to_rgb
from runners.workloads.text_to_image import initial_latents, run

PROMPT = "a red circle on a white background"


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline folder of the real classes, 100,000 times smaller than Stable Diffusion 1.x."""
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    torch.manual_seed(0)
    tokenizer = CLIPTokenizer.from_pretrained(BUNDLED_MODEL_DIR / "tokenizer")
    pipe = StableDiffusionPipeline(
        unet=UNet2DConditionModel(
            sample_size=8,
            block_out_channels=(8, 16),
            layers_per_block=1,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=16,
            attention_head_dim=4,
            norm_num_groups=4,
        ),
        vae=AutoencoderKL(
            block_out_channels=(8, 8, 8),
            down_block_types=("DownEncoderBlock2D",) * 3,
            up_block_types=("UpDecoderBlock2D",) * 3,
            norm_num_groups=4,
            sample_size=32,
        ),
        text_encoder=CLIPTextModel(
            CLIPTextConfig(
                vocab_size=len(tokenizer),
                hidden_size=16,
                intermediate_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                max_position_embeddings=tokenizer.model_max_length,
            )
        ),
        tokenizer=tokenizer,
        scheduler=DDIMScheduler(**sd_pipelines.SD1_SCHEDULER),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    folder = tmp_path_factory.mktemp("tiny") / "pipeline"
    pipe.save_pretrained(folder)
    return folder


def context(tmp_path: Path, models: dict[str, Any] | None = None) -> RunContext:
    run_dir = create_run(tmp_path / "runs", "text-to-image", {})
    return RunContext(run_dir=run_dir, device=select("cpu"), models=models if models is not None else {})


def pixels(run_dir: RunDir, index: int = 0) -> "numpy.ndarray[Any, Any]":
    return numpy.asarray(Image.open(run_dir.images_dir / f"{index:03d}.png").convert("RGB")).astype(int)


def test_the_same_seed_gives_the_same_latents_at_every_batch_size(tmp_path: Path, tiny_folder: Path) -> None:
    hashes = []
    for batch_size in (1, 4):
        spec = TextToImageSpec(
            prompt=PROMPT, weights=str(tiny_folder), steps=2, seed=41, images=4, batch_size=batch_size, previews=False
        )
        hashes.append(run(spec, context(tmp_path)).details["latents_sha256"])
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) == 4
    alone = initial_latents([43], 4, 8, 8)[0]
    assert hashlib.sha256(alone.numpy().tobytes()).hexdigest() == hashes[0][2]


def test_the_same_seed_gives_the_same_image_at_every_batch_size(tmp_path: Path, tiny_folder: Path) -> None:
    images = []
    for batch_size in (1, 2):
        here = context(tmp_path)
        spec = TextToImageSpec(
            prompt=PROMPT, weights=str(tiny_folder), steps=3, images=2, batch_size=batch_size, previews=False
        )
        run(spec, here)
        images.append(pixels(here.run_dir, 1))
    # Kernels may add in another order at another batch size; a level of 255 is all that may differ.
    assert abs(images[0] - images[1]).max() <= 1


def test_the_image_is_the_one_that_the_pipeline_makes_directly(tmp_path: Path, tiny_folder: Path) -> None:
    from diffusers import StableDiffusionPipeline

    here = context(tmp_path)
    run(TextToImageSpec(prompt=PROMPT, negative_prompt="blue", weights=str(tiny_folder), steps=4, seed=9), here)
    pipe = StableDiffusionPipeline.from_pretrained(tiny_folder, safety_checker=None)
    direct = pipe(
        PROMPT, negative_prompt="blue", num_inference_steps=4, guidance_scale=7.5, latents=initial_latents([9], 4, 8, 8)
    ).images[0]
    assert (numpy.asarray(direct) == pixels(here.run_dir)).all()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_runs_and_starts_anew(tmp_path: Path, tiny_folder: Path, scheduler: str) -> None:
    models: dict[str, Any] = {}
    spec = TextToImageSpec(prompt=PROMPT, weights=str(tiny_folder), steps=3, scheduler=scheduler, previews=False)
    first, second = context(tmp_path, models), context(tmp_path, models)
    assert run(spec, first).conditions.scheduler == scheduler
    run(spec, second)
    assert (pixels(first.run_dir) == pixels(second.run_dir)).all()


def test_two_clocks_and_the_stages_add_up(tmp_path: Path, tiny_folder: Path) -> None:
    spec = TextToImageSpec(
        prompt=PROMPT, weights=str(tiny_folder), steps=2, images=8, batch_size=1, warmup_batches=2, previews=False
    )
    outcome = run(spec, context(tmp_path))
    by_name = {(item.name, item.phase): item.values for item in outcome.series}
    assert len(by_name["denoise_vae_s", "warm-up"]) == 2
    assert len(by_name["denoise_vae_s", "measured"]) == 6
    for index in range(6):
        text, denoising, vae, region, whole = (
            by_name[name, "measured"][index]
            for name in ("text_encoder_s", "denoising_s", "vae_s", "denoise_vae_s", "end_to_end_s")
        )
        assert denoising + vae <= region <= whole
        assert text + region <= whole
    metric = {(item.name, item.timed_region): item for item in outcome.metrics}
    assert metric["s_per_image", "denoise+vae"].n == 6
    assert metric["s_per_image", "denoise+vae"].interval is not None
    assert metric["s_per_image", "denoise+vae"].value == pytest.approx(sum(by_name["denoise_vae_s", "measured"]) / 6)
    assert metric["images_per_s", "end-to-end"].value < metric["images_per_s", "denoise+vae"].value
    assert outcome.conditions.warmup_rule == "first-2-batches-dropped"
    assert "first-call-included" not in outcome.audit.warnings


def test_a_run_says_what_weakens_it(tmp_path: Path, tiny_folder: Path) -> None:
    models: dict[str, Any] = {}
    spec = TextToImageSpec(prompt="fish " * 200, weights=str(tiny_folder), steps=2)
    warnings = run(spec, context(tmp_path, models)).audit.warnings
    assert {"first-call-included", "too-few-samples", "prompt-truncated", "previews-in-timed-region"} == set(warnings)
    again = run(dataclasses.replace(spec, prompt="fish"), context(tmp_path, models)).audit.warnings
    assert {"too-few-samples", "previews-in-timed-region"} == set(again)


def test_conditions_are_those_of_the_loaded_model(tmp_path: Path, tiny_folder: Path) -> None:
    conditions = run(TextToImageSpec(prompt="x", weights=str(tiny_folder), steps=2), context(tmp_path)).conditions
    assert (conditions.model, conditions.weights, conditions.precision) == ("custom", "real", "fp32")
    assert (conditions.width_px, conditions.height_px, conditions.steps) == (32, 32, 2)


@pytest.mark.parametrize("prompt", ["🐟🚀", "سمكة حمراء", "第一\n第二", "x" * 2000])
def test_any_prompt_makes_an_image_that_carries_it(tmp_path: Path, tiny_folder: Path, prompt: str) -> None:
    here = context(tmp_path)
    run(TextToImageSpec(prompt=prompt, weights=str(tiny_folder), steps=1, seed=5), here)
    with Image.open(here.run_dir.images_dir / "000.png") as image:
        text = image.info["parameters"]
        details = json.loads(image.info["likeforlike"])
    assert text.startswith(prompt + "\nSteps: 1, Sampler: DDIM, CFG scale: 7.5, Seed: 5, Size: 32x32, ")
    assert "Device: " in text and "Software: " in text and "Time: " in text
    assert details["run_id"] == here.run_dir.run_id


def test_cancelling_stops_at_the_next_step(tmp_path: Path, tiny_folder: Path) -> None:
    here = context(tmp_path)
    spec = TextToImageSpec(prompt=PROMPT, weights=str(tiny_folder), steps=50, previews=False)
    run(dataclasses.replace(spec, steps=1), here)
    here.run_dir.ask_to_cancel()
    with pytest.raises(Cancelled):
        run(spec, here)


def test_nan_in_the_weights_is_named_and_recorded(tmp_path: Path, tiny_folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "broken"
    shutil.copytree(tiny_folder, folder)
    path = folder / "unet" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(path)
    tensors["conv_in.weight"][0, 0, 0, 0] = float("nan")
    save_file(tensors, path, metadata={"format": "pt"})
    record = execute(
        create_run(tmp_path / "runs", "text-to-image", {"weights": str(folder), "prompt": "x", "steps": 1})
    )
    assert record.status == "failed"
    assert record.error is not None and record.error.message_id == "weights-not-finite"
    assert "unet.conv_in.weight" in record.error.message


def test_a_damaged_weights_file_is_named(tmp_path: Path, tiny_folder: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(tiny_folder, folder)
    path = folder / "vae" / "diffusion_pytorch_model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(WeightsError, match="cannot be loaded"):
        run(TextToImageSpec(prompt="x", weights=str(folder), steps=1), context(tmp_path))


@pytest.mark.parametrize("part", ["text_encoder", "unet", "vae"])
def test_missing_tensors_are_never_filled_in_silently(tmp_path: Path, tiny_folder: Path, part: str) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "broken"
    shutil.copytree(tiny_folder, folder)
    (path,) = (folder / part).glob("*.safetensors")
    tensors = load_file(path)
    for name in sorted(tensors)[::2]:
        del tensors[name]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(WeightsError, match=r"lacks|missing"):
        run(TextToImageSpec(prompt="x", weights=str(folder), steps=1), context(tmp_path))


def test_a_folder_that_was_changed_in_place_is_loaded_again(tmp_path: Path, tiny_folder: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(tiny_folder, folder)
    models: dict[str, Any] = {}
    spec = TextToImageSpec(prompt="x", weights=str(folder), steps=1, previews=False)
    run(spec, context(tmp_path, models))
    assert "load" not in {phase.name for phase in run(spec, context(tmp_path, models)).phases}
    os.utime(folder / "unet" / "config.json")
    assert "load" in {phase.name for phase in run(spec, context(tmp_path, models)).phases}
    assert len(models) == 1, "the old one is forgotten"


def test_the_bundled_model_is_not_let_through_whatever_is_asked(tmp_path: Path) -> None:
    spec = TextToImageSpec(prompt="x", images=256, batch_size=256, width=2048, height=2048)
    with pytest.raises(DoesNotFit, match="GiB"):
        run(spec, context(tmp_path))


def test_an_output_that_is_not_finite_is_no_image(
    tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: dict[str, Any] = {}
    spec = TextToImageSpec(prompt="x", weights=str(tiny_folder), steps=1, previews=False)
    run(spec, context(tmp_path, models))
    (loaded,) = models.values()
    with torch.no_grad():
        loaded.pipe.vae.decoder.conv_out.bias.fill_(float("inf"))
    here = context(tmp_path, models)
    with pytest.raises(WorkloadFailed, match="not finite"):
        run(spec, here)
    assert not list(here.run_dir.path.glob("images/*"))


def test_a_hub_model_without_network_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="give a local pipeline folder") as caught:
        run(TextToImageSpec(prompt="x", weights="CompVis/stable-diffusion-v1-4", steps=1), context(tmp_path))
    assert caught.value.message_id == "hub-unreachable"


def test_too_large_a_batch_is_refused_before_loading(tmp_path: Path) -> None:
    spec = TextToImageSpec(prompt="x", weights="architecture", images=256, batch_size=256, width=2048, height=2048)
    with pytest.raises(DoesNotFit, match="GiB"):
        run(spec, context(tmp_path))


def test_the_published_architecture_has_the_published_sizes() -> None:
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    with torch.device("meta"):
        unet = UNet2DConditionModel(**sd_pipelines.SD1_UNET)
        vae = AutoencoderKL(**sd_pipelines.SD1_VAE)
        text = CLIPTextModel(CLIPTextConfig(**sd_pipelines.SD1_TEXT))
    sizes = [sum(parameter.numel() for parameter in part.parameters()) for part in (unet, vae, text)]
    assert sizes == [859_520_964, 83_653_863, 123_060_480]
    assert sd_pipelines._canonical_model(unet.config) == "stable-diffusion-1"


def test_random_weights_stay_finite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The published shapes, an eighth as wide: loading is the same code, and half a minute shorter.
    narrow = {**sd_pipelines.SD1_UNET, "block_out_channels": (32, 64, 64, 64), "cross_attention_dim": 64}
    text = {
        **sd_pipelines.SD1_TEXT,
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    monkeypatch.setattr(sd_pipelines, "SD1_UNET", narrow)
    monkeypatch.setattr(sd_pipelines, "SD1_VAE", {**sd_pipelines.SD1_VAE, "block_out_channels": (32, 32, 32, 32)})
    monkeypatch.setattr(sd_pipelines, "SD1_TEXT", text)
    here = context(tmp_path)
    outcome = run(TextToImageSpec(prompt="x", weights="architecture", steps=2, width=64, height=64), here)
    assert outcome.conditions.weights == "architecture"
    assert outcome.details["tokenizer"] == "bundled"
    assert pixels(here.run_dir).std() > 1


def test_the_preview_map_finds_a_linear_vae() -> None:
    class Config:
        latent_channels = 4
        scaling_factor = 2.0

    class LinearVae:
        config = Config()
        device = torch.device("cpu")
        dtype = torch.float32
        matrix = torch.tensor([[0.2, 0.0, 0.1], [0.0, 0.3, 0.0], [-0.1, 0.0, 0.2], [0.0, 0.1, 0.0]])

        def decode(self, latents: torch.Tensor, return_dict: bool) -> tuple[torch.Tensor]:
            colours = torch.einsum("bchw,cr->brhw", latents, self.matrix) + 0.05
            return (torch.nn.functional.interpolate(colours, scale_factor=4, mode="nearest"),)

    found = fit_preview_map(LinearVae())
    assert torch.allclose(found[:-1], LinearVae.matrix / 2, atol=2e-2)
    assert latents_to_rgb(torch.zeros(1, 4, 2, 2), found).float().mean() == pytest.approx(127.5 * 1.05, abs=3)


def test_previews_appear_and_cost_no_decoding(
    tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.workloads.sd_preview.INTERVAL_S", 0.0)
    here = context(tmp_path)
    run(TextToImageSpec(prompt="x", weights=str(tiny_folder), steps=4), here)
    with Image.open(here.run_dir.preview_path) as preview:
        assert preview.size == (64, 64)


def test_the_bundled_model_draws_a_red_circle_on_white(tmp_path: Path) -> None:
    here = context(tmp_path)
    run(TextToImageSpec(prompt=PROMPT, seed=1), here)
    image = pixels(here.run_dir)
    side = image.shape[0]
    middle = image[side * 2 // 5 : side * 3 // 5, side * 2 // 5 : side * 3 // 5].reshape(-1, 3).mean(0)
    rim = numpy.concatenate([image[:4].reshape(-1, 3), image[-4:].reshape(-1, 3)]).mean(0)
    assert middle[0] > 150 and middle[0] > middle[1] + 60 and middle[0] > middle[2] + 60
    assert (rim > 200).all()
