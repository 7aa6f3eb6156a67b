"""Train the bundled model: ``python -m runners.bundled_model.train all``.

Stages, each resumable by running the same command again: ``vae``, ``latents``, ``unet``, ``judge``, ``export``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from runners.bundled_model.training import Schedule

VAE_SCHEDULE = Schedule(steps=4800, peak=2e-3)


def main() -> None:
    """Run the stages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=("vae",))
    parser.add_argument("--work", type=Path, default=Path("var/bundled-model"))
    options = parser.parse_args()
    import torch

    torch.set_num_threads(2)
    from runners.bundled_model.vae_stage import train_vae

    train_vae(VAE_SCHEDULE, options.work / "vae.pt", "cpu", 0)


if __name__ == "__main__":
    main()
