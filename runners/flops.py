"""Floating-point operations of a sample by formula. No torch here.

A matrix product of (m, k) with (k, n) counts 2 m k n; everything else (norms, softmax, additions) counts nothing, as in
`torch.utils.flop_counter`, against which the formulas are tested. A training step is three forward passes: the backward
pass computes the gradient of the inputs and that of the weights. With gradient checkpointing the layers' forward pass
is computed once more. The parts of Stable Diffusion are in `runners.flops_images`.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from runners import flops_images
from runners.paths import BUNDLED_MODEL_DIR
from runners.records import Conditions

FORWARD_PASSES = 3
PARTS = ("text_encoder", "unet", "vae")


def bert_forward(config: Mapping[str, Any], length: int) -> float:
    """Of one sequence through BERT with its masked-word head, which looks at every token.

    Args:
        config: As `preflight_training.BERT_CONFIGS`.
        length: Tokens.
    """
    width, layers = config["hidden_size"], config["num_hidden_layers"]
    inner = config.get("intermediate_size", 3072)
    projections = 2 * length * (4 * width**2 + 2 * width * inner)
    attention = 4 * length**2 * width
    head = 2 * length * (width**2 + width * config["vocab_size"])
    return float(layers * (projections + attention) + head)


def bert_training(config: Mapping[str, Any], length: int) -> float:
    """Of one sequence in a training step; see `bert_forward`."""
    return FORWARD_PASSES * bert_forward(config, length)


def t5_forward(config: Mapping[str, Any], source: int, target: int) -> float:
    """Of one pair through T5 (version 1.0: a feed-forward part of two matrices): encoder, decoder, language head.

    Args:
        config: As `preflight_training.T5_CONFIGS`.
        source: Tokens of the text.
        target: Tokens of the summary.
    """
    return _t5_layers(config, source, target) + _t5_head(config, target)


def t5_training(config: Mapping[str, Any], source: int, target: int, checkpointing: bool) -> float:
    """Of one pair in a training step; see `t5_forward`.

    Args:
        config: As `preflight_training.T5_CONFIGS`.
        source: Tokens of the text.
        target: Tokens of the summary.
        checkpointing: Whether the layers are computed again for the backward pass.
    """
    passes = FORWARD_PASSES + (1 if checkpointing else 0)
    return passes * _t5_layers(config, source, target) + FORWARD_PASSES * _t5_head(config, target)


def text_to_image(configs: Mapping[str, Mapping[str, Any]], conditions: Conditions) -> float | None:
    """Of one image in the timed region; None where size or steps are not said.

    Args:
        configs: Of `text_encoder`, `unet` and `vae`, as in a pipeline folder.
        conditions: Resolution, steps, guidance, scheduler and clock. A clock that is not said counts as the published
            one, without the text encoder.
    """
    if not (conditions.width_px and conditions.height_px and conditions.steps):
        return None
    factor = flops_images.vae_factor(configs["vae"])
    height, width = conditions.height_px // factor, conditions.width_px // factor
    passes = 2 if (conditions.guidance or 1.0) > 1 else 1
    tokens = configs["text_encoder"]["max_position_embeddings"]
    calls = flops_images.unet_calls(conditions.steps, conditions.scheduler)
    total = passes * calls * flops_images.unet(configs["unet"], height, width, tokens)
    if conditions.timed_region != "unet-loop":
        total += flops_images.vae_decoder(configs["vae"], height, width)
    if conditions.timed_region == "end-to-end" and conditions.batch_size_per_device:
        encoder = flops_images.text_encoder(configs["text_encoder"])
        total += passes * encoder / conditions.batch_size_per_device
    return total


def flops_per_sample(conditions: Conditions) -> float | None:
    """Of one image, sequence or pair by a run's conditions; None for an unknown model or a missing size."""
    from runners.preflight_training import BERT_CONFIGS, T5_CONFIGS

    model, length = conditions.model or "", conditions.sequence_length
    if conditions.workload == "bert-pretraining" and model in BERT_CONFIGS and length:
        again = bool(conditions.gradient_checkpointing)
        config = BERT_CONFIGS[model]
        return bert_training(config, length) + (_bert_layers(config, length) if again else 0.0)
    if conditions.workload == "t5-finetuning" and model in T5_CONFIGS and length and conditions.target_length:
        checkpointing = bool(conditions.gradient_checkpointing)
        return t5_training(T5_CONFIGS[model], length, conditions.target_length, checkpointing)
    if conditions.workload == "text-to-image":
        configs = image_configs(model)
        return text_to_image(configs, conditions) if configs else None
    return None


@cache
def image_configs(model: str) -> Mapping[str, Mapping[str, Any]] | None:
    """The configurations of an image model's parts by its canonical name; None for one that is not known here."""
    if model == "stable-diffusion-1":
        from runners.workloads.sd_pipelines import SD1_TEXT, SD1_UNET, SD1_VAE

        return dict(zip(PARTS, (SD1_TEXT, SD1_UNET, SD1_VAE), strict=True))
    if model == "likeforlike-bundled":
        try:
            files = {part: BUNDLED_MODEL_DIR / part / "config.json" for part in PARTS}
            return {part: json.loads(path.read_text(encoding="utf-8")) for part, path in files.items()}
        except (OSError, ValueError):
            return None
    return None


def _bert_layers(config: Mapping[str, Any], length: int) -> float:
    return bert_forward({**config, "vocab_size": 0}, length) - 2 * length * float(config["hidden_size"]) ** 2


def _t5_layers(config: Mapping[str, Any], source: int, target: int) -> float:
    width, ff, layers = config["d_model"], config["d_ff"], config["num_layers"]
    inner = config["num_heads"] * config["d_kv"]
    encoder = 2 * source * (4 * width * inner + 2 * width * ff) + 4 * source**2 * inner
    own = 2 * target * (4 * width * inner + 2 * width * ff) + 4 * target**2 * inner
    cross = 4 * target * width * inner + 4 * source * width * inner + 4 * source * target * inner
    return float(layers * (encoder + own + cross))


def _t5_head(config: Mapping[str, Any], target: int) -> float:
    return float(2 * target * config["d_model"] * config["vocab_size"])
