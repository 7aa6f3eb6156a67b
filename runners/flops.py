"""Floating-point operations of a sample by formula, and what devices can do at most. No torch here.

A matrix product of (m, k) with (k, n) counts 2 m k n; everything else (norms, softmax, additions) counts nothing, as in
`torch.utils.flop_counter`, against which the formulas are tested. A training step is three forward passes: the backward
pass computes the gradient of the inputs and that of the weights. With gradient checkpointing the layers' forward pass
is computed once more.
"""

from collections.abc import Mapping
from typing import Any

from runners.records import Conditions

# Dense peaks in TFLOP/s (sparsity doubles a data sheet's number and is not used here). Half precision: the table of
# vendors' theoretical numbers in github.com/stas00/ml-engineering, compute/accelerator. The A100's fp32 is with TF32,
# 156 (19.5 without), NVIDIA A100 data sheet: a record that does not say which is given the benefit of the doubt.
PEAK_TFLOPS: Mapping[str, Mapping[str, float]] = {
    "Gaudi3": {"bf16": 1677.0},
    "Gaudi2": {"bf16": 432.0},
    "HL-225": {"bf16": 432.0},
    "A100": {"bf16": 312.0, "fp16": 312.0, "fp32": 156.0},
    "H100": {"bf16": 989.0, "fp16": 989.0},
    "H200": {"bf16": 989.0, "fp16": 989.0},
    "B200": {"bf16": 2250.0, "fp16": 2250.0},
    "MI300X": {"bf16": 1300.0, "fp16": 1300.0},
}
FORWARD_PASSES = 3


def bert_training(config: Mapping[str, Any], length: int) -> float:
    """Of one sequence through BERT with its masked-word head.

    Args:
        config: As `preflight_training.BERT_CONFIGS`.
        length: Tokens.
    """
    width, layers = config["hidden_size"], config["num_hidden_layers"]
    inner = config.get("intermediate_size", 3072)
    projections = 2 * length * (4 * width**2 + 2 * width * inner)
    attention = 4 * length**2 * width
    head = 2 * length * (width**2 + width * config["vocab_size"])
    return float(FORWARD_PASSES * (layers * (projections + attention) + head))


def t5_training(config: Mapping[str, Any], source: int, target: int, checkpointing: bool) -> float:
    """Of one pair through T5 (version 1.0: a feed-forward part of two matrices).

    Args:
        config: As `preflight_training.T5_CONFIGS`.
        source: Tokens of the text.
        target: Tokens of the summary.
        checkpointing: Whether the layers are computed again for the backward pass.
    """
    width, ff, layers = config["d_model"], config["d_ff"], config["num_layers"]
    inner = config["num_heads"] * config["d_kv"]
    encoder = 2 * source * (4 * width * inner + 2 * width * ff) + 4 * source**2 * inner
    own = 2 * target * (4 * width * inner + 2 * width * ff) + 4 * target**2 * inner
    cross = 4 * target * width * inner + 4 * source * width * inner + 4 * source * target * inner
    head = 2 * target * width * config["vocab_size"]
    passes = FORWARD_PASSES + (1 if checkpointing else 0)
    return float(passes * layers * (encoder + own + cross) + FORWARD_PASSES * head)


def flops_per_sample(conditions: Conditions) -> float | None:
    """By a run's conditions; None where the model is none with a formula here, or a length is not said."""
    from runners.preflight_training import BERT_CONFIGS, T5_CONFIGS

    model, length = conditions.model or "", conditions.sequence_length
    if conditions.workload == "bert-pretraining" and model in BERT_CONFIGS and length:
        return bert_training(BERT_CONFIGS[model], length)
    if conditions.workload == "t5-finetuning" and model in T5_CONFIGS and length and conditions.target_length:
        checkpointing = bool(conditions.gradient_checkpointing)
        return t5_training(T5_CONFIGS[model], length, conditions.target_length, checkpointing)
    return None


def peak_tflops(device_name: str, precision: str | None) -> float | None:
    """The most that one device of that name can do at that precision; None where no sourced number is here."""
    plain = (precision or "").removesuffix("-mixed")
    for name, peaks in PEAK_TFLOPS.items():
        if name.casefold() in device_name.casefold().replace(" ", ""):
            return peaks.get(plain)
    return None
