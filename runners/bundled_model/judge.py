"""The independent judge: what does an image show?

Objects and layout come from a small classifier that has only ever seen drawn scenes; colours from the pixels.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from runners.bundled_model.scenes import Scene, any_scene, render
from runners.bundled_model.schedule import Schedule
from runners.bundled_model.training import Trainer, to_pixels
from runners.bundled_model.vocabulary import COLOURS, OBJECTS

LAYOUTS = ("single", "row", "column")
WEIGHTS = Path(__file__).with_name("judge.safetensors")
BATCH = 64
_NOTHING = len(OBJECTS)
_RIM = 3  # pixels: the width of the frame in which nothing but background is drawn
_BACKGROUND_DISTANCE = 60.0


@dataclass(frozen=True)
class Sight:
    """What the judge sees: objects and their colours (left or upper first), where they stand, and on what."""

    layout: str
    names: tuple[str, ...]
    colours: tuple[str, ...]
    background: str


class SceneClassifier(nn.Module):
    """A small convolutional network with three answers: the layout, the first object, the second object or none."""

    def __init__(self) -> None:
        """Build the layers, untrained."""
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 32, 5, 2, 2), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU()),
            *(nn.Conv2d(64, 96, 3, 2, 1), nn.BatchNorm2d(96), nn.ReLU()),
            *(nn.Conv2d(96, 96, 3, 1, 1), nn.BatchNorm2d(96), nn.ReLU()),
            *(nn.Conv2d(96, 24, 1), nn.BatchNorm2d(24), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(24 * 64, 128), nn.ReLU()),
        )
        self.heads = nn.Linear(128, len(LAYOUTS) + len(OBJECTS) + len(OBJECTS) + 1)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of the layout, the first object and the second."""
        scores = self.heads(self.features(pixels))
        layout, first, second = scores.split((len(LAYOUTS), len(OBJECTS), len(OBJECTS) + 1), dim=1)
        return layout, first, second


class Judge:
    """Looks at images and says what they show."""

    def __init__(self, classifier: SceneClassifier) -> None:
        """Take a trained classifier."""
        self.classifier = classifier.eval()

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> Judge:
        """Return the judge that ships beside this module."""
        from safetensors.torch import load_file

        classifier = SceneClassifier()
        classifier.load_state_dict({name: tensor.float() for name, tensor in load_file(path).items()}, strict=False)
        return cls(classifier)

    def save(self, path: Path = WEIGHTS) -> None:
        """Write the classifier, in half precision."""
        from safetensors.torch import save_file

        weights = {
            n: t.half() for n, t in self.classifier.state_dict().items() if not n.endswith("num_batches_tracked")
        }
        save_file(weights, path)
        path.chmod(0o644)  # safetensors leaves it readable by its owner alone

    def look(self, images: Sequence[Any]) -> list[Sight]:
        """Return what each image shows.

        Args:
            images: RGB images of 64 by 64 pixels, as Pillow images or arrays of bytes.
        """
        pixels = to_pixels(images, "cpu")
        with torch.inference_mode():
            scores = [torch.cat(part) for part in zip(*(self.classifier(p) for p in pixels.split(100)), strict=True)]
        found = []
        for image, layout, first, second in zip(pixels, *(score.argmax(1).tolist() for score in scores), strict=True):
            names = [OBJECTS[first]] + ([OBJECTS[second]] if LAYOUTS[layout] != "single" and second != _NOTHING else [])
            background, colours = pixel_colours(image, LAYOUTS[layout])
            found.append(Sight(LAYOUTS[layout], tuple(names), colours, background))
        return found


def pixel_colours(image: Tensor, layout: str) -> tuple[str, tuple[str, ...]]:
    """Return the background and each object's main colour, from the pixels of one image with values from -1 to 1.

    The background is the palette's nearest to the median of the rim. An object's colour is the most frequent nearest
    palette colour among the pixels of its half (or of the whole image) that are not close to the background.
    """
    bytes_ = (image + 1) * 127.5
    rim = torch.cat([bytes_[:, :_RIM].flatten(1), bytes_[:, -_RIM:].flatten(1)], dim=1)
    sides = torch.cat([bytes_[:, :, :_RIM].flatten(1), bytes_[:, :, -_RIM:].flatten(1)], dim=1)
    ground = torch.cat([rim, sides], dim=1).median(dim=1).values
    palette = torch.tensor(list(COLOURS.values()), dtype=torch.float32)
    background = int((palette - ground).norm(dim=1).argmin())
    half = bytes_.shape[-1] // 2
    parts = {
        "single": [bytes_],
        "row": [bytes_[:, :, :half], bytes_[:, :, half:]],
        "column": [bytes_[:, :half], bytes_[:, half:]],
    }[layout]
    names = list(COLOURS)
    return names[background], tuple(names[_main_colour(part, ground, palette, background)] for part in parts)


def _main_colour(part: Tensor, ground: Tensor, palette: Tensor, background: int) -> int:
    pixels = part.flatten(1).T
    pixels = pixels[(pixels - ground).norm(dim=1) > _BACKGROUND_DISTANCE]
    if not len(pixels):
        return background
    nearest = torch.cdist(pixels, palette).argmin(dim=1)
    votes = torch.bincount(nearest, minlength=len(palette))
    votes[background] = 0
    return int(votes.argmax())


def train_judge(schedule: Schedule, checkpoint: Path, device: str, seed: int) -> Judge:
    """Train the classifier on freshly drawn scenes, some of them blurred or noisy as generated images may be."""
    torch.manual_seed(seed)
    classifier = SceneClassifier().to(device)
    trainer = Trainer({"classifier": classifier}, schedule, checkpoint, seed)
    classifier.train()

    def loss_of_step(step: int, rng: random.Random) -> Tensor:
        scenes = [any_scene(rng, pair=rng.random() < 0.5) for _ in range(BATCH)]
        pixels = _roughen(to_pixels([render(scene) for scene in scenes], "cpu"), rng).to(device)
        answers = classifier(pixels)
        losses = [
            functional.cross_entropy(scores, answer.to(device), label_smoothing=0.02)
            for scores, answer in zip(answers, _truth(scenes), strict=True)
        ]
        return torch.stack(losses).sum()

    trainer.fit(loss_of_step)
    return Judge(classifier.cpu())


def _truth(scenes: Sequence[Scene]) -> tuple[Tensor, Tensor, Tensor]:
    layout = torch.tensor([LAYOUTS.index(scene.layout) for scene in scenes])
    first = torch.tensor([OBJECTS.index(scene.items[0].name) for scene in scenes])
    second = [OBJECTS.index(scene.items[1].name) if len(scene.items) > 1 else _NOTHING for scene in scenes]
    return layout, first, torch.tensor(second)


def _roughen(pixels: Tensor, rng: random.Random) -> Tensor:
    """Blur and add noise to a batch, each in a strength of its own, none at all in a third of the batches."""
    if rng.random() < 1 / 3:
        return pixels
    blurred = functional.avg_pool2d(functional.pad(pixels, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    share = torch.rand(len(pixels), 1, 1, 1)
    strength = 0.15 * torch.rand(len(pixels), 1, 1, 1)
    return pixels.lerp(blurred, share) + strength * torch.randn_like(pixels)
