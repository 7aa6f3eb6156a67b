"""What a training run will need, before torch is even imported: parameters, gradients, optimizer, activations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runners.errors import DeviceUnavailable, DoesNotFit
from runners.specs import BertPretrainingSpec, T5FinetuningSpec, TrainingSpec

if TYPE_CHECKING:
    from runners.device import Backend

GIB = 2**30
BYTES_FP32_ADAM = 16
"""Weights, gradients, and Adam's two moments, 4 bytes each; mixed precision keeps all of them in fp32 too."""
LIBRARIES_BYTES = 500_000_000

# BERT-base with the vocabulary of the published run; bert-tiny is ours, for tests and dry runs.
BERT_CONFIGS: Mapping[str, dict[str, Any]] = {
    "bert-base": {"vocab_size": 32_000, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12},
    "bert-tiny": {
        "vocab_size": 1_024,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
    },
}
# As published by Google: d_model, d_ff, d_kv, heads, layers; t5-tiny is ours.
T5_CONFIGS: Mapping[str, dict[str, Any]] = {
    "t5-small": {"d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8, "num_layers": 6, "vocab_size": 32_128},
    "t5-base": {"d_model": 768, "d_ff": 3072, "d_kv": 64, "num_heads": 12, "num_layers": 12, "vocab_size": 32_128},
    "t5-large": {"d_model": 1024, "d_ff": 4096, "d_kv": 64, "num_heads": 16, "num_layers": 24, "vocab_size": 32_128},
    "t5-3b": {"d_model": 1024, "d_ff": 16384, "d_kv": 128, "num_heads": 32, "num_layers": 24, "vocab_size": 32_128},
    "t5-tiny": {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 1_024},
}


def parameters_of(spec: TrainingSpec) -> int:
    """How many parameters the model has, by its architecture.

    Counted as transformers builds it: for BERT the embeddings (words, positions, token types, their norm), the layers,
    and the head with its bias, whose matrix is that of the words; for T5 the shared words, encoder, decoder with its
    cross-attention, and relative positions in the first layer of each.
    """
    if isinstance(spec, BertPretrainingSpec):
        return _bert_parameters(BERT_CONFIGS[spec.model], max(512, spec.sequence_length))
    assert isinstance(spec, T5FinetuningSpec)  # noqa: S101 - there are two kinds
    return _t5_parameters(T5_CONFIGS[spec.model])


def parameters_of_model(name: str) -> int | None:
    """How many parameters a model of that name has, at the published lengths; None for one that is not known."""
    if name in BERT_CONFIGS:
        return _bert_parameters(BERT_CONFIGS[name], 512)
    return _t5_parameters(T5_CONFIGS[name]) if name in T5_CONFIGS else None


def activation_bytes(spec: TrainingSpec) -> int:
    """Estimated activations of one step, in bytes.

    In fp32 a layer keeps about 34 values per token and unit of width for the backward pass and the attention's
    probabilities (heads x length x length) about 2.5 times (Korthikanti et al., "Reducing Activation Recomputation in
    Large Transformer Models", 2022, section 4, in fp32 instead of fp16 where it counts bytes); with checkpointing a
    layer keeps its input only, and one layer is alive at a time. The logits and their gradient come to both.
    """
    if isinstance(spec, BertPretrainingSpec):
        config = BERT_CONFIGS[spec.model]
        layers, width, heads = config["num_hidden_layers"], config["hidden_size"], config["num_attention_heads"]
        length, words = spec.sequence_length, config["vocab_size"]
        one_layer = 4 * spec.batch_size * length * (17 * width + 2.5 * heads * length)
        logits = 4 * 3 * spec.batch_size * length * words
        return int(_kept(one_layer, layers, spec, length * width) + logits)
    assert isinstance(spec, T5FinetuningSpec)  # noqa: S101 - there are two kinds
    config = T5_CONFIGS[spec.model]
    layers, width, heads = config["num_layers"], config["d_model"], config["num_heads"]
    source, target = spec.source_length, spec.target_length
    wide = 10 * width + 2 * config["d_ff"] + 4 * heads * config["d_kv"]
    encoder = 4 * spec.batch_size * source * (wide + 3 * heads * source)
    decoder = 4 * spec.batch_size * target * (1.6 * wide + 3 * heads * (target + source))
    logits = 4 * 3 * spec.batch_size * target * config["vocab_size"]
    return int(_kept(encoder, layers, spec, source * width) + _kept(decoder, layers, spec, target * width) + logits)


def check_training(spec: TrainingSpec, device: "Backend", precision: str) -> None:
    """Refuses what cannot run on this device.

    Raises:
        DeviceUnavailable: The device does not run that precision, or not this workload.
        DoesNotFit: The estimate exceeds the free memory; the message shows the sum and what would fit.
    """
    usable = device.precisions()
    if precision != "fp32" and precision not in usable:
        raise DeviceUnavailable(
            "precision-unsupported",
            device=device.kind,
            precision=precision,
            reason="torch has no usable kernels for it there",
            alternatives=", ".join(usable),
        )
    check_memory(spec, device.kind, device.free_memory_bytes())


def refuse_at_once(spec: TrainingSpec) -> None:
    """Refuses, before anything waits in a queue, what this machine's memory can never hold; needs no torch.

    Raises:
        DoesNotFit: See `check_training`.
    """
    from runners import environment
    from runners.device import backend

    kind = environment.likely_device().kind if spec.device == "auto" else spec.device
    if kind == "cpu":
        check_memory(spec, kind, backend("cpu").info().memory_bytes)


def check_memory(spec: TrainingSpec, kind: str, free: int | None) -> None:
    """Refuses what does not fit into so many bytes; the processes of several CPU "devices" share them.

    Raises:
        DoesNotFit: See `check_training`.
    """
    if free is not None and kind == "cpu":
        free //= spec.devices
    fixed = parameters_of(spec) * BYTES_FP32_ADAM + LIBRARIES_BYTES
    activations = activation_bytes(spec)
    if free is None or fixed + activations <= free:
        return
    fitting = int((free - fixed) // (activations / spec.batch_size)) if free > fixed else 0
    smaller = _largest_that_fits(spec, free)
    raise DoesNotFit(
        "training-does-not-fit-batch" if fitting else "training-does-not-fit",
        parameters=parameters_of(spec),
        state_gib=round(parameters_of(spec) * BYTES_FP32_ADAM / GIB, 1),
        activations_gib=round(activations / GIB, 1),
        available_gib=round(free / GIB, 1),
        device=kind,
        **({"fitting": fitting} if fitting else {"smaller": smaller or "-"}),
    )


def _largest_that_fits(spec: TrainingSpec, free: int) -> str | None:
    import dataclasses

    configs = BERT_CONFIGS if isinstance(spec, BertPretrainingSpec) else T5_CONFIGS
    fitting = []
    for name in configs:
        other = dataclasses.replace(spec, model=name, batch_size=1)
        needed = parameters_of(other) * BYTES_FP32_ADAM + LIBRARIES_BYTES + activation_bytes(other)
        if needed <= free:
            fitting.append((parameters_of(other), name))
    return max(fitting)[1] if fitting else None


def _kept(one_layer: float, layers: int, spec: TrainingSpec, tokens_times_width: int) -> float:
    if not spec.gradient_checkpointing:
        return one_layer * layers
    return one_layer + 4 * spec.batch_size * tokens_times_width * layers


def _bert_parameters(config: Mapping[str, Any], positions: int) -> int:
    width, inner = config["hidden_size"], config.get("intermediate_size", 3072)
    embeddings = (config["vocab_size"] + positions + 2) * width + 2 * width
    layer = 4 * (width * width + width) + 2 * width + (width * inner + inner) + (inner * width + width) + 2 * width
    head = width * width + width + 2 * width + config["vocab_size"]
    return int(embeddings + config["num_hidden_layers"] * layer + head)


def _t5_parameters(config: Mapping[str, Any]) -> int:
    width, inner, heads = config["d_model"], config["d_ff"], config["num_heads"]
    attention = 4 * width * heads * config["d_kv"]
    feed_forward = 2 * width * inner
    encoder = config["num_layers"] * (attention + feed_forward + 2 * width)
    decoder = config["num_layers"] * (2 * attention + feed_forward + 3 * width)
    relative = 2 * 32 * heads
    return int(config["vocab_size"] * width + encoder + decoder + relative + 2 * width)
