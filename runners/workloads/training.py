"""What BERT pretraining and T5 fine-tuning share: the trainer, our own clock around its steps, and the record.

The trainer is transformers' own (`Trainer`, `Seq2SeqTrainer`); LikeForLike adds no step of its own to it. Timed are the
steps after the warm-up, from one wait for the device to the next; inside, nothing makes the host wait: losses are kept
on the device and read at the end.
"""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from runners import environment
from runners.device import Backend
from runners.errors import WorkloadFailed
from runners.execute import Outcome, RunContext
from runners.records import Audit, Conditions, Metric, Phase, Series
from runners.specs import TrainingSpec
from runners.stats import MINIMUM_FOR_INTERVAL, rate_metrics
from runners.steady import Pacing, remarks

if TYPE_CHECKING:
    import torch

AGREEMENT = 0.02
"""How far the trainer's own samples per second may be from ours before the record warns of it."""
TIMED_REGION = "training-steps"
MAX_EXAMPLES = 2_048


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


class Repeated:
    """A dataset of so many examples out of fewer, from their start again and again."""

    def __init__(self, examples: list[Any], count: int) -> None:
        """Takes the examples and how many there shall seem to be."""
        self.examples = examples
        self.count = count

    def __len__(self) -> int:
        """As many as all steps need."""
        return self.count

    def __getitem__(self, index: int) -> Any:
        """One example."""
        return self.examples[index % len(self.examples)]


def examples_needed(spec: TrainingSpec) -> int:
    """How many different examples are made: all that the steps need, or so many that more would teach nothing new."""
    batch = spec.batch_size * spec.devices
    return min(batch * (spec.warmup_steps + spec.steps), max(MAX_EXAMPLES, batch))


class StepClock:
    """Times of steps as the host sees them; it waits for the device where samples begin, end, or are looked at."""

    def __init__(self, device: Backend, pacing: Pacing) -> None:
        """Nothing is timed yet."""
        self.device = device
        self.pacing = pacing
        self.losses: list[torch.Tensor] = []
        self._ended_s = 0.0

    def begin(self) -> None:
        """Just before the first step."""
        self.device.synchronize()
        self._ended_s = time.perf_counter()

    def step_ended(self) -> bool:
        """After every optimizer step; returns whether training is over."""
        if self.pacing.at_an_edge:
            self.device.synchronize()
        now_s = time.perf_counter()
        seconds, self._ended_s = now_s - self._ended_s, now_s
        return self.pacing.take(seconds)


def train(spec: TrainingSpec, context: RunContext, job: Job, precision: str) -> Outcome:
    """Trains, and returns what was measured.

    Raises:
        Cancelled: Somebody asked the run to stop.
        WorkloadFailed: The loss is not finite.
    """
    clock = StepClock(context.device, Pacing(spec.warmup_steps, spec.steps, adaptive=spec.stopping == "adaptive"))
    context.device.reset_peak_memory()
    with TemporaryDirectory() as folder:
        trainer = _trainer(spec, context, job, precision, clock, Path(folder))
        began_s = time.perf_counter()
        told = trainer.train().metrics
        whole_s = time.perf_counter() - began_s
    losses = _mean_over_devices(clock.losses)
    if not all(loss == loss and abs(loss) != float("inf") for loss in losses):
        raise WorkloadFailed("loss-not-finite", step=1 + next(i for i, x in enumerate(losses) if not abs(x) < 1e30))
    return _outcome(spec, context, job, precision, _Timed(clock.pacing, losses, whole_s, told))


def _mean_over_devices(kept: "list[torch.Tensor]") -> list[float]:
    """Each step's loss as numbers, the mean of all devices; read only now, when nothing is timed any more."""
    import torch

    losses = torch.stack([loss.float() for loss in kept])
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(losses)
        losses /= torch.distributed.get_world_size()
    return [float(loss) for loss in losses.cpu()]


@dataclass(frozen=True)
class _Timed:
    pacing: Pacing
    losses: list[float]
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


def _trainer(spec: TrainingSpec, context: RunContext, job: Job, precision: str, clock: StepClock, folder: Path) -> Any:
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, Trainer, TrainerCallback, TrainingArguments

    steps = spec.warmup_steps + spec.steps

    class Clocked(TrainerCallback):
        """Cancels, reports and times; it never looks at a tensor."""

        def on_train_begin(self, *_arguments: Any, **_more: Any) -> None:
            clock.begin()

        def on_step_end(self, _args: Any, state: Any, control: Any, **_more: Any) -> None:
            control.should_training_stop = clock.step_ended()
            context.check_cancelled()
            phase = "measured" if clock.pacing.measured else "warm-up"
            context.progress(phase, step=state.global_step, steps=steps)

    kept = clock.losses
    base: Any = Seq2SeqTrainer if job.sequence_to_sequence else Trainer

    class Keeping(base):
        """Keeps the losses where they are, so that nothing waits for them."""

        def training_step(self, *arguments: Any, **more: Any) -> Any:
            loss = super().training_step(*arguments, **more)
            kept.append(loss.detach())
            return loss

    make: Any = Seq2SeqTrainingArguments if job.sequence_to_sequence else TrainingArguments
    arguments = make(
        output_dir=str(folder),
        per_device_train_batch_size=spec.batch_size,
        max_steps=steps,
        learning_rate=spec.learning_rate,
        lr_scheduler_type="linear",
        optim="adamw_torch",
        gradient_checkpointing=spec.gradient_checkpointing,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        seed=spec.seed,
        use_cpu=context.device.kind == "cpu",
        ddp_backend="gloo" if context.device.kind == "cpu" and spec.devices > 1 else None,
        # All of these would make the host wait, write files, or call home, in the middle of the measurement.
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_drop_last=True,
        dataloader_num_workers=0,
        average_tokens_across_devices=False,
        remove_unused_columns=False,
    )
    # Several GPUs of one process would become a DataParallel, which multiplies the batch behind our back.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return Keeping(
        model=job.model,
        args=arguments,
        train_dataset=Repeated(job.dataset, spec.batch_size * spec.devices * steps),
        data_collator=job.collator,
        callbacks=[Clocked()],
    )


def _outcome(spec: TrainingSpec, context: RunContext, job: Job, precision: str, timed: _Timed) -> Outcome:
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
    warm_losses, losses = timed.losses[: len(timed.warm)], timed.losses[len(timed.warm) :]
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
            software=_software(),
            software_year=time.gmtime().tm_year,
            **job.conditions,
        ),
        phases=(
            Phase(name="warm-up", duration_s=sum(timed.warm)),
            Phase(name="measured", duration_s=sum(timed.measured)),
        ),
        series=(
            *((Series(name="step_s", unit="s", phase="warm-up", values=tuple(timed.warm)),) if timed.warm else ()),
            Series(name="step_s", unit="s", phase="measured", values=tuple(timed.measured)),
            *((Series(name="loss", unit="", phase="warm-up", values=tuple(warm_losses)),) if warm_losses else ()),
            Series(name="loss", unit="", phase="measured", values=tuple(losses)),
        ),
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


def _over_all(spec: TrainingSpec, timed: _Timed) -> float:
    """Samples per second over all steps, the warm-up included: what the trainer's own number counts."""
    count = len(timed.warm) + len(timed.measured)
    return spec.batch_size * spec.devices * count / (sum(timed.warm) + sum(timed.measured))


def _warnings(spec: TrainingSpec, timed: _Timed) -> list[str]:
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


def _software() -> str:
    versions = environment.package_versions()
    names = ("optimum-habana", "transformers", "torch")
    return ", ".join(f"{name} {versions[name]}" for name in names if versions[name] is not None)
