"""The components of the pipeline, untrained: an ordinary Stable Diffusion, only small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runners.bundled_model.vocabulary import IMAGE_SIZE, MAX_TOKENS

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
    from transformers import CLIPTextModel

VAE_FACTOR = 4
LATENT_SIZE = IMAGE_SIZE // VAE_FACTOR
LATENT_CHANNELS = 4
TEXT_WIDTH = 128

VAE_CONFIG: dict[str, Any] = {
    "in_channels": 3,
    "out_channels": 3,
    "down_block_types": ("DownEncoderBlock2D",) * 3,
    "up_block_types": ("UpDecoderBlock2D",) * 3,
    "block_out_channels": (16, 32, 64),
    "layers_per_block": 1,
    "latent_channels": LATENT_CHANNELS,
    "norm_num_groups": 8,
    "sample_size": IMAGE_SIZE,
    "mid_block_add_attention": False,
}

UNET_CONFIG: dict[str, Any] = {
    "sample_size": LATENT_SIZE,
    "in_channels": LATENT_CHANNELS,
    "out_channels": LATENT_CHANNELS,
    "layers_per_block": 1,
    "block_out_channels": (48, 96, 144),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "cross_attention_dim": TEXT_WIDTH,
    "attention_head_dim": 4,
    "norm_num_groups": 16,
}

TEXT_CONFIG: dict[str, Any] = {
    "hidden_size": TEXT_WIDTH,
    "intermediate_size": 2 * TEXT_WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": MAX_TOKENS,
    "projection_dim": TEXT_WIDTH,
}

SCHEDULER_CONFIG: dict[str, Any] = {
    "num_train_timesteps": 1000,
    "beta_schedule": "scaled_linear",
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
    "prediction_type": "v_prediction",
}


def build_vae() -> AutoencoderKL:
    """Return the untrained image encoder and decoder: 64 pixels to 16 latents a side."""
    import torch
    from diffusers import AutoencoderKL

    vae: AutoencoderKL = AutoencoderKL(**VAE_CONFIG).to(memory_format=torch.channels_last)
    return vae


def build_unet() -> UNet2DConditionModel:
    """Return the untrained denoiser, about 6 million parameters."""
    import torch
    from diffusers import UNet2DConditionModel

    unet: UNet2DConditionModel = UNet2DConditionModel(**UNET_CONFIG).to(memory_format=torch.channels_last)
    return unet


def build_text_encoder(vocabulary_size: int, start: int, end: int) -> CLIPTextModel:
    """Return the untrained text encoder for a tokenizer of that size with those ids of its special tokens."""
    from transformers import CLIPTextConfig, CLIPTextModel

    ids = {"vocab_size": vocabulary_size, "bos_token_id": start, "eos_token_id": end, "pad_token_id": end}
    return CLIPTextModel(CLIPTextConfig(**TEXT_CONFIG, **ids))


def build_scheduler() -> DDIMScheduler:
    """Return the noise schedule of training, as a sampler."""
    from diffusers import DDIMScheduler

    return DDIMScheduler(**SCHEDULER_CONFIG)
