"""Previews while denoising: a linear map from latents to colours, never the VAE.

The map is fitted once per loaded VAE: smooth random latents are decoded, and least squares finds the 3 x (channels + 1)
matrix that takes a latent cell to the mean colour of its pixels. So it suits any VAE, and no table of constants is
needed.
"""

import time
from typing import TYPE_CHECKING, Any

from runners.rundir import RunDir

if TYPE_CHECKING:
    import torch

# A preview more often than this cannot be seen, and each one copies latents to the host.
INTERVAL_S = 0.25
PREVIEW_SIDE_PX = 64
FIT_SIDE = 16
"""Latent cells per side of the fitting sample."""


class PreviewWriter:
    """Writes `preview.png` into a run folder, at most every quarter of a second."""

    def __init__(self, run_dir: RunDir, pipe: Any, *, enabled: bool) -> None:
        """The map is fitted at once when it is missing, outside every clock, and stays with the pipeline."""
        self.enabled = enabled
        self._run_dir = run_dir
        self._last_s = 0.0
        if enabled:
            if getattr(pipe, "_likeforlike_preview_map", None) is None:
                pipe._likeforlike_preview_map = fit_preview_map(pipe.vae)
            self._map = pipe._likeforlike_preview_map

    def write(self, latents: "torch.Tensor") -> None:
        """Replaces the preview with the first image of these latents, if the last is old enough.

        Args:
            latents: Shape (batch, channels, height, width), scaled as the UNet sees them.
        """
        now = time.monotonic()
        if not self.enabled or now - self._last_s < INTERVAL_S:
            return
        self._last_s = now
        from PIL import Image

        colours = latents_to_rgb(latents[:1].float().cpu(), self._map)[0]
        # Small on purpose: whoever shows it scales it, and encoding 256 by 256 pixels took some 7 ms.
        scale = max(1, PREVIEW_SIDE_PX // max(colours.shape[:2]))
        image = Image.fromarray(colours.numpy())
        image = image.resize((image.width * scale, image.height * scale), Image.Resampling.BICUBIC)
        temporary = self._run_dir.path / "preview.tmp"
        image.save(temporary, format="PNG", compress_level=1)
        temporary.replace(self._run_dir.preview_path)


def fit_preview_map(vae: Any) -> "torch.Tensor":
    """Least squares from latent cells to the mean colours of their decoded pixels.

    Args:
        vae: An AutoencoderKL.

    Returns:
        float32 tensor of shape (channels + 1, 3) on the CPU; the last row is the constant. Colours are in -1 … 1.
    """
    import torch
    import torch.nn.functional as functional

    channels = vae.config.latent_channels
    coarse = torch.randn((1, channels, FIT_SIDE // 4, FIT_SIDE // 4), generator=torch.Generator("cpu").manual_seed(0))
    latents = functional.interpolate(coarse, size=(FIT_SIDE, FIT_SIDE), mode="bilinear", align_corners=True)
    with torch.no_grad():
        scaled = (latents / vae.config.scaling_factor).to(vae.device, vae.dtype)
        decoded = vae.decode(scaled, return_dict=False)[0].float().cpu().clamp(-1, 1)
    means = functional.adaptive_avg_pool2d(decoded, (FIT_SIDE, FIT_SIDE))
    inputs = latents[0].flatten(1).T
    inputs = torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1)
    targets = means[0].flatten(1).T
    # A little ridge keeps the map small where channels say the same.
    identity = torch.eye(channels + 1) * 1e-2
    solved: torch.Tensor = torch.linalg.solve(inputs.T @ inputs + identity, inputs.T @ targets)
    return solved


def latents_to_rgb(latents: "torch.Tensor", preview_map: "torch.Tensor") -> "torch.Tensor":
    """Applies the map.

    Args:
        latents: Shape (batch, channels, height, width), float32 on the CPU.
        preview_map: From `fit_preview_map`.

    Returns:
        uint8 tensor of shape (batch, height, width, 3).
    """
    import torch

    cells = latents.permute(0, 2, 3, 1)
    colours = cells @ preview_map[:-1] + preview_map[-1]
    return ((colours.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
