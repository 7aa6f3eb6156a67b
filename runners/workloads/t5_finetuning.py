"""T5 fine-tuning on summaries: a text of up to 1024 tokens in, 128 out, both padded to those lengths.

Published: T5-3B on CNN/DailyMail 3.0.0, "summarize: " before each article, fp32, gradient checkpointing, AdamW with a
linear schedule from 5e-5, 1 (Gaudi2) or 16 (A100) samples per device, 8 devices, 3 epochs (model card
regisss/t5-3b-summarization-gaudi-2; optimum-habana v1.3.0 examples/summarization). Here the weights are random and the
texts made up unless a folder with `article` and `highlights` is given.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.execute import Outcome, RunContext
from runners.preflight_training import T5_CONFIGS, check_training
from runners.specs import T5FinetuningSpec
from runners.workloads.bert_pretraining import stacked
from runners.workloads.several_devices import is_one_of_several, run_on_devices
from runners.workloads.training import examples_needed, train
from runners.workloads.training_record import Job
from runners.workloads.training_text import EOS, PAD, bytes_as_tokens, made_up_sequences, pairs_of_folder

if TYPE_CHECKING:
    import torch

PREFIX = "summarize: "
TRAINING_SAMPLES, EPOCHS = 287_113, 3
"""Of CNN/DailyMail 3.0.0, and of the published run."""


def run(spec: T5FinetuningSpec, context: RunContext) -> Outcome:
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
    job = Job(
        model=model,
        model_name=spec.model,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        dataset=examples(spec, config.vocab_size),
        collator=stacked,
        sequence_to_sequence=True,
        conditions={
            "workload": "t5-finetuning",
            "weights": "architecture",
            "sequence_length": spec.source_length,
            "target_length": spec.target_length,
        },
        details={"data": spec.data, "tokens": "made up" if spec.data == "synthetic" else "bytes"},
        published_samples=EPOCHS * TRAINING_SAMPLES if spec.model == "t5-3b" else None,
    )
    return train(spec, context, job, precision)


def examples(spec: T5FinetuningSpec, vocabulary: int) -> list[dict[str, "torch.Tensor"]]:
    """Sources and targets, padded to their full lengths as the published script does.

    Returns:
        `input_ids` and `attention_mask` of shape (source_length,), `labels` of shape (target_length,), -100 at padding.
    """
    count = examples_needed(spec)
    if spec.data == "synthetic":
        sources = made_up_sequences(count, spec.source_length, vocabulary, spec.seed)
        # What is asked for can be read off the source: its first words.
        pairs = [(source, source[: spec.target_length - 1]) for source in sources]
    else:
        texts = pairs_of_folder(Path(spec.data).expanduser(), count)
        pairs = [
            (bytes_as_tokens(PREFIX + article, vocabulary), bytes_as_tokens(summary, vocabulary))
            for article, summary in texts
        ]
    return [_example(source, target, spec) for source, target in pairs]


def _example(source: list[int], target: list[int], spec: T5FinetuningSpec) -> dict[str, "torch.Tensor"]:
    import torch

    source = [*source[: spec.source_length - 1], EOS]
    target = [*target[: spec.target_length - 1], EOS]
    ids = torch.full((spec.source_length,), PAD)
    ids[: len(source)] = torch.tensor(source)
    labels = torch.full((spec.target_length,), -100)
    labels[: len(target)] = torch.tensor(target)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


def _model(spec: T5FinetuningSpec) -> tuple[Any, Any]:
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(spec.seed)
    config = T5Config(
        **T5_CONFIGS[spec.model],
        dropout_rate=spec.dropout,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=PAD,
        use_cache=False,
    )
    return T5ForConditionalGeneration(config), config
