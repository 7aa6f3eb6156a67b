"""First stage: the image encoder and decoder, trained on freshly drawn scenes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from runners.bundled_model.architecture import LATENT_CHANNELS, VAE_FACTOR, build_vae
from runners.bundled_model.scenes import render, sample_scene
from runners.bundled_model.schedule import Schedule
from runners.bundled_model.training import Trainer, to_pixels
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


def normalise_latents(vae: AutoencoderKL, seed: int, count: int = 1000) -> None:
    """Fold a shift and a scale per channel into the VAE, so that its latents have mean 0 and deviation 1.

    A pipeline knows only one factor for all channels; the two 1x1 convolutions at the latents can hold the rest, at no
    cost. Run it once, on a freshly trained VAE.
    """
    rng = random.Random(f"{seed}:latents")
    with torch.no_grad():
        scenes = [render(sample_scene(rng)) for _ in range(count)]
        parts = to_pixels(scenes, str(vae.device)).split(100)
        latents = torch.cat([vae.encode(part).latent_dist.mean for part in parts])
        mean, deviation = latents.mean((0, 2, 3)), latents.std((0, 2, 3))
        inner, outer = vae.quant_conv, vae.post_quant_conv
        inner.weight[:LATENT_CHANNELS] /= deviation.view(-1, 1, 1, 1)
        inner.bias[:LATENT_CHANNELS] = (inner.bias[:LATENT_CHANNELS] - mean) / deviation
        inner.bias[LATENT_CHANNELS:] -= 2 * deviation.log()
        outer.bias += (outer.weight[:, :, 0, 0] * mean).sum(dim=1)
        outer.weight *= deviation.view(1, -1, 1, 1)
    vae.register_to_config(scaling_factor=1.0)
