"""The training loop that every stage shares: schedule, moving average, checkpoints, progress.

All randomness of step k comes from (seed, k) alone, so a run that was stopped and resumed makes the same weights as one
that was not, and no generator's state needs saving.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from runners.bundled_model.muon import Muon
from runners.bundled_model.schedule import Schedule

LossOfStep = Callable[[int, random.Random], Tensor]


def seed_step(seed: int, step: int) -> random.Random:
    """Seed torch for one step and return the step's own generator for scenes."""
    rng = random.Random(f"{seed}:{step}")
    torch.manual_seed(rng.getrandbits(63))
    return rng


class Trainer:
    """Trains a set of modules on a loss, resumes from its checkpoint, and says how long it will take."""

    def __init__(self, modules: dict[str, nn.Module], schedule: Schedule, checkpoint: Path, seed: int = 0) -> None:
        """Prepare the optimizer and pick up the checkpoint, if there is one.

        Args:
            modules: What to train, by name; the names are those in the checkpoint.
            schedule: Steps, learning rates and intervals.
            checkpoint: Where the state is kept between runs.
            seed: The root of all randomness.
        """
        self.modules = modules
        self.schedule = schedule
        self.checkpoint = checkpoint
        self.seed = seed
        self.step = 0
        self.seconds = 0.0
        self.parameters: list[nn.Parameter] = [p for m in modules.values() for p in m.parameters() if p.requires_grad]
        self.optimizers = self._optimizers()
        self.average: list[Tensor] = [p.detach().clone() for p in self.parameters] if schedule.ema_decay else []
        if checkpoint.exists():
            self._load()

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        schedule = self.schedule
        matrices = [p for p in self.parameters if schedule.muon_peak and p.ndim > 1 and min(p.flatten(1).shape) >= 32]
        chosen = {id(p) for p in matrices}
        others = [p for p in self.parameters if id(p) not in chosen]
        decay = schedule.weight_decay
        fused = others[0].device.type == "cpu" or None  # elsewhere torch chooses
        adam = torch.optim.AdamW(others, schedule.peak, betas=(0.9, 0.99), weight_decay=decay, fused=fused)
        return [adam, Muon(matrices, schedule.muon_peak, decay)] if matrices else [adam]

    def fit(self, loss_of_step: LossOfStep, stop_after: int | None = None) -> float:
        """Train to the last step of the schedule.

        Args:
            loss_of_step: The loss of a step, given the step and its generator.
            stop_after: Leave earlier, after this many steps in all, as if interrupted.

        Returns:
            The running mean of the loss.
        """
        last = min(self.schedule.steps, stop_after or self.schedule.steps)
        began, first, mean = time.monotonic(), self.step, float("nan")
        before = self.seconds
        while self.step < last:
            rng = seed_step(self.seed, self.step)
            value = self._one_step(loss_of_step(self.step, rng))
            mean = value if mean != mean else 0.98 * mean + 0.02 * value  # NaN: the first step
            self.step += 1
            self.seconds = before + time.monotonic() - began
            if self.step % self.schedule.report_every == 0:
                self._report(mean, (time.monotonic() - began) / (self.step - first))
            if self.step % self.schedule.save_every == 0 or self.step == last:
                self.save()
        return mean

    def use_average(self) -> None:
        """Put the moving average into the modules. Training cannot go on from there."""
        with torch.no_grad():
            for parameter, average in zip(self.parameters, self.average, strict=True):
                parameter.copy_(average)

    def _one_step(self, loss: Tensor) -> float:
        peaks = (self.schedule.peak, self.schedule.muon_peak)
        for optimizer, peak in zip(self.optimizers, peaks, strict=False):
            optimizer.zero_grad()
            for group in optimizer.param_groups:
                group["lr"] = peak * self.schedule.share_of_peak(self.step)
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.average:
            decay = min(self.schedule.ema_decay, (1 + self.step) / (10 + self.step))
            torch._foreach_lerp_(self.average, [p.detach() for p in self.parameters], 1 - decay)
        return float(loss.detach())

    def _report(self, loss: float, seconds_per_step: float) -> None:
        left = (self.schedule.steps - self.step) * seconds_per_step / 60
        name = self.checkpoint.stem
        rate = self.schedule.peak * self.schedule.share_of_peak(self.step)
        line = f"{name} {self.step}/{self.schedule.steps} loss {loss:.4f} lr {rate:.2e} {seconds_per_step:.2f} s/step"
        print(f"{line}, {left:.0f} min left", file=sys.stderr, flush=True)

    def save(self) -> None:
        """Write the checkpoint so that a crash leaves the old one or the new one, never half of one."""
        state: dict[str, Any] = {
            "step": self.step,
            "seconds": self.seconds,
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "average": self.average,
        }
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        partial = self.checkpoint.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.checkpoint)

    def _load(self) -> None:
        state = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
        self.step, self.seconds = int(state["step"]), float(state["seconds"])
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.average = [
            average.to(parameter.device)
            for average, parameter in zip(state["average"], self.parameters, strict=bool(self.schedule.ema_decay))
        ]


def to_pixels(images: Sequence[Any], device: str) -> Tensor:
    """Return images as a channels-last batch of values from -1 to 1."""
    import numpy as np

    stacked = torch.from_numpy(np.stack([np.asarray(image) for image in images])).permute(0, 3, 1, 2)
    return stacked.to(device).float().div(127.5).sub(1).contiguous(memory_format=torch.channels_last)
