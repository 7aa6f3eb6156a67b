"""BERT pretraining from scratch: masked words only, as the article's experiment was.

Published: BERT-base with 32,000 words, sequences of 512, 15 % of the words masked (no next-sentence task), AdamW with a
linear schedule from 5e-5 and no warm-up, 32 or 64 sequences per device, 8 devices, 65,000 or 20,000 steps
(huggingface/blog@046fe95c: pretraining-bert.md). The data are words made up by rule unless a folder is given; the
arithmetic is the same.
"""

from typing import TYPE_CHECKING, Any

from runners.execute import Outcome, RunContext
from runners.preflight_training import BERT_CONFIGS, check_training
from runners.specs import BertPretrainingSpec
from runners.workloads.several_devices import is_one_of_several, run_on_devices
from runners.workloads.training import examples_needed, train
from runners.workloads.training_record import Job
from runners.workloads.training_text import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, made_up_sequences, sequences_of_folder

if TYPE_CHECKING:
    import torch

MASKED_SHARE, LEFT_SHARE, RANDOM_SHARE = 0.15, 0.1, 0.1
"""Of the words, 15 % are asked for; of these, a tenth is left as it is and a tenth replaced by a random word."""
PUBLISHED_SAMPLES = {32: 65_000 * 32 * 8, 64: 20_000 * 64 * 8}
"""By the batch of each of the 8 devices: what one device has to get through alone."""


def run(spec: BertPretrainingSpec, context: RunContext) -> Outcome:
    """Trains for the warm-up and the measured steps.

    Raises:
        Cancelled: Somebody asked the run to stop.
        DoesNotFit, DeviceUnavailable: Preflight refused it.
        SpecError: The data cannot be used.
        WorkloadFailed: The loss is not finite.
    """
    if spec.devices > 1 and not is_one_of_several():
        return run_on_devices(spec, context)
    precision = spec.precision or "fp32"
    check_training(spec, context.device, precision)
    context.progress("load")
    model, config = _model(spec)
    sequences = _sequences(spec, examples_needed(spec), config.vocab_size)
    job = Job(
        model=model,
        model_name=spec.model,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        dataset=masked(sequences, config.vocab_size, spec.seed),
        collator=stacked,
        sequence_to_sequence=False,
        conditions={
            "workload": "bert-pretraining",
            "weights": "architecture",
            "sequence_length": spec.sequence_length,
        },
        details={"data": spec.data, "tokens": "made up" if spec.data == "synthetic" else "bytes"},
        published_samples=PUBLISHED_SAMPLES.get(spec.batch_size) if spec.model == "bert-base" else None,
    )
    return train(spec, context, job, precision)


def masked(sequences: list[list[int]], vocabulary: int, seed: int) -> list[dict[str, "torch.Tensor"]]:
    """Each sequence with 15 % of its words hidden, beforehand, so that no masking is part of the timed steps.

    Args:
        sequences: Token ids, all of one length.
        vocabulary: Number of ids.
        seed: Of the choice of words.

    Returns:
        `input_ids`, `attention_mask` and `labels` (-100 where nothing is asked), each of shape (length,).
    """
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    made = []
    for sequence in sequences:
        ids = torch.tensor(sequence)
        labels = ids.clone()
        maskable = ids >= SPECIAL_TOKENS
        # As many in each sequence, so that every batch of every device asks for as many; one at least, or no loss.
        places = maskable.nonzero().flatten()
        count = max(1, round(MASKED_SHARE * len(places)))
        asked = torch.zeros(len(ids), dtype=torch.bool)
        asked[places[torch.randperm(len(places), generator=generator)[:count]]] = True
        labels[~asked] = -100
        fate = torch.rand(len(ids), generator=generator)
        replaced = torch.randint(SPECIAL_TOKENS, vocabulary, (len(ids),), generator=generator)
        ids = torch.where(asked & (fate >= LEFT_SHARE + RANDOM_SHARE), MASK, ids)
        ids = torch.where(asked & (fate >= LEFT_SHARE) & (fate < LEFT_SHARE + RANDOM_SHARE), replaced, ids)
        made.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels})
    return made


def stacked(examples: list[dict[str, "torch.Tensor"]]) -> dict[str, "torch.Tensor"]:
    """A batch: all examples are of one length."""
    import torch

    return {name: torch.stack([example[name] for example in examples]) for name in examples[0]}


def _model(spec: BertPretrainingSpec) -> tuple[Any, Any]:
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(spec.seed)
    config = BertConfig(
        **BERT_CONFIGS[spec.model],
        max_position_embeddings=max(512, spec.sequence_length),
        pad_token_id=PAD,
        bos_token_id=CLS,
        eos_token_id=SEP,
        hidden_dropout_prob=spec.dropout,
        attention_probs_dropout_prob=spec.dropout,
    )
    model = BertForMaskedLM(config)
    if spec.gradient_checkpointing:
        model.config.use_cache = False
    return model, config


def _sequences(spec: BertPretrainingSpec, count: int, vocabulary: int) -> list[list[int]]:
    from pathlib import Path

    if spec.data == "synthetic":
        return made_up_sequences(count, spec.sequence_length, vocabulary, spec.seed)
    return sequences_of_folder(Path(spec.data).expanduser(), count, spec.sequence_length, vocabulary)
