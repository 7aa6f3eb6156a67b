"""What BERT pretraining and T5 fine-tuning share: the trainer, our own clock around its steps, and the record.

The trainer is transformers' own (`Trainer`, `Seq2SeqTrainer`); LikeForLike adds no step of its own to it. Timed are the
steps after the warm-up, from one wait for the device to the next; inside, nothing makes the host wait: losses are kept
on the device and read at the end.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from runners.device import Backend
from runners.energy import Meter
from runners.errors import WorkloadFailed
from runners.execute import Outcome, RunContext
from runners.specs import TrainingSpec
from runners.steady import Pacing
from runners.workloads.training_record import Job, Timed, outcome, write_tensorboard

if TYPE_CHECKING:
    import torch

MAX_EXAMPLES = 2_048


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
        self.gradient_norms: list[torch.Tensor] = []
        self.learning_rates: list[float] = []
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
    norms = [float(norm) for norm in clock.gradient_norms]
    timed = Timed(clock.pacing, losses, norms, clock.learning_rates, whole_s, told)
    if not context.quiet:
        write_tensorboard(context.run_dir.path, timed, time.time())
    return outcome(spec, context, job, precision, timed)


def _mean_over_devices(kept: "list[torch.Tensor]") -> list[float]:
    """Each step's loss as numbers, the mean of all devices; read only now, when nothing is timed any more."""
    import torch

    losses = torch.stack([loss.float() for loss in kept])
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(losses)
        losses /= torch.distributed.get_world_size()
    return [float(loss) for loss in losses.cpu()]


def _trainer(spec: TrainingSpec, context: RunContext, job: Job, precision: str, clock: StepClock, folder: Path) -> Any:
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, Trainer, TrainerCallback, TrainingArguments

    steps = spec.warmup_steps + spec.steps
    energy = context.energy or Meter("none")

    class Clocked(TrainerCallback):
        """Cancels, reports and times; it never looks at a tensor."""

        def on_train_begin(self, *_arguments: Any, **_more: Any) -> None:
            clock.begin()
            energy.follow(clock.pacing)

        def on_step_begin(self, *_arguments: Any, **more: Any) -> None:
            clock.learning_rates.append(float(more["lr_scheduler"].get_last_lr()[0]))

        def on_step_end(self, _args: Any, state: Any, control: Any, **_more: Any) -> None:
            control.should_training_stop = clock.step_ended()
            energy.follow(clock.pacing)
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
    trainer = Keeping(
        model=job.model,
        args=arguments,
        train_dataset=Repeated(job.dataset, spec.batch_size * spec.devices * steps),
        data_collator=job.collator,
        callbacks=[Clocked()],
    )
    clip = trainer.accelerator.clip_grad_norm_

    def clip_and_keep(*given: Any, **more: Any) -> Any:
        norm = clip(*given, **more)
        clock.gradient_norms.append(norm.detach())
        return norm

    trainer.accelerator.clip_grad_norm_ = clip_and_keep
    return trainer
