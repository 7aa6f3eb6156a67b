"""What a training is, and what its record says of it."""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from runners import environment, tensorboard_files
from runners.execute import Outcome, RunContext
from runners.records import Audit, Conditions, Metric, Phase, Series
from runners.specs import TrainingSpec
from runners.stats import MINIMUM_FOR_INTERVAL, rate_metrics
from runners.steady import Pacing, remarks

AGREEMENT = 0.02
"""How far the trainer's own samples per second may be from ours before the record warns of it."""
TIMED_REGION = "training-steps"


@dataclass(frozen=True)
class Timed:
    """What a training left behind."""

    pacing: Pacing
    losses: list[float]
    gradient_norms: list[float]
    learning_rates: list[float]
    whole_s: float
    told: Mapping[str, Any]
    """The trainer's own numbers."""

    @property
    def warm(self) -> list[float]:
        """Seconds of each warm-up step."""
        return self.pacing.warmup

    @property
    def measured(self) -> list[float]:
        """Seconds of each measured step; they add up to the measured region exactly."""
        return self.pacing.measured


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is trained on what."""

    model: Any
    """A torch module whose output has a loss."""
    model_name: str
    """Canonical, for the conditions."""
    parameters: int
    dataset: list[Any]
    """Examples of equal length, `examples_needed` of them."""
    collator: Any
    sequence_to_sequence: bool
    conditions: Mapping[str, Any]
    """More conditions: sequence lengths, weights."""
    details: Mapping[str, Any] = field(default_factory=dict)
    published_samples: int | None = None
    """For the projection: how many samples the published run saw, on all its devices together."""


def write_tensorboard(run_path: Path, timed: Timed, ended_s: float) -> None:
    """Event files for TensorBoard, where its package is here; `ended_s` is when the last step ended, since 1970."""
    if not tensorboard_files.can_write():
        return
    steps = [*timed.warm, *timed.measured]
    began_s = ended_s - sum(steps)
    scalars = {
        "train/loss": timed.losses,
        "train/learning_rate": timed.learning_rates,
        "train/grad_norm": timed.gradient_norms,
        "train/step_s": steps,
    }
    tensorboard_files.write(
        run_path / tensorboard_files.FOLDER, scalars, [began_s + passed_s for passed_s in accumulate(steps)]
    )


def _series(timed: Timed) -> list[Series]:
    """Each column, the warm-up apart."""
    count = len(timed.warm)
    columns = {
        ("step_s", "s"): [*timed.warm, *timed.measured],
        ("loss", ""): timed.losses,
        ("learning_rate", ""): timed.learning_rates,
        ("gradient_norm", ""): timed.gradient_norms,
    }
    return [
        Series(name=name, unit=unit, phase=phase, values=tuple(values))
        for (name, unit), column in columns.items()
        for phase, values in (("warm-up", column[:count]), ("measured", column[count:]))
        if values
    ]


def outcome(spec: TrainingSpec, context: RunContext, job: Job, precision: str, timed: Timed) -> Outcome:
    """The outcome with its conditions, metrics, samples and remarks."""
    batch = spec.batch_size * spec.devices
    metrics = rate_metrics("sample", "samples/s", timed.measured, batch, TIMED_REGION)
    if spec.devices > 1:
        metrics.append(_per_device(metrics[-1], spec.devices))
    per_sample_s = sum(timed.measured) / (len(timed.measured) * batch)
    if job.published_samples is not None:
        projected = Metric(
            name="projected_time_to_train_s",
            value=job.published_samples * per_sample_s,
            unit="s",
            n=len(timed.measured),
            higher_is_better=False,
            timed_region=TIMED_REGION,
        )
        metrics.append(projected)
    return Outcome(
        conditions=Conditions(
            model=job.model_name,
            steps=len(timed.warm) + len(timed.measured),
            batch_size_per_device=spec.batch_size,
            devices=spec.devices,
            precision=f"{precision}-mixed" if precision in ("bf16", "fp16") else precision,
            timed_region=TIMED_REGION,
            warmup_rule=timed.pacing.rule("steps"),
            gradient_checkpointing=spec.gradient_checkpointing,
            optimizer="adamw",
            learning_rate=spec.learning_rate,
            mode="eager",
            software=environment.software(("optimum-habana", "transformers", "torch")),
            software_year=time.gmtime().tm_year,
            **job.conditions,
        ),
        phases=(
            Phase(name="warm-up", duration_s=sum(timed.warm)),
            Phase(name="measured", duration_s=sum(timed.measured)),
        ),
        series=tuple(_series(timed)),
        metrics=tuple(metrics),
        audit=Audit(sync_policy=context.device.sync_policy, warnings=tuple(_warnings(spec, timed))),
        details={
            **job.details,
            "parameters": job.parameters,
            "stopping": timed.pacing.told(),
            "peak_memory_bytes": context.device.peak_memory_bytes(),
            "trainer_samples_per_s": timed.told.get("train_samples_per_second"),
            "samples_per_s_over_all_steps": _over_all(spec, timed),
            "published_samples": job.published_samples,
        },
    )


def _per_device(total: Metric, devices: int) -> Metric:
    interval = (total.interval[0] / devices, total.interval[1] / devices) if total.interval else None
    return dataclasses.replace(total, name=f"{total.name}_per_device", value=total.value / devices, interval=interval)


def _over_all(spec: TrainingSpec, timed: Timed) -> float:
    """Samples per second over all steps, the warm-up included: what the trainer's own number counts."""
    count = len(timed.warm) + len(timed.measured)
    return spec.batch_size * spec.devices * count / (sum(timed.warm) + sum(timed.measured))


def _warnings(spec: TrainingSpec, timed: Timed) -> list[str]:
    found = []
    if len(timed.measured) < MINIMUM_FOR_INTERVAL:
        found.append("too-few-samples")
    if not spec.warmup_steps:
        found.append("first-step-included")
    found += [*timed.pacing.remarks(), *remarks(timed.measured)]
    theirs = timed.told.get("train_samples_per_second")
    if isinstance(theirs, int | float) and theirs > 0 and abs(theirs / _over_all(spec, timed) - 1) > AGREEMENT:
        found.append("trainer-disagrees")
    return found
