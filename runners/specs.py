"""What can be asked of a workload: its fields with limits, units and help, and how texts become values.

A specification is a frozen dataclass; each field carries a `Limits` in its metadata, from which the command line, the
forms of the app and the checks below are made. None means "the model's or the machine's own default".
"""

import dataclasses
import difflib
import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.bundled_model.vocabulary import DEFAULT_GUIDANCE, DEFAULT_STEPS
from runners.errors import SpecError
from runners.messages import N_
from runners.paths import BUNDLED_MODEL_DIR

MAX_PROMPT_CHARACTERS = 2_000
MAX_SEED = 2**63 - 1
SCHEDULERS = ("DDIM", "PNDM", "Euler", "DPM++ 2M")
PRECISIONS = ("fp32", "fp16", "bf16")
STOPPING = ("fixed", "adaptive")
LEAST_ADAPTIVE_WARMUP = 10
DEVICES = ("auto", "hpu", "cuda", "xpu", "mps", "cpu")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a field accepts, and how it is explained."""

    help: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    multiple: int | None = None
    choices: tuple[str, ...] = ()
    max_characters: int | None = None


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a specification, as forms and the command line need it."""

    name: str
    type: type
    """str, int, float or bool."""
    optional: bool
    """Whether None, "the default of the model or machine", is a value."""
    default: Any
    limits: Limits


def _field(default: Any, **limits: Any) -> Any:
    return dataclasses.field(default=default, metadata={"limits": Limits(**limits)})


