"""What can be asked of a workload: one frozen dataclass each, with limits, units and help (`runners.spec_fields`).

None means "the model's or the machine's own default".
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.bundled_model.vocabulary import DEFAULT_GUIDANCE, DEFAULT_STEPS
from runners.errors import SpecError
from runners.messages import N_
from runners.paths import BUNDLED_MODEL_DIR
from runners.spec_fields import checked, field, fields_of, suggest

MAX_PROMPT_CHARACTERS = 2_000
MAX_SEED = 2**63 - 1
SCHEDULERS = ("DDIM", "PNDM", "Euler", "DPM++ 2M")
PRECISIONS = ("fp32", "fp16", "bf16")
STOPPING = ("fixed", "adaptive")
LEAST_ADAPTIVE_WARMUP = 10
"""Samples without a trend that end an adaptive warm-up; see `runners.steady`."""
DEVICES = ("auto", "hpu", "cuda", "xpu", "mps", "cpu")


def _stopping() -> Any:
    return field(
        "fixed",
        help=N_(
            "fixed: warm-up and measurement are as long as said. adaptive: warm-up ends when times show no trend any "
            "more, measuring when the mean is known to 2 %; the numbers said are the most."
        ),
        choices=STOPPING,
    )


@dataclass(frozen=True, kw_only=True)
class SyntheticSpec:
    """A run without torch: deterministic samples, for dry runs of the whole path."""

    steps: int = field(20, help=N_("How many steps to pretend."), minimum=1, maximum=1_000_000)
    step_ms: float = field(5.0, help=N_("How long each step sleeps."), unit="ms", minimum=0, maximum=60_000)
    batch_size: int = field(1, help=N_("Samples per step."), minimum=1, maximum=1_000_000)
    seed: int = field(0, help=N_("Seed of the made-up loss values."), minimum=0, maximum=MAX_SEED)
    fail_at_step: int = field(0, help=N_("Fail on purpose at this step; 0 for never."), minimum=0, maximum=1_000_000)
    device: str = field("auto", help=N_("Which accelerator to reserve."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class CalibrationSpec:
    """What the device does at most: matrix products and copies."""

    seconds: float = field(
        0.5,
        help=N_("Time for each size; larger sizes that need more are left out."),
        unit="s",
        minimum=0.01,
        maximum=60,
    )
    device: str = field("auto", help=N_("Which accelerator to use."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class TextToImageSpec:
    """Images from a prompt with a Stable Diffusion 1.x pipeline."""

    prompt: str = field(
        "a red circle on a white background",
        help=N_("What the image should show."),
        max_characters=MAX_PROMPT_CHARACTERS,
    )
    negative_prompt: str = field("", help=N_("What the image should not show."), max_characters=MAX_PROMPT_CHARACTERS)
    weights: str = field(
        "bundled",
        help=N_(
            "bundled (small, ships with LikeForLike), architecture (the published model with random weights, for "
            "timing), a local pipeline folder, or a hub id."
        ),
        max_characters=500,
    )
    steps: int | None = field(None, help=N_("Denoising steps; empty for the model's default."), minimum=1, maximum=500)
    guidance: float | None = field(
        None, help=N_("Classifier-free guidance scale; 1 turns it off."), minimum=1, maximum=50
    )
    seed: int = field(
        0,
        help=N_("Seed of the first image; image i starts from seed + i."),
        minimum=0,
        maximum=MAX_SEED - 10_000,
    )
    scheduler: str = field("DDIM", help=N_("How noise is removed from step to step."), choices=SCHEDULERS)
    width: int | None = field(
        None,
        help=N_("Image width; empty for the model's own."),
        unit="px",
        minimum=32,
        maximum=2_048,
        multiple=8,
    )
    height: int | None = field(
        None,
        help=N_("Image height; empty for the model's own."),
        unit="px",
        minimum=32,
        maximum=2_048,
        multiple=8,
    )
    images: int = field(1, help=N_("How many images; a multiple of the batch size."), minimum=1, maximum=1_000)
    batch_size: int = field(1, help=N_("Images generated at the same time."), minimum=1, maximum=256)
    precision: str | None = field(
        None, help=N_("Number format of weights and arithmetic; empty for the device's own."), choices=PRECISIONS
    )
    warmup_batches: int = field(
        0,
        help=N_("Batches run first and not counted (the article dropped two)."),
        unit="batches",
        minimum=0,
        maximum=100,
    )
    stopping: str = _stopping()
    previews: bool = field(
        True, help=N_("Write small previews while denoising; switch off where only the time matters.")
    )
    device: str = field("auto", help=N_("Which accelerator to use."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """What every training workload can be asked."""

    model: str
    batch_size: int = field(1, help=N_("Samples in each step of each device."), minimum=1, maximum=1_000_000)
    devices: int = field(
        1,
        help=N_("How many devices of this machine train together, each on a batch of its own."),
        minimum=1,
        maximum=64,
    )
    steps: int = field(20, help=N_("Optimizer steps that are measured."), minimum=1, maximum=1_000_000)
    warmup_steps: int = field(2, help=N_("Steps run first and not counted."), unit="steps", minimum=0, maximum=100_000)
    stopping: str = _stopping()
    precision: str | None = field(
        None, help=N_("fp32, or mixed precision (autocast) with this format; empty for fp32."), choices=PRECISIONS
    )
    gradient_checkpointing: bool = field(
        False, help=N_("Keep less for the backward pass and compute it again: less memory, more time.")
    )
    dropout: float = field(
        0.1, help=N_("Share of values left out at random while training, as published."), minimum=0, maximum=0.9
    )
    learning_rate: float = field(5e-5, help=N_("Highest learning rate; it falls linearly."), minimum=1e-9, maximum=1)
    data: str = field(
        "synthetic",
        help=N_("synthetic (made up, needs nothing), or a folder of .txt, .jsonl or .parquet files."),
        max_characters=500,
    )
    seed: int = field(34, help=N_("Seed of weights, data and masks."), minimum=0, maximum=MAX_SEED - 10_000)
    device: str = field("auto", help=N_("Which accelerator to use."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class BertPretrainingSpec(TrainingSpec):
    """BERT from scratch on masked words."""

    model: str = field(
        "bert-base",
        help=N_("bert-base is the published one (110.65 million parameters); bert-tiny is for dry runs."),
        choices=("bert-base", "bert-tiny"),
    )
    sequence_length: int = field(
        512, help=N_("Tokens in a sequence."), unit="tokens", minimum=8, maximum=4_096, multiple=8
    )


@dataclass(frozen=True, kw_only=True)
class T5FinetuningSpec(TrainingSpec):
    """T5 on texts and their summaries."""

    model: str = field(
        "t5-small",
        help=N_("t5-3b is the published one; t5-tiny is for dry runs."),
        choices=("t5-small", "t5-base", "t5-large", "t5-3b", "t5-tiny"),
    )
    source_length: int = field(1024, help=N_("Tokens of a text."), unit="tokens", minimum=8, maximum=4_096, multiple=8)
    target_length: int = field(
        128, help=N_("Tokens of a summary."), unit="tokens", minimum=8, maximum=1_024, multiple=8
    )
    gradient_checkpointing: bool = field(
        True, help=N_("Keep less for the backward pass and compute it again: less memory, more time.")
    )


SPECS: dict[str, type] = {
    "text-to-image": TextToImageSpec,
    "bert-pretraining": BertPretrainingSpec,
    "t5-finetuning": T5FinetuningSpec,
    "calibration": CalibrationSpec,
    "synthetic": SyntheticSpec,
}


def spec_from_fields(workload: str, values: Mapping[str, Any]) -> Any:
    """Checks values and makes the specification.

    Args:
        workload: A key of `SPECS`.
        values: Field values as Python values, or as texts from the command line.

    Raises:
        SpecError: A field or value is not known, or out of range; the message names what is.
    """
    fields = {field.name: field for field in fields_of(SPECS[workload])}
    values_checked = {}
    for raw_name, value in values.items():
        name = raw_name.replace("-", "_")
        if name not in fields:
            raise SpecError("unknown-field", workload=workload, name=raw_name, **suggest(raw_name, fields))
        values_checked[name] = checked(fields[name], value)
    spec = SPECS[workload](**values_checked)
    if isinstance(spec, TextToImageSpec | TrainingSpec):
        _check_stopping(spec)
    if isinstance(spec, TextToImageSpec):
        if not spec.prompt.strip():
            raise SpecError("prompt-empty")
        if spec.images % spec.batch_size:
            raise SpecError("images-not-multiple", images=spec.images, batch_size=spec.batch_size)
        batches = spec.images // spec.batch_size
        if spec.warmup_batches >= batches:
            raise SpecError("warmup-too-long", warmup_batches=spec.warmup_batches, images=spec.images, batches=batches)
    return spec


def _check_stopping(spec: TextToImageSpec | TrainingSpec) -> None:
    """An adaptive warm-up needs room for the test that ends it."""
    name = "warmup_batches" if isinstance(spec, TextToImageSpec) else "warmup_steps"
    warmup = getattr(spec, name)
    if spec.stopping == "adaptive" and warmup < LEAST_ADAPTIVE_WARMUP:
        raise SpecError("adaptive-needs-warmup", field=name, value=warmup, minimum=LEAST_ADAPTIVE_WARMUP)


def resolve_text_to_image(spec: TextToImageSpec) -> TextToImageSpec:
    """Fills what the specification leaves to the model: steps, guidance, width and height.

    The bundled model's defaults are those its evaluation shows best for quality per second; other models take the
    published 50 steps at guidance 7.5 and their own resolution.
    """
    bundled = spec.weights == "bundled"
    side_px = native_side_px(spec.weights)
    return dataclasses.replace(
        spec,
        steps=spec.steps or (DEFAULT_STEPS if bundled else 50),
        guidance=spec.guidance if spec.guidance is not None else (DEFAULT_GUIDANCE if bundled else 7.5),
        width=spec.width or side_px,
        height=spec.height or side_px,
    )


def native_side_px(weights: str) -> int:
    """The side of the square that a model was trained on: read from a local folder, 512 for Stable Diffusion 1.x."""
    try:
        folder = BUNDLED_MODEL_DIR if weights == "bundled" else Path(weights).expanduser()
        unet = json.loads((folder / "unet" / "config.json").read_text(encoding="utf-8"))
        vae = json.loads((folder / "vae" / "config.json").read_text(encoding="utf-8"))
        return int(unet["sample_size"]) << (len(vae["block_out_channels"]) - 1)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, RecursionError):
        return 512
