"""Measure the bundled model: ``python -m runners.bundled_model.evaluate [--json] [--quick] [--model DIR]``.

Images are generated for prompts whose (object, colour, background) training never saw, and judged by a classifier that
only ever saw drawn scenes, and by their pixels. Beside the result stand the VAE's reconstructions of the same scenes
(the ceiling) and random weights (the floor).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.bundled_model.captions import caption
from runners.bundled_model.judge import Judge, Sight
from runners.bundled_model.pipeline import BUNDLED, load_pipeline, save_untrained
from runners.bundled_model.scenes import Scene, any_scene, render, sample_held_out_scene
from runners.bundled_model.training import to_pixels
from runners.bundled_model.vocabulary import DEFAULT_GUIDANCE, DEFAULT_STEPS
from runners.device import DETECTION_ORDER, select

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, StableDiffusionPipeline

IMAGES = 1000
QUICK_IMAGES = 64
PAIR_SHARE = 0.4
FLOOR_SHARE = 0.1  # random weights cost as much as trained ones and say less
BATCH = 16
REQUIRED = {"object": 0.90, "colour": 0.90, "background": 0.95, "pair": 0.75}


@dataclass(frozen=True)
class Rate:
    """How many of how many were right."""

    right: int
    of: int

    @property
    def share(self) -> float:
        """The share that was right; not a number where there was nothing to judge."""
        return self.right / self.of if self.of else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Return share, counts and the 95 % interval, for JSON."""
        low, high = wilson(self.right, self.of)
        return {"share": round(self.share, 4), "low": round(low, 4), "high": round(high, 4), "n": self.of}


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    if not of:
        return 0.0, 1.0
    z = 1.959964
    share = right / of
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, centre - half), min(1.0, centre + half)


def held_out_scenes(count: int, seed: int) -> list[Scene]:
    """Return scenes that training never saw, pairs first."""
    rng = random.Random(f"{seed}:evaluation")
    pairs = round(count * PAIR_SHARE)
    return [sample_held_out_scene(rng, pair=index < pairs) for index in range(count)]


def score(scenes: Sequence[Scene], sights: Sequence[Sight]) -> dict[str, Rate]:
    """Compare what the judge sees with what was asked for.

    Returns:
        `object` and `colour` for prompts of one object; `background` for all; for prompts of two, `pair` (both objects
        right and each in its place), `pair_colours` (both colours right) and `pair_exact` (all of it).
    """
    votes: dict[str, list[bool]] = {name: [] for name in ("object", "colour", "background")}
    votes |= {name: [] for name in ("pair", "pair_colours", "pair_exact")}
    for scene, sight in zip(scenes, sights, strict=True):
        names = tuple(item.name for item in scene.items)
        colours = sight.colours == tuple(item.colour for item in scene.items)
        background = sight.background == scene.background
        votes["background"].append(background)
        if len(names) == 1:
            votes["object"].append(sight.names[0] == names[0])
            votes["colour"].append(sight.colours[0] == scene.items[0].colour)
        else:
            pair = sight.layout == scene.layout and sight.names == names
            votes["pair"].append(pair)
            votes["pair_colours"].append(colours)
            votes["pair_exact"].append(pair and colours and background)
    return {name: Rate(sum(rights), len(rights)) for name, rights in votes.items()}


def generate(
    pipeline: StableDiffusionPipeline, prompts: Sequence[str], steps: int, guidance: float, seed: int
) -> list[Any]:
    """Return one image per prompt; each has a noise of its own, which depends on the seed and its number only."""
    import torch

    images: list[Any] = []
    for start in range(0, len(prompts), BATCH):
        batch = list(prompts[start : start + BATCH])
        noises = [torch.Generator().manual_seed(seed * 1_000_003 + start + index) for index in range(len(batch))]
        images += pipeline(batch, num_inference_steps=steps, guidance_scale=guidance, generator=noises).images
        print(f"{len(images)}/{len(prompts)} images", file=sys.stderr, flush=True)
    return images


def reconstruct(vae: AutoencoderKL, scenes: Sequence[Scene]) -> list[Any]:
    """Return the scenes after a pass through the VAE: as good as any image of this pipeline can be."""
    import torch

    images: list[Any] = []
    with torch.inference_mode():
        for part in to_pixels([render(scene) for scene in scenes], str(vae.device)).split(50):
            drawn = vae.decode(vae.encode(part).latent_dist.mean).sample
            images += list(((drawn.clamp(-1, 1) + 1) * 127.5).round().byte().permute(0, 2, 3, 1).cpu().numpy())
    return images


