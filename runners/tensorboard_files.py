"""TensorBoard event files of a finished training, in its run folder: loss, learning rate, gradient norm, step time.

They are written after the measurement from what was kept, so they cost the timed steps nothing. Tags are those of
transformers' Trainer, as in the article's published runs.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = "tensorboard"


def can_write() -> bool:
    """Whether the tensorboard package is here; a Gaudi machine may not have it."""
    return importlib.util.find_spec("tensorboard") is not None


def write(folder: Path, scalars: Mapping[str, Sequence[float]], ended_s: Sequence[float]) -> None:
    """Writes one event file.

    Args:
        folder: Made where it is missing.
        scalars: Values of each tag, one for each step from 1 on.
        ended_s: When each step ended, in seconds since 1970.
    """
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for tag, values in scalars.items():
            for step, (value, at_s) in enumerate(zip(values, ended_s, strict=False), start=1):
                writer.add_scalar(tag, value, step, walltime=at_s)
