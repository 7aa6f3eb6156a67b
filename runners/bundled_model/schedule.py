"""How long and how fast a stage is trained. No torch here: the command line must set its threads up first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How one stage is trained.

    Attributes:
        steps: Optimizer steps in all.
        peak: The highest learning rate: reached after `warm_up` steps, held, and let down to zero over the last
            `decay_share` of the steps. Because it is held, a finished number of steps can be raised later.
        ema_decay: Decay of the moving average of the weights, or 0 for none.
        muon_peak: The highest learning rate of Muon, which then trains the weight matrices, or 0 for AdamW alone.
    """

    steps: int
    peak: float
    warm_up: int = 100
    decay_share: float = 0.3
    weight_decay: float = 0.01
    ema_decay: float = 0.0
    muon_peak: float = 0.0
    save_every: int = 200
    report_every: int = 25

    def share_of_peak(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0, as a share of the highest."""
        decay_steps = max(1, round(self.steps * self.decay_share))
        rising = (step + 1) / max(1, self.warm_up)
        falling = (self.steps - step) / decay_steps
        return max(0.0, min(1.0, rising, falling))