def judge_accuracy(judge: Judge, count: int, seed: int) -> dict[str, Any]:
    """Return how often the judge is right about fresh drawings of any combination."""
    rng = random.Random(f"{seed}:fresh")
    scenes = [any_scene(rng, pair=rng.random() < PAIR_SHARE) for _ in range(count)]
    return _as_dict(score(scenes, judge.look([render(scene) for scene in scenes])))


def evaluate(
    model: Path, images: int, steps: int, guidance: float, seed: int = 0, device: str = "cpu", floor: bool = True
) -> dict[str, Any]:
    """Generate, judge and compare.

    Args:
        model: A pipeline folder.
        images: How many to generate.
        steps: Denoising steps.
        guidance: Guidance scale.
        seed: Of the prompts and the noise.
        device: Where to generate.
        floor: Whether to judge random weights too.
    """
    judge, scenes = Judge.load(), held_out_scenes(images, seed)
    rng = random.Random(f"{seed}:captions")
    prompts = [caption(scene, rng) for scene in scenes]
    pipeline = load_pipeline(model, device)
    began = time.perf_counter()
    generated = score(scenes, judge.look(generate(pipeline, prompts, steps, guidance, seed)))
    seconds = (time.perf_counter() - began) / images
    report: dict[str, Any] = {
        "conditions": {"images": images, "steps": steps, "guidance": guidance, "seed": seed, "device": device},
        "seconds_per_image": round(seconds, 3),
        "judge_on_fresh_drawings": judge_accuracy(judge, max(1000, images), seed),
        "generated": _as_dict(generated),
        "ceiling_vae_reconstructions": _as_dict(score(scenes, judge.look(reconstruct(pipeline.vae, scenes)))),
        "required": REQUIRED,
        "reached": {name: generated[name].share >= share for name, share in REQUIRED.items()},
    }
    if floor:
        count = max(16, round(images * FLOOR_SHARE))
        picks = scenes[:: max(1, images // count)]
        texts = prompts[:: max(1, images // count)]
        untrained = generate(_untrained(device), texts, steps, guidance, seed)
        report["floor_random_weights"] = _as_dict(score(picks, judge.look(untrained)))
    return report


def _untrained(device: str) -> StableDiffusionPipeline:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        save_untrained(Path(folder))
        return load_pipeline(Path(folder), device)


def _as_dict(rates: dict[str, Rate]) -> dict[str, Any]:
    return {name: rate.as_dict() for name, rate in rates.items() if rate.of}


def _as_text(report: dict[str, Any]) -> str:
    kinds = ("generated", "ceiling_vae_reconstructions", "floor_random_weights", "judge_on_fresh_drawings")
    lines = [f"{report['conditions']}, {report['seconds_per_image']} s per image"]
    for kind in kinds:
        for name, rate in report.get(kind, {}).items():
            wanted = f", required {REQUIRED[name]:.0%}" if kind == "generated" and name in REQUIRED else ""
            interval = f"[{rate['low']:.1%}, {rate['high']:.1%}]"
            lines.append(f"{kind:28} {name:13} {rate['share']:6.1%} {interval} n={rate['n']}{wanted}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Evaluate and print, as text or JSON."""
    parser = argparse.ArgumentParser(prog="evaluate", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_IMAGES} images instead of {IMAGES}")
    parser.add_argument("--images", type=int, help="how many images")
    parser.add_argument("--model", type=Path, default=BUNDLED, help="the pipeline folder")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS)
    parser.add_argument("--guidance", type=float, default=DEFAULT_GUIDANCE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", choices=("auto", *DETECTION_ORDER))
    parser.add_argument("--no-floor", action="store_true", help="leave random weights out")
    options = parser.parse_args(arguments)
    images = options.images or (QUICK_IMAGES if options.quick else IMAGES)
    device = select(options.device).kind
    report = evaluate(
        *(options.model, images, options.steps, options.guidance, options.seed, device),
        floor=not options.no_floor,
    )
    print(json.dumps(report, indent=2) if options.json else _as_text(report))


if __name__ == "__main__":
    main()
