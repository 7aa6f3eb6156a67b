"""Train the bundled model: ``python -m runners.bundled_model.train all``.

Stages, in order: ``vae``, ``latents`` (scenes drawn and encoded once), ``unet`` (with the text encoder), ``judge``,
``export``. Each goes on where it stopped when the same command is run again. ``--from-weights`` continues from a
pipeline folder instead of from nothing: its VAE is kept, its UNet and text encoder are trained further.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from runners.bundled_model.schedule import Schedule
from runners.device import DETECTION_ORDER

STAGES = ("vae", "latents", "unet", "judge", "export")
VAE = Schedule(steps=2000, peak=2e-3)
UNET = Schedule(steps=12_000, peak=1e-3, decay_share=0.25, ema_decay=0.998, muon_peak=3e-3)
JUDGE = Schedule(steps=1600, peak=2e-3)


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    stage: str
    work: Path
    output: Path
    device: str
    seed: int
    threads: int
    scenes: int
    from_weights: Path | None
    vae: Schedule
    unet: Schedule
    judge: Schedule


def main(arguments: list[str] | None = None) -> None:
    """Run one stage, or all of them."""
    options = _options(arguments)
    # Before torch is imported: threads that spin at a barrier lose most of the time when other work shares the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    from runners.device import select

    if options.threads:
        torch.set_num_threads(options.threads)
    options = dataclasses.replace(options, device=select(options.device).kind)
    stages: tuple[str, ...] = STAGES if options.stage == "all" else (options.stage,)
    if options.stage == "all" and options.from_weights:
        stages = tuple(stage for stage in STAGES if stage != "judge")  # it does not depend on the model
    for stage in stages:
        print(f"stage {stage}", file=sys.stderr, flush=True)
        {"vae": _vae, "latents": _latents, "unet": _unet, "judge": _judge, "export": _export}[stage](options)


def _options(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="train", description=__doc__)
    parser.add_argument("stage", choices=("all", *STAGES))
    parser.add_argument("--work", type=Path, default=Path("var/bundled-model"), help="checkpoints and latents")
    parser.add_argument("--output", type=Path, help="the pipeline folder to write (default: data/models/bundled)")
    parser.add_argument("--device", default="auto", choices=("auto", *DETECTION_ORDER))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: torch's choice)")
    parser.add_argument("--scenes", type=int, default=40_000, help="scenes drawn for the unet stage")
    parser.add_argument("--from-weights", type=Path, help="a pipeline folder to train further")
    for name, schedule in (("vae", VAE), ("unet", UNET), ("judge", JUDGE)):
        parser.add_argument(f"--{name}-steps", type=int, default=schedule.steps, help="optimizer steps in all")
    found = parser.parse_args(arguments)
    from runners.bundled_model.pipeline import BUNDLED

    return Options(
        *(found.stage, found.work, found.output or BUNDLED, found.device, found.seed, found.threads, found.scenes),
        from_weights=found.from_weights,
        vae=dataclasses.replace(VAE, steps=found.vae_steps),
        unet=dataclasses.replace(UNET, steps=found.unet_steps),
        judge=dataclasses.replace(JUDGE, steps=found.judge_steps),
    )


def _vae(options: Options) -> None:
    from diffusers import AutoencoderKL

    from runners.bundled_model.vae_stage import normalise_latents, train_vae

    if options.from_weights:
        AutoencoderKL.from_pretrained(options.from_weights / "vae").float().save_pretrained(options.work / "vae")
        return
    vae = train_vae(options.vae, options.work / "vae.pt", options.device, options.seed)
    normalise_latents(vae, options.seed)
    vae.cpu().save_pretrained(options.work / "vae")


def _latents(options: Options) -> None:
    from diffusers import AutoencoderKL

    from runners.bundled_model.tokenizer import load_tokenizer, write_tokenizer
    from runners.bundled_model.unet_stage import make_pool, save_pool

    path = options.work / "pool.safetensors"
    if path.exists():
        print(f"{path} is there already", file=sys.stderr)
        return
    vae = AutoencoderKL.from_pretrained(options.work / "vae").to(options.device).eval()
    write_tokenizer(options.work / "tokenizer")
    tokenizer = load_tokenizer(options.work / "tokenizer")
    save_pool(make_pool(vae, tokenizer, options.scenes, options.seed, options.device), path)


def _unet(options: Options) -> None:
    from runners.bundled_model.unet_stage import DenoisingLoss, load_pool, unet_trainer

    pool = load_pool(options.work / "pool.safetensors")
    checkpoint = options.work / "unet.pt"
    trainer, unet, text_encoder = unet_trainer(
        options.unet, checkpoint, options.device, options.seed, options.from_weights
    )
    trainer.fit(DenoisingLoss(unet, text_encoder, pool))


def _judge(options: Options) -> None:
    from runners.bundled_model.judge import train_judge

    train_judge(options.judge, options.work / "judge.pt", options.device, options.seed).save()


def _export(options: Options) -> None:
    """Write the pipeline folder from the moving average of the checkpoint, at whatever step it is."""
    from diffusers import AutoencoderKL

    from runners.bundled_model.pipeline import save_pipeline
    from runners.bundled_model.unet_stage import unet_trainer

    trainer, unet, text_encoder = unet_trainer(options.unet, options.work / "unet.pt", "cpu", options.seed)
    trainer.use_average()
    vae = AutoencoderKL.from_pretrained(options.work / "vae")
    save_pipeline(options.output, vae, unet, text_encoder)
    print(f"{options.output}: step {trainer.step}, {trainer.seconds / 60:.0f} min of training", file=sys.stderr)


if __name__ == "__main__":
    main()
