"""Which workloads and presets there are. Listing them imports nothing heavy: the code is named by dotted text."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from runners.errors import SpecError, UnknownWorkload
from runners.messages import N_
from runners.spec_fields import fields_of, suggest
from runners.specs import SPECS, spec_from_fields


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Named field values; data, not code."""

    title: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What the registry knows of a workload without importing it."""

    name: str
    summary: str
    function: str
    """module:function, called with (specification, RunContext) and returning `runners.execute.Outcome`."""
    needs_torch: bool
    presets: Mapping[str, Preset]


# What the three presets of the published task share; the prompt is the one of the published command's README.
_PUBLISHED_IMAGE: Mapping[str, Any] = {
    "weights": "architecture",
    "prompt": "An image of a squirrel in Picasso style",
    "width": 512,
    "height": 512,
    "steps": 50,
    "guidance": 7.5,
    "previews": False,
}

WORKLOADS: dict[str, Workload] = {
    "text-to-image": Workload(
        name="text-to-image",
        summary=N_("Stable Diffusion: images from a prompt, with two clocks and stage times."),
        function="runners.workloads.text_to_image:run",
        needs_torch=True,
        presets={
            "bundled": Preset(
                title=N_("The small model that ships with LikeForLike; an image in seconds on a CPU"),
                fields={"weights": "bundled"},
            ),
            "bundled-adaptive": Preset(
                title=N_("The small model until its time per image is known to 2 %, 350 measured images at most"),
                fields={
                    "weights": "bundled",
                    "stopping": "adaptive",
                    "warmup_batches": 50,
                    "images": 400,
                    "previews": False,
                },
            ),
            "architecture": Preset(
                title=N_("Stable Diffusion 1.x at 512x512, 50 steps, random weights: the published arithmetic"),
                fields=_PUBLISHED_IMAGE,
            ),
            "published-gaudi-batch-8": Preset(
                title=N_("As the article measured Gaudi and Gaudi2: batches of 8, first two batches dropped"),
                fields={
                    **_PUBLISHED_IMAGE,
                    "images": 24,
                    "batch_size": 8,
                    "warmup_batches": 2,
                    "precision": "bf16",
                    "seed": 42,
                },
            ),
            "published-a100-batch-1": Preset(
                title=N_("As the article measured the A100: one image at a time in fp16"),
                fields={
                    **_PUBLISHED_IMAGE,
                    "images": 8,
                    "batch_size": 1,
                    "warmup_batches": 2,
                    "precision": "fp16",
                    "seed": 42,
                },
            ),
        },
    ),
    "bert-pretraining": Workload(
        name="bert-pretraining",
        summary=N_("BERT from scratch on masked words: samples per second and the loss."),
        function="runners.workloads.bert_pretraining:run",
        needs_torch=True,
        presets={
            "quick": Preset(
                title=N_("BERT-base on this machine in minutes: one sequence of 512 at a time"),
                fields={"model": "bert-base", "batch_size": 1, "steps": 10, "warmup_steps": 2},
            ),
            "tiny": Preset(
                title=N_("A tiny BERT: the whole path in seconds"),
                fields={"model": "bert-tiny", "batch_size": 8, "steps": 20, "sequence_length": 64},
            ),
            "adaptive": Preset(
                title=N_("BERT-base until its speed is known to 2 %, 500 steps at most"),
                fields={"model": "bert-base", "stopping": "adaptive", "warmup_steps": 50, "steps": 500},
            ),
            "published-batch-32": Preset(
                title=N_("As the article: batches of 32 in bf16 (Gaudi, Gaudi2); sequence length reconstructed"),
                fields={"model": "bert-base", "batch_size": 32, "steps": 50, "precision": "bf16"},
            ),
            "published-batch-64": Preset(
                title=N_("As the article: batches of 64 in bf16 (Gaudi2); sequence length reconstructed"),
                fields={"model": "bert-base", "batch_size": 64, "steps": 50, "precision": "bf16"},
            ),
            "published-a100-batch-32": Preset(
                title=N_("As the article measured the A100: batches of 32 in fp16"),
                fields={"model": "bert-base", "batch_size": 32, "steps": 50, "precision": "fp16"},
            ),
            "published-a100-batch-64": Preset(
                title=N_("As the article measured the A100: batches of 64 in fp16"),
                fields={"model": "bert-base", "batch_size": 64, "steps": 50, "precision": "fp16"},
            ),
        },
    ),
    "t5-finetuning": Workload(
        name="t5-finetuning",
        summary=N_("T5 on texts and their summaries: samples per second and the loss."),
        function="runners.workloads.t5_finetuning:run",
        needs_torch=True,
        presets={
            "quick": Preset(
                title=N_("T5-small on this machine in minutes, at the published lengths"),
                fields={"model": "t5-small", "batch_size": 1, "steps": 10, "warmup_steps": 2},
            ),
            "tiny": Preset(
                title=N_("A tiny T5: the whole path in seconds"),
                fields={"model": "t5-tiny", "batch_size": 4, "steps": 20, "source_length": 64, "target_length": 16},
            ),
            "adaptive": Preset(
                title=N_("T5-small until its speed is known to 2 %, 500 steps at most"),
                fields={"model": "t5-small", "stopping": "adaptive", "warmup_steps": 50, "steps": 500},
            ),
            "published-gaudi2-batch-1": Preset(
                title=N_("As the article measured Gaudi2: T5-3B, one text at a time, fp32; lengths reconstructed"),
                fields={"model": "t5-3b", "batch_size": 1, "steps": 50, "precision": "fp32", "seed": 42},
            ),
            "published-a100-batch-16": Preset(
                title=N_("As the article measured the A100: T5-3B, batches of 16, fp32; lengths reconstructed"),
                fields={"model": "t5-3b", "batch_size": 16, "steps": 50, "precision": "fp32", "seed": 42},
            ),
        },
    ),
    "calibration": Workload(
        name="calibration",
        summary=N_(
            "What this device does at most: matrix products and copies in each precision. Runs then say how close."
        ),
        function="runners.workloads.calibration:run",
        needs_torch=True,
        presets={"quick": Preset(title=N_("Some seconds for each precision"), fields={"seconds": 0.5})},
    ),
    "synthetic": Workload(
        name="synthetic",
        summary=N_("No model at all: a dry run of queue, record, database and charts in under a second."),
        function="runners.workloads.synthetic:run",
        needs_torch=False,
        presets={"quick": Preset(title=N_("20 steps of 5 ms"), fields={"steps": 20, "step_ms": 5.0})},
    ),
}


def workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        UnknownWorkload: There is none; the message names the nearest and all others.
    """
    if name not in WORKLOADS:
        raise UnknownWorkload("unknown-workload", name=name, **suggest(name, WORKLOADS))
    return WORKLOADS[name]


