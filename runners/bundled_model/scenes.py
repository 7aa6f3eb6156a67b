"""Scenes: what stands where and in which colour; how one is drawn; and which combinations training never sees."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runners.bundled_model.vocabulary import COLOURS, IMAGE_SIZE, OBJECTS

if TYPE_CHECKING:
    from PIL.Image import Image

RADIUS = {"small": 11, "normal": 18, "large": 26}
PAIR_RADIUS = 13
PAIR_OFFSET = 16
JITTER = 2
HELD_OUT_SHARE = 10  # per cent
PAIR_SHARE = 0.7
UNSAID_BACKGROUND_SHARE = 0.12
_SUPERSAMPLING = 4


@dataclass(frozen=True)
class Item:
    """One object of a scene; `shift` moves it a few pixels off its place."""

    name: str
    colour: str
    size: str = "normal"
    shift: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Scene:
    """One or two objects on a background.

    Attributes:
        items: One item, or two: in a row the left one first, in a column the upper one first.
        background: The colour of the background.
        layout: "single", "row" or "column".
        background_said: Whether the caption names the background; where it does not, `unsaid_background` is drawn.
    """

    items: tuple[Item, ...]
    background: str
    layout: str = "single"
    background_said: bool = True

    @property
    def held_out(self) -> bool:
        """Whether an (object, colour, background) of this scene is kept from training."""
        return any(is_held_out(item.name, item.colour, self.background) for item in self.items)


def is_held_out(name: str, colour: str, background: str) -> bool:
    """Return whether a combination is reserved for evaluation: about one in ten, the same on every machine."""
    digest = hashlib.sha256(f"{name}|{colour}|{background}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < HELD_OUT_SHARE


def unsaid_background(colours: tuple[str, ...]) -> str:
    """Return the background of a prompt that names none: white, or what still shows the objects."""
    return next(background for background in ("white", "black", "cyan") if background not in colours)


def sample_scene(rng: random.Random, pair_share: float = PAIR_SHARE) -> Scene:
    """Return a random scene for training: never a held-out combination."""
    while True:
        scene = any_scene(rng, pair=rng.random() < pair_share)
        if not scene.held_out:
            return scene


def sample_held_out_scene(rng: random.Random, pair: bool) -> Scene:
    """Return a random scene for evaluation: every (object, colour, background) in it was kept from training."""
    while True:
        scene = any_scene(rng, pair, may_omit_background=False)
        if all(is_held_out(item.name, item.colour, scene.background) for item in scene.items):
            return scene


def any_scene(rng: random.Random, pair: bool, may_omit_background: bool = True) -> Scene:
    """Return a random scene of any combination, held out or not."""
    names = rng.sample(OBJECTS, 2) if pair else [rng.choice(OBJECTS)]
    colours = tuple(rng.choice(tuple(COLOURS)) for _ in names)
    said = not may_omit_background or rng.random() >= UNSAID_BACKGROUND_SHARE
    if said:
        background = rng.choice([colour for colour in COLOURS if colour not in colours])
    else:
        background = unsaid_background(colours)
    size = "normal" if pair else rng.choice(("small", "normal", "normal", "large"))
    items = tuple(
        Item(name, colour, size, (rng.randint(-JITTER, JITTER), rng.randint(-JITTER, JITTER)))
        for name, colour in zip(names, colours, strict=True)
    )
    layout = rng.choice(("row", "column")) if pair else "single"
    return Scene(items, background, layout, said)


def places(scene: Scene) -> list[tuple[int, int, int]]:
    """Return x, y and radius of each item, in pixels."""
    middle = IMAGE_SIZE // 2
    found = []
    for position, item in enumerate(scene.items):
        along = PAIR_OFFSET if position else -PAIR_OFFSET
        x = middle + item.shift[0] + (along if scene.layout == "row" else 0)
        y = middle + item.shift[1] + (along if scene.layout == "column" else 0)
        found.append((x, y, RADIUS[item.size] if scene.layout == "single" else PAIR_RADIUS))
    return found


def render(scene: Scene) -> Image:
    """Draw a scene: an RGB image of 64 by 64 pixels, smooth at its edges."""
    from PIL import Image, ImageDraw

    from runners.bundled_model.drawings import DRAWINGS, Pen

    side = IMAGE_SIZE * _SUPERSAMPLING
    image = Image.new("RGB", (side, side), COLOURS[scene.background])
    canvas = ImageDraw.Draw(image)
    for item, (x, y, radius) in zip(scene.items, places(scene), strict=True):
        pen = Pen(canvas, x * _SUPERSAMPLING, y * _SUPERSAMPLING, radius * _SUPERSAMPLING)
        DRAWINGS[item.name](pen, COLOURS[item.colour])
    return image.reduce(_SUPERSAMPLING)