def _stopping() -> Any:
    return _field(
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

    steps: int = _field(20, help=N_("How many steps to pretend."), minimum=1, maximum=1_000_000)
    step_ms: float = _field(5.0, help=N_("How long each step sleeps."), unit="ms", minimum=0, maximum=60_000)
    batch_size: int = _field(1, help=N_("Samples per step."), minimum=1, maximum=1_000_000)
    seed: int = _field(0, help=N_("Seed of the made-up loss values."), minimum=0, maximum=MAX_SEED)
    fail_at_step: int = _field(0, help=N_("Fail on purpose at this step; 0 for never."), minimum=0, maximum=1_000_000)
    device: str = _field("auto", help=N_("Which accelerator to reserve."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class CalibrationSpec:
    """What the device does at most: matrix products and copies."""

    seconds: float = _field(
        0.5,
        help=N_("Time for each size; larger sizes that need more are left out."),
        unit="s",
        minimum=0.01,
        maximum=60,
    )
    device: str = _field("auto", help=N_("Which accelerator to use."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class TextToImageSpec:
    """Images from a prompt with a Stable Diffusion 1.x pipeline."""

    prompt: str = _field(
        "a red circle on a white background",
        help=N_("What the image should show."),
        max_characters=MAX_PROMPT_CHARACTERS,
    )
    negative_prompt: str = _field("", help=N_("What the image should not show."), max_characters=MAX_PROMPT_CHARACTERS)
    weights: str = _field(
        "bundled",
        help=N_(
            "bundled (small, ships with LikeForLike), architecture (the published model with random weights, for "
            "timing), a local pipeline folder, or a hub id."
        ),
        max_characters=500,
    )
    steps: int | None = _field(None, help=N_("Denoising steps; empty for the model's default."), minimum=1, maximum=500)
    guidance: float | None = _field(
        None, help=N_("Classifier-free guidance scale; 1 turns it off."), minimum=1, maximum=50
    )
    seed: int = _field(
        0,
        help=N_("Seed of the first image; image i starts from seed + i."),
        minimum=0,
        maximum=MAX_SEED - 10_000,
    )
    scheduler: str = _field("DDIM", help=N_("How noise is removed from step to step."), choices=SCHEDULERS)
    width: int | None = _field(
        None,
        help=N_("Image width; empty for the model's own."),
        unit="px",
        minimum=32,
        maximum=2_048,
        multiple=8,
    )
    height: int | None = _field(
        None,
        help=N_("Image height; empty for the model's own."),
        unit="px",
        minimum=32,
        maximum=2_048,
        multiple=8,
    )
    images: int = _field(1, help=N_("How many images; a multiple of the batch size."), minimum=1, maximum=1_000)
    batch_size: int = _field(1, help=N_("Images generated at the same time."), minimum=1, maximum=256)
    precision: str | None = _field(
        None, help=N_("Number format of weights and arithmetic; empty for the device's own."), choices=PRECISIONS
    )
    warmup_batches: int = _field(
        0,
        help=N_("Batches run first and not counted (the article dropped two)."),
        unit="batches",
        minimum=0,
        maximum=100,
    )
    stopping: str = _stopping()
    previews: bool = _field(
        True, help=N_("Write small previews while denoising; switch off where only the time matters.")
    )
    device: str = _field("auto", help=N_("Which accelerator to use."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """What every training workload can be asked."""

    model: str
    batch_size: int = _field(1, help=N_("Samples in each step of each device."), minimum=1, maximum=1_000_000)
    devices: int = _field(
        1,
        help=N_("How many devices of this machine train together, each on a batch of its own."),
        minimum=1,
        maximum=64,
    )
    steps: int = _field(20, help=N_("Optimizer steps that are measured."), minimum=1, maximum=1_000_000)
    warmup_steps: int = _field(2, help=N_("Steps run first and not counted."), unit="steps", minimum=0, maximum=100_000)
    stopping: str = _stopping()
    precision: str | None = _field(
        None, help=N_("fp32, or mixed precision (autocast) with this format; empty for fp32."), choices=PRECISIONS
    )
    gradient_checkpointing: bool = _field(
        False, help=N_("Keep less for the backward pass and compute it again: less memory, more time.")
    )
    dropout: float = _field(
        0.1, help=N_("Share of values left out at random while training, as published."), minimum=0, maximum=0.9
    )
    learning_rate: float = _field(5e-5, help=N_("Highest learning rate; it falls linearly."), minimum=1e-9, maximum=1)
    data: str = _field(
        "synthetic",
        help=N_("synthetic (made up, needs nothing), or a folder of .txt, .jsonl or .parquet files."),
        max_characters=500,
    )
    seed: int = _field(34, help=N_("Seed of weights, data and masks."), minimum=0, maximum=MAX_SEED - 10_000)
    device: str = _field("auto", help=N_("Which accelerator to use."), choices=DEVICES)


@dataclass(frozen=True, kw_only=True)
class BertPretrainingSpec(TrainingSpec):
    """BERT from scratch on masked words."""

    model: str = _field(
        "bert-base",
        help=N_("bert-base is the published one (110.65 million parameters); bert-tiny is for dry runs."),
        choices=("bert-base", "bert-tiny"),
    )
    sequence_length: int = _field(
        512, help=N_("Tokens in a sequence."), unit="tokens", minimum=8, maximum=4_096, multiple=8
    )


@dataclass(frozen=True, kw_only=True)
class T5FinetuningSpec(TrainingSpec):
    """T5 on texts and their summaries."""

    model: str = _field(
        "t5-small",
        help=N_("t5-3b is the published one; t5-tiny is for dry runs."),
        choices=("t5-small", "t5-base", "t5-large", "t5-3b", "t5-tiny"),
    )
    source_length: int = _field(1024, help=N_("Tokens of a text."), unit="tokens", minimum=8, maximum=4_096, multiple=8)
    target_length: int = _field(
        128, help=N_("Tokens of a summary."), unit="tokens", minimum=8, maximum=1_024, multiple=8
    )
    gradient_checkpointing: bool = _field(
        True, help=N_("Keep less for the backward pass and compute it again: less memory, more time.")
    )


SPECS: dict[str, type] = {
    "text-to-image": TextToImageSpec,
    "bert-pretraining": BertPretrainingSpec,
    "t5-finetuning": T5FinetuningSpec,
    "calibration": CalibrationSpec,
    "synthetic": SyntheticSpec,
}


def fields_of(spec_class: type) -> list[Field]:
    """The fields of a specification class, in order."""
    hints = typing.get_type_hints(spec_class)
    fields = []
    for item in dataclasses.fields(spec_class):
        hint = hints[item.name]
        optional = isinstance(hint, types.UnionType)
        plain = next(kind for kind in typing.get_args(hint) if kind is not type(None)) if optional else hint
        fields.append(
            Field(name=item.name, type=plain, optional=optional, default=item.default, limits=item.metadata["limits"])
        )
    return fields


def spec_from_fields(workload: str, values: Mapping[str, Any]) -> Any:
    """Checks values and makes the specification.

    Args:
        workload: A key of `SPECS`.
        values: Field values as Python values, or as texts from the command line.

    Raises:
        SpecError: A field or value is not known, or out of range; the message names what is.
    """
    fields = {field.name: field for field in fields_of(SPECS[workload])}
    checked = {}
    for raw_name, value in values.items():
        name = raw_name.replace("-", "_")
        if name not in fields:
            raise SpecError("unknown-field", workload=workload, name=raw_name, **suggest(raw_name, fields))
        checked[name] = _checked(fields[name], value)
    spec = SPECS[workload](**checked)
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


def _check_stopping(spec: Any) -> None:
    """An adaptive warm-up needs room for the test that ends it."""
    warmup = getattr(spec, "warmup_batches", getattr(spec, "warmup_steps", 0))
    if getattr(spec, "stopping", "fixed") == "adaptive" and warmup < LEAST_ADAPTIVE_WARMUP:
        field = "warmup_batches" if isinstance(spec, TextToImageSpec) else "warmup_steps"
        raise SpecError("adaptive-needs-warmup", field=field, value=warmup, minimum=LEAST_ADAPTIVE_WARMUP)


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """`["steps=20", …]` as a dict.

    Raises:
        SpecError: A text has no equals sign or no name before it.
    """
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise SpecError("not-field-equals-value", text=text)
        values[name.strip()] = value
    return values


def suggest(name: str, known: Iterable[str]) -> dict[str, str]:
    """The nearest of the known names, and all of them, as message parameters."""
    names = list(known)
    folded = {item.casefold(): item for item in names}
    nearest = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.0)
    return {"nearest": folded[nearest[0]] if nearest else "-", "known": ", ".join(names)}


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


def _checked(field: Field, value: Any) -> Any:
    if field.optional and (value is None or value in ("", "auto")):
        return None
    converted = _converted(field, value)
    limits = field.limits
    if limits.choices and converted not in limits.choices:
        by_folded = {choice.casefold(): choice for choice in limits.choices}
        if str(converted).casefold() in by_folded:
            return by_folded[str(converted).casefold()]
        raise SpecError(
            "unknown-value", field=field.name, value=str(converted)[:80], **suggest(str(converted), limits.choices)
        )
    if limits.max_characters is not None and len(converted) > limits.max_characters:
        raise SpecError("text-too-long", field=field.name, length=len(converted), maximum=limits.max_characters)
    _check_range(field, converted)
    return converted


def _converted(field: Field, value: Any) -> Any:
    """The value in the field's type; texts are parsed, numbers of another kind are converted where nothing is lost."""
    shown = str(value)[:80]
    if field.type is str:
        text = str(value)
        if not text.isprintable() and any("\ud800" <= character <= "\udfff" for character in text):
            raise SpecError("not-text", field=field.name)
        return text
    if field.type is bool:
        if isinstance(value, bool):
            return value
        if str(value).strip().lower() in ("true", "yes", "on", "1"):
            return True
        if str(value).strip().lower() in ("false", "no", "off", "0"):
            return False
        raise SpecError("not-a-boolean", field=field.name, value=shown)
    try:
        if field.type is int:
            if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
                raise ValueError(value)
            # int() of a text of many thousand digits is slow, and refused by Python beyond 4,300.
            return int(value.strip() if isinstance(value, str) else value)
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)
        if number != number:
            raise ValueError(value)
        return number
    except (ValueError, TypeError, OverflowError):
        raise SpecError(
            "not-a-number" if field.type is int else "not-a-decimal", field=field.name, value=shown
        ) from None


def _check_range(field: Field, value: Any) -> None:
    limits = field.limits
    if field.type not in (int, float):
        return
    low = limits.minimum if limits.minimum is not None else -float("inf")
    high = limits.maximum if limits.maximum is not None else float("inf")
    if not low <= value <= high:
        raise SpecError("out-of-range", field=field.name, minimum=low, maximum=high, value=value)
    if limits.multiple and value % limits.multiple:
        nearest = max(int(low), round(value / limits.multiple) * limits.multiple)
        raise SpecError("not-a-multiple", field=field.name, multiple=limits.multiple, value=value, nearest=nearest)