def preset_fields(workload_name: str, preset: str | None) -> dict[str, Any]:
    """The fields of a preset; empty for None.

    Raises:
        SpecError: The workload has no such preset.
    """
    presets = workload(workload_name).presets
    if preset is None:
        return {}
    if preset not in presets:
        raise SpecError("unknown-preset", workload=workload_name, name=preset, **suggest(preset, presets))
    return dict(presets[preset].fields)


def make_spec(workload_name: str, values: Mapping[str, Any], preset: str | None = None) -> Any:
    """The checked specification of preset and values together, values winning.

    Raises:
        SpecError: See `runners.specs.spec_from_fields`; also for an unknown workload or preset.
    """
    fields = preset_fields(workload_name, preset)
    return spec_from_fields(workload_name, {**fields, **{key.replace("-", "_"): v for key, v in values.items()}})


def load_function(workload_name: str) -> Callable[..., Any]:
    """Imports the workload's code and returns its `run` function."""
    module_name, _, function_name = workload(workload_name).function.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module_name), function_name))


def listing() -> list[dict[str, Any]]:
    """Everything that can be run, as plain JSON types (`python -m runners list --json`)."""
    return [
        {
            "name": item.name,
            "summary": item.summary,
            "presets": {
                name: {"title": preset.title, "fields": dict(preset.fields)} for name, preset in item.presets.items()
            },
            "fields": [
                {
                    "name": field.name,
                    "type": field.type.__name__,
                    "default": field.default,
                    "help": field.limits.help,
                    "unit": field.limits.unit,
                    "minimum": field.limits.minimum,
                    "maximum": field.limits.maximum,
                    "choices": list(field.limits.choices),
                }
                for field in fields_of(SPECS[item.name])
            ],
        }
        for item in WORKLOADS.values()
    ]
