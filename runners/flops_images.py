"""Floating-point operations of Stable Diffusion by formula, from the components' configurations. No torch here.

A matrix product of (m, k) with (k, n) counts 2 m k n, a convolution 2 x output pixels x inputs x outputs x kernel area;
norms, activations, softmax and additions count nothing, as in `torch.utils.flop_counter`, against which every part is
tested. All numbers are of one forward pass for one image.

An image costs

    text encoder / batch   once for the prompt and, with guidance, once for the negative prompt; a batch shares them
    + UNet x steps         times two with guidance: with and without the prompt
    + VAE decoder
"""

from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]
KERNEL = 9
"""Area of the 3x3 convolutions."""
EXTRA_CALLS = {"PNDM": 1}
"""UNet calls beyond one per step: PNDM's first step looks twice (as diffusers runs it for Stable Diffusion)."""


def text_encoder(config: Config) -> float:
    """Of one prompt through CLIP's text model, padded to its full length.

    Args:
        config: As `text_encoder/config.json`.
    """
    tokens, width = config["max_position_embeddings"], config["hidden_size"]
    layer = 2 * tokens * (4 * width**2 + 2 * width * config["intermediate_size"]) + 4 * tokens**2 * width
    return float(config["num_hidden_layers"] * layer)


def unet(config: Config, height: int, width: int, tokens: int) -> float:
    """Of one call of the UNet for one image without guidance.

    Args:
        config: As `unet/config.json`, of the kind that Stable Diffusion 1.x has: one transformer block after each
            residual block of a cross-attention block, convolutions around it.
        height: Latent rows.
        width: Latent columns.
        tokens: Length of the encoded prompt.
    """
    channels = list(config["block_out_channels"])
    text, layers, first = config["cross_attention_dim"], config["layers_per_block"], channels[0]
    time = 4 * first
    count = _conv(height * width, config["in_channels"], first) + 2 * (first * time + time * time)
    inputs, rows, columns = first, height, width
    skips = [first]
    for place, (kind, outputs) in enumerate(zip(config["down_block_types"], channels, strict=True)):
        for _ in range(layers):
            count += _residual(rows * columns, inputs, outputs, time)
            count += _attended(kind, rows * columns, outputs, text, tokens)
            inputs = outputs
            skips.append(outputs)
        if place < len(channels) - 1:
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
            count += _conv(rows * columns, outputs, outputs)
            skips.append(outputs)
    middle = channels[-1]
    count += 2 * _residual(rows * columns, middle, middle, time) + _transformer(rows * columns, middle, text, tokens)
    for place, (kind, outputs) in enumerate(zip(config["up_block_types"], reversed(channels), strict=True)):
        for _ in range(layers + 1):
            count += _residual(rows * columns, inputs + skips.pop(), outputs, time)
            count += _attended(kind, rows * columns, outputs, text, tokens)
            inputs = outputs
        if place < len(channels) - 1:
            # Up to what the blocks on the way down had: at odd sizes that is one less than twice as much.
            rows, columns = _halved(height, len(channels) - 2 - place), _halved(width, len(channels) - 2 - place)
            count += _conv(rows * columns, outputs, outputs)
    return float(count + _conv(height * width, first, config["out_channels"]))


def vae_decoder(config: Config, height: int, width: int) -> float:
    """Of decoding the latents of one image.

    Args:
        config: As `vae/config.json`.
        height: Latent rows.
        width: Latent columns.
    """
    channels = list(reversed(config["block_out_channels"]))
    pixels, latent, middle = height * width, config["latent_channels"], channels[0]
    count = _conv(pixels, latent, latent, 1) if config.get("use_post_quant_conv", True) else 0.0
    count += _conv(pixels, latent, middle) + 2 * _residual(pixels, middle, middle, 0)
    if config.get("mid_block_add_attention", True):
        count += 2 * pixels * 4 * middle**2 + 4 * pixels**2 * middle
    inputs = middle
    for place, outputs in enumerate(channels):
        for _ in range(config["layers_per_block"] + 1):
            count += _residual(pixels, inputs, outputs, 0)
            inputs = outputs
        if place < len(channels) - 1:
            pixels *= 4
            count += _conv(pixels, outputs, outputs)
    return float(count + _conv(pixels, inputs, config["out_channels"]))


def unet_calls(steps: int, scheduler: str | None) -> int:
    """How often the UNet is called for an image of so many steps."""
    return steps + EXTRA_CALLS.get(scheduler or "", 0)


def vae_factor(config: Config) -> int:
    """Pixels per latent, on a side."""
    return 1 << (len(config["block_out_channels"]) - 1)


def _halved(size: int, times: int) -> int:
    for _ in range(times):
        size = (size + 1) // 2
    return size


def _conv(pixels: int, inputs: int, outputs: int, kernel: int = KERNEL) -> float:
    return 2.0 * pixels * inputs * outputs * kernel


def _residual(pixels: int, inputs: int, outputs: int, time: int) -> float:
    """Two convolutions, what the time adds, and a 1x1 convolution where the width changes."""
    shortcut = _conv(pixels, inputs, outputs, 1) if inputs != outputs else 0.0
    return _conv(pixels, inputs, outputs) + _conv(pixels, outputs, outputs) + 2.0 * time * outputs + shortcut


def _attended(kind: str, pixels: int, width: int, text: int, tokens: int) -> float:
    return _transformer(pixels, width, text, tokens) if kind.startswith("CrossAttn") else 0.0


def _transformer(pixels: int, width: int, text: int, tokens: int) -> float:
    """1x1 in and out, attention to itself and to the prompt, and a gated feed-forward part of four times the width."""
    around = 2 * 2 * pixels * width**2
    own = 2 * pixels * 4 * width**2 + 4 * pixels**2 * width
    prompt = 2 * 2 * pixels * width**2 + 2 * 2 * tokens * text * width + 4 * pixels * tokens * width
    feed_forward = 2 * pixels * width * 8 * width + 2 * pixels * 4 * width * width
    return float(around + own + prompt + feed_forward)
