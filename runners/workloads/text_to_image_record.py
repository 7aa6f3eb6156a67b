"""What the record of a text-to-image run says: conditions, phases, samples and details."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runners import environment
from runners.execute import RunContext
from runners.records import Conditions, Phase, Series
from runners.specs import TextToImageSpec
from runners.steady import Pacing, mean_by_rule
from runners.workloads.sd_pipelines import LoadedPipeline

if TYPE_CHECKING:
    from PIL.Image import Image

LIBRARIES = ("optimum-habana", "diffusers", "torch")
"""Whose versions change an image's time."""
PUBLISHED_WARMUP_BATCHES = 2
"""What the article's runs on Gaudi and Gaudi2 dropped."""
STAGES = ("text_encoder_s", "denoising_s", "vae_s")


@dataclass
class Batch:
    """One batch: its images and how long each part took."""

    images: "list[Image]"
    end_to_end_s: float
    denoise_vae_s: float
    stages: dict[str, float] = field(default_factory=dict)


def conditions(spec: TextToImageSpec, loaded: LoadedPipeline, precision: str, warmup_rule: str) -> Conditions:
    """Under which the images were made."""
    return Conditions(
        workload="text-to-image",
        model=loaded.model,
        weights=loaded.weights,
        width_px=spec.width,
        height_px=spec.height,
        steps=spec.steps,
        scheduler=spec.scheduler,
        guidance=spec.guidance,
        batch_size_per_device=spec.batch_size,
        devices=1,
        precision=precision,
        tf32=_tf32(),
        warmup_rule=warmup_rule,
        mode="eager",
        software=environment.software(LIBRARIES),
        software_year=time.gmtime().tm_year,
    )


def _tf32() -> bool:
    import torch

    allowed: bool = torch.backends.cuda.matmul.allow_tf32
    return allowed


def details(
    spec: TextToImageSpec,
    context: RunContext,
    loaded: LoadedPipeline,
    latents_sha256: Sequence[str],
    precision: str,
    pacing: Pacing,
) -> dict[str, Any]:
    """Noise, seeds, tokenizer, the warm-up rule's numbers and the peak of memory."""
    return {
        "latents_sha256": list(latents_sha256),
        "seeds": [spec.seed + index for index in range(len(latents_sha256))],
        "stopping": pacing.told(),
        "batch_by_warmup_rule": mean_by_rule(pacing.warmup, pacing.measured, PUBLISHED_WARMUP_BATCHES),
        "tokenizer": loaded.tokenizer,
        "precision": precision,
        "safety_checker": False,
        "peak_memory_bytes": context.device.peak_memory_bytes(),
    }


def phases(batches: list[Batch], warmup_batches: int, load_s: float | None) -> list[Phase]:
    """Load and first call only where this run loaded the pipeline; the first call is also in what follows."""
    warm_up, measured = batches[:warmup_batches], batches[warmup_batches:]
    phases = [Phase(name="measured", duration_s=sum(batch.end_to_end_s for batch in measured))]
    if warm_up:
        phases.insert(0, Phase(name="warm-up", duration_s=sum(batch.end_to_end_s for batch in warm_up)))
    if load_s is not None:
        first_call = Phase(name="first-call", duration_s=batches[0].end_to_end_s)
        phases = [Phase(name="load", duration_s=load_s), first_call, *phases]
    return phases


def series_of(batches: list[Batch], warmup_batches: int, stage_pass: Batch | None) -> list[Series]:
    """Both clocks and the stages, the warm-up apart."""
    series = []
    for phase, part in (("warm-up", batches[:warmup_batches]), ("measured", batches[warmup_batches:])):
        if not part:
            continue
        columns = {"denoise_vae_s": [b.denoise_vae_s for b in part], "end_to_end_s": [b.end_to_end_s for b in part]}
        for stage in STAGES:
            columns[stage] = [b.stages[stage] for b in part if stage in b.stages]
        series += [
            Series(name=name, unit="s", phase=phase, values=tuple(values)) for name, values in columns.items() if values
        ]
    if stage_pass is not None:
        series += [
            Series(name=stage, unit="s", phase="stage-pass", values=(seconds,))
            for stage, seconds in stage_pass.stages.items()
        ]
    return series
