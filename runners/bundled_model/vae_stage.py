"""First stage: the image encoder and decoder, trained on freshly drawn scenes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from runners.bundled_model.architecture import LATENT_CHANNELS, VAE_FACTOR, build_vae
from runners.bundled_model.scenes import render, sample_scene
from runners.bundled_model.training import Schedule, Trainer, to_pixels
from runners.bundled_model.vocabulary import IMAGE_SIZE

if TYPE_CHECKING:
    from diffusers import AutoencoderKL

CROP = 32
CROPS_PER_STEP = 32
IMAGES_PER_STEP = 12
CROP_SHARE = 0.75  # of the steps; the rest see whole images, so that the group norms fit those
KL_WEIGHT = 2e-3
EDGE_WEIGHT = 0.5


def train_vae(schedule: Schedule, checkpoint: Path, device: str, seed: int) -> AutoencoderKL:
    """Train, or go on training, the VAE and return it in evaluation mode."""
    torch.manual_seed(seed)
    vae = build_vae().to(device)
    trainer = Trainer({"vae": vae}, schedule, checkpoint, seed)
    vae.train()

    def loss_of_step(step: int, rng: random.Random) -> Tensor:
        crop = step < CROP_SHARE * schedule.steps
        scenes = [render(sample_scene(rng)) for _ in range(CROPS_PER_STEP if crop else IMAGES_PER_STEP)]
        if crop:
            scenes = [scene.crop(_random_box(rng)) for scene in scenes]
        return vae_loss(vae, to_pixels(scenes, device))

    trainer.fit(loss_of_step)
    return vae.eval()


def _random_box(rng: random.Random) -> tuple[int, int, int, int]:
    left, top = rng.randint(0, IMAGE_SIZE - CROP), rng.randint(0, IMAGE_SIZE - CROP)
    return left, top, left + CROP, top + CROP


def vae_loss(vae: AutoencoderKL, pixels: Tensor) -> Tensor:
    """Return the training loss: absolute error of pixels and of their differences, plus a little KL."""
    posterior = vae.encode(pixels).latent_dist
    side = pixels.shape[-1] // VAE_FACTOR
    # Drawn on the CPU, so that every kind of device sees the same noise.
    noise = torch.randn(len(pixels), LATENT_CHANNELS, side, side).to(pixels.device)
    drawn = vae.decode(posterior.mean + posterior.std * noise).sample
    error = drawn - pixels
    edges = error.diff(dim=2).abs().mean() + error.diff(dim=3).abs().mean()
    divergence = posterior.kl().mean() / noise[0].numel()
    loss: Tensor = error.abs().mean() + EDGE_WEIGHT * edges + KL_WEIGHT * divergence
    return loss
