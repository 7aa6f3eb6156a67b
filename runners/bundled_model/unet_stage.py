"""Second stage: the denoiser and the text encoder, trained together on the latents of drawn scenes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from runners.bundled_model.architecture import build_scheduler, build_unet
from runners.bundled_model.captions import caption
from runners.bundled_model.pipeline import build_conditioning
from runners.bundled_model.scenes import render, sample_scene
from runners.bundled_model.schedule import Schedule
from runners.bundled_model.training import Trainer, to_pixels
from runners.bundled_model.vocabulary import MAX_TOKENS

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

BATCH = 32
SCENES = 40_000
CAPTIONS_PER_SCENE = 4
CAPTION_DROPOUT = 0.1
UNIFORM_SHARE = 0.2  # of the time steps; the others crowd where shapes form
TIME_CENTRE = -0.3


@dataclass(frozen=True)
class Pool:
    """Scenes as the denoiser sees them: latents (scene, channel, y, x) and token ids (scene, caption, position)."""

    latents: Tensor
    tokens: Tensor
    empty: Tensor


def tokenise(tokenizer: CLIPTokenizer, texts: list[str]) -> Tensor:
    """Return padded token ids, exactly as the pipeline makes them from prompts."""
    ids: Tensor = tokenizer(
        texts, padding="max_length", max_length=MAX_TOKENS, truncation=True, return_tensors="pt"
    ).input_ids
    return ids


def make_pool(vae: AutoencoderKL, tokenizer: CLIPTokenizer, count: int, seed: int, device: str) -> Pool:
    """Draw scenes, caption each several times, and encode them."""
    rng = random.Random(f"{seed}:pool")
    latents, tokens = [], []
    for start in range(0, count, 100):
        scenes = [sample_scene(rng) for _ in range(min(100, count - start))]
        texts = [caption(scene, rng) for scene in scenes for _ in range(CAPTIONS_PER_SCENE)]
        tokens.append(tokenise(tokenizer, texts).view(len(scenes), CAPTIONS_PER_SCENE, -1).to(torch.int16))
        with torch.inference_mode():
            pixels = to_pixels([render(scene) for scene in scenes], device)
            latents.append(vae.encode(pixels).latent_dist.mean.cpu() * vae.config.scaling_factor)
    return Pool(torch.cat(latents), torch.cat(tokens), tokenise(tokenizer, [""]))


def save_pool(pool: Pool, path: Path) -> None:
    """Keep a pool for later runs of the stage."""
    from safetensors.torch import save_file

    tensors = {"latents": pool.latents.half(), "tokens": pool.tokens, "empty": pool.empty}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def load_pool(path: Path) -> Pool:
    """Read a pool that `save_pool` wrote."""
    from safetensors.torch import load_file

    tensors = load_file(path)
    return Pool(tensors["latents"].float(), tensors["tokens"], tensors["empty"])


def unet_trainer(
    schedule: Schedule, checkpoint: Path, device: str, seed: int, weights: Path | None = None
) -> tuple[Trainer, UNet2DConditionModel, CLIPTextModel]:
    """Return the denoiser and text encoder, as new or as far as trained, in their trainer.

    Args:
        schedule: Steps and learning rates.
        checkpoint: Where the state is kept between runs.
        device: Where to train.
        seed: The root of all randomness.
        weights: A pipeline folder to start from, instead of random weights, where there is no checkpoint yet.
    """
    torch.manual_seed(seed)
    unet = build_unet()
    _, text_encoder = build_conditioning(checkpoint.parent / "tokenizer")
    if weights is not None:
        from runners.bundled_model.pipeline import load_pipeline

        pipeline = load_pipeline(weights)
        unet.load_state_dict(pipeline.unet.state_dict())
        text_encoder.load_state_dict(pipeline.text_encoder.state_dict())
    unet, text_encoder = unet.to(device).train(), text_encoder.to(device).train()
    return Trainer({"unet": unet, "text_encoder": text_encoder}, schedule, checkpoint, seed), unet, text_encoder


class DenoisingLoss:
    """The error of the predicted velocity on random scenes at random times."""

    def __init__(self, unet: UNet2DConditionModel, text_encoder: CLIPTextModel, pool: Pool, batch: int = BATCH) -> None:
        """Hold what a step needs."""
        self.unet = unet
        self.text_encoder = text_encoder
        self.pool = pool
        self.batch = batch
        self.scheduler = build_scheduler()

    def __call__(self, step: int, rng: random.Random) -> Tensor:
        """Return the loss of one step. Everything random is drawn on the CPU, the same for every device."""
        device = self.unet.device
        scenes = torch.randint(0, len(self.pool.latents), (self.batch,))
        latents = self.pool.latents[scenes]
        noise = torch.randn_like(latents)
        times = self._times()
        noisy = self.scheduler.add_noise(latents, noise, times)
        target = self.scheduler.get_velocity(latents, noise, times)
        context = self.text_encoder(self._captions(scenes).to(device))[0]
        noisy = noisy.to(device).contiguous(memory_format=torch.channels_last)
        predicted = self.unet(noisy, times.to(device), context).sample
        return torch.nn.functional.mse_loss(predicted, target.to(device))

    def _times(self) -> Tensor:
        last = self.scheduler.config.num_train_timesteps - 1
        crowded = torch.sigmoid(torch.randn(self.batch) + TIME_CENTRE)
        share = torch.where(torch.rand(self.batch) < UNIFORM_SHARE, torch.rand(self.batch), crowded)
        return (share * (last + 1)).long().clamp(0, last)

    def _captions(self, scenes: Tensor) -> Tensor:
        which = torch.randint(0, self.pool.tokens.shape[1], (self.batch,))
        tokens = self.pool.tokens[scenes, which].long()
        tokens[torch.rand(self.batch) < CAPTION_DROPOUT] = self.pool.empty
        return tokens
