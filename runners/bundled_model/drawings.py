"""One function per object: a bold silhouette, few details, most of its area in the colour that the caption names.

Shapes are drawn in units of the object's radius, x to the right and y down, from -1 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runners.bundled_model.vocabulary import COLOURS, RGB

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

INK: RGB = (40, 40, 50)
PAPER: RGB = (255, 255, 255)
WOOD: RGB = (120, 80, 45)
LEAF: RGB = (80, 170, 70)
CREAM: RGB = (240, 225, 200)
POLLEN: RGB = (250, 220, 90)

Point = tuple[float, float]


@dataclass(frozen=True)
class Pen:
    """A canvas with the origin at the object's centre and its radius as the unit."""

    canvas: ImageDraw
    x: float
    y: float
    radius: float

    def _at(self, point: Point) -> Point:
        return self.x + point[0] * self.radius, self.y + point[1] * self.radius

    def polygon(self, points: Sequence[Point], colour: RGB) -> None:
        """Fill a polygon."""
        self.canvas.polygon([self._at(point) for point in points], fill=colour)

    def ellipse(self, left: float, top: float, right: float, bottom: float, colour: RGB) -> None:
        """Fill the ellipse inside a box."""
        self.canvas.ellipse([self._at((left, top)), self._at((right, bottom))], fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: RGB) -> None:
        """Fill a circle."""
        self.ellipse(x - radius, y - radius, x + radius, y + radius, colour)

    def ring(self, x: float, y: float, radius: float, width: float, colour: RGB) -> None:
        """Stroke a circle whose outer radius is given."""
        box = [self._at((x - radius, y - radius)), self._at((x + radius, y + radius))]
        self.canvas.ellipse(box, outline=colour, width=round(width * self.radius))

    def box(self, left: float, top: float, right: float, bottom: float, colour: RGB) -> None:
        """Fill a rectangle."""
        self.canvas.rectangle([self._at((left, top)), self._at((right, bottom))], fill=colour)

    def dome(self, x_radius: float, height: float, base: float, colour: RGB) -> None:
        """Fill the upper half of an ellipse that stands on the line y = base."""
        box = [self._at((-x_radius, base - height)), self._at((x_radius, base + height))]
        self.canvas.pieslice(box, 180, 360, fill=colour)


def _shade(colour: RGB, factor: float) -> RGB:
    red, green, blue = (min(255, round(channel * factor)) for channel in colour)
    return red, green, blue


def _on_circle(angle: float, radius: float) -> Point:
    return radius * math.cos(angle), radius * math.sin(angle)


def apple(pen: Pen, colour: RGB) -> None:
    """A fruit with a dimple, a stem and a leaf."""
    pen.ellipse(-0.95, -0.55, 0.3, 0.95, colour)
    pen.ellipse(-0.3, -0.55, 0.95, 0.95, colour)
    pen.box(-0.08, -0.95, 0.08, -0.3, WOOD)
    pen.ellipse(0.1, -1.0, 0.75, -0.62, LEAF)


def arrow(pen: Pen, colour: RGB) -> None:
    """A block arrow that points to the right."""
    pen.box(-1.0, -0.28, 0.15, 0.28, colour)
    pen.polygon([(0.1, -0.85), (1.0, 0.0), (0.1, 0.85)], colour)


def balloon(pen: Pen, colour: RGB) -> None:
    """An egg that tapers to a knot, on a long string."""
    pen.ellipse(-0.68, -1.0, 0.68, 0.4, colour)
    pen.polygon([(-0.45, 0.05), (0.45, 0.05), (0.0, 0.55)], colour)
    pen.polygon([(-0.2, 0.66), (0.2, 0.66), (0.0, 0.4)], colour)
    pen.box(-0.05, 0.6, 0.05, 1.0, INK)


def boat(pen: Pen, colour: RGB) -> None:
    """A hull, a mast and one sail."""
    pen.polygon([(-1.0, 0.35), (1.0, 0.35), (0.6, 0.95), (-0.6, 0.95)], colour)
    pen.box(-0.12, -1.0, 0.02, 0.4, INK)
    pen.polygon([(0.1, -0.95), (0.9, 0.2), (0.1, 0.2)], colour)


def butterfly(pen: Pen, colour: RGB) -> None:
    """Four wings around a dark body."""
    for side in (-1, 1):
        pen.polygon([(0.0, 0.05), (side * 0.95, -0.9), (side * 1.0, -0.1)], colour)
        pen.disc(side * 0.62, -0.45, 0.42, colour)
        pen.disc(side * 0.45, 0.5, 0.38, colour)
    pen.ellipse(-0.14, -0.75, 0.14, 0.85, INK)


def car(pen: Pen, colour: RGB) -> None:
    """A side view: body, cabin with a window, two wheels."""
    pen.polygon([(-0.65, -0.05), (-0.4, -0.65), (0.35, -0.65), (0.65, -0.05)], colour)
    pen.box(-1.0, -0.1, 1.0, 0.42, colour)
    pen.polygon([(-0.4, -0.12), (-0.27, -0.48), (0.25, -0.48), (0.4, -0.12)], PAPER)
    pen.disc(-0.52, 0.42, 0.27, INK)
    pen.disc(0.52, 0.42, 0.27, INK)


def cat(pen: Pen, colour: RGB) -> None:
    """A face with pointed ears and two eyes."""
    pen.polygon([(-0.88, -0.1), (-0.8, -1.0), (-0.1, -0.55)], colour)
    pen.polygon([(0.88, -0.1), (0.8, -1.0), (0.1, -0.55)], colour)
    pen.ellipse(-0.92, -0.65, 0.92, 0.95, colour)
    for side in (-1, 1):
        pen.disc(side * 0.38, 0.0, 0.22, PAPER)
        pen.disc(side * 0.38, 0.02, 0.12, INK)
    pen.polygon([(-0.15, 0.35), (0.15, 0.35), (0.0, 0.55)], INK)


def circle(pen: Pen, colour: RGB) -> None:
    """A disc."""
    pen.disc(0.0, 0.0, 0.95, colour)


def cloud(pen: Pen, colour: RGB) -> None:
    """Three puffs on a flat base."""
    pen.disc(-0.6, 0.2, 0.4, colour)
    pen.disc(-0.1, -0.15, 0.5, colour)
    pen.disc(0.55, 0.15, 0.45, colour)
    pen.box(-0.6, 0.2, 0.55, 0.6, colour)


def crown(pen: Pen, colour: RGB) -> None:
    """Three points on a band with one jewel."""
    points = [(-1.0, -0.7), (-0.5, 0.0), (0.0, -0.9), (0.5, 0.0), (1.0, -0.7), (0.85, 0.8), (-0.85, 0.8)]
    pen.polygon(points, colour)
    pen.disc(0.0, 0.42, 0.18, PAPER)


def cup(pen: Pen, colour: RGB) -> None:
    """A mug with a handle on the right and a dark opening."""
    pen.ring(0.5, 0.12, 0.5, 0.2, colour)
    pen.box(-0.8, -0.5, 0.5, 0.85, colour)
    pen.ellipse(-0.8, -0.75, 0.5, -0.28, INK if colour != COLOURS["black"] else PAPER)


def diamond(pen: Pen, colour: RGB) -> None:
    """A rhombus."""
    pen.polygon([(0.0, -1.0), (0.72, 0.0), (0.0, 1.0), (-0.72, 0.0)], colour)


def fish(pen: Pen, colour: RGB) -> None:
    """A fish that swims to the left, with a tail and an eye."""
    pen.ellipse(-1.0, -0.6, 0.6, 0.6, colour)
    pen.polygon([(0.3, 0.0), (1.0, -0.65), (1.0, 0.65)], colour)
    pen.disc(-0.55, -0.12, 0.18, PAPER)
    pen.disc(-0.55, -0.12, 0.09, INK)


def flower(pen: Pen, colour: RGB) -> None:
    """Six petals around a centre of another colour."""
    for petal in range(6):
        x, y = _on_circle(petal * math.pi / 3, 0.58)
        pen.disc(x, y, 0.4, colour)
    pen.disc(0.0, 0.0, 0.34, POLLEN if colour != COLOURS["yellow"] else WOOD)


def heart(pen: Pen, colour: RGB) -> None:
    """Two lobes over a point."""
    pen.ellipse(-1.0, -0.9, 0.05, 0.15, colour)
    pen.ellipse(-0.05, -0.9, 1.0, 0.15, colour)
    pen.polygon([(-0.94, -0.15), (0.94, -0.15), (0.0, 1.0)], colour)


def house(pen: Pen, colour: RGB) -> None:
    """Walls, a darker roof and a door."""
    pen.box(-0.75, -0.15, 0.75, 0.95, colour)
    pen.polygon([(-1.0, -0.1), (0.0, -1.0), (1.0, -0.1)], _shade(colour, 0.65))
    pen.box(-0.22, 0.3, 0.22, 0.95, INK if colour != COLOURS["black"] else PAPER)


def moon(pen: Pen, colour: RGB) -> None:
    """A crescent, open to the right."""
    steps = 24
    outer = [_on_circle(0.8 + index * (2 * math.pi - 1.6) / steps, 1.0) for index in range(steps + 1)]
    inner = []
    for index in range(steps + 1):
        x, y = _on_circle(2 * math.pi - 1.45 - index * (2 * math.pi - 2.9) / steps, 0.72)
        inner.append((x + 0.6, y))
    pen.polygon(outer + inner, colour)


def mushroom(pen: Pen, colour: RGB) -> None:
    """A spotted cap on a pale stem."""
    pen.box(-0.3, -0.05, 0.3, 0.95, CREAM)
    pen.dome(1.0, 1.0, 0.1, colour)
    pen.disc(-0.4, -0.3, 0.2, PAPER)
    pen.disc(0.35, -0.45, 0.2, PAPER)


def rocket(pen: Pen, colour: RGB) -> None:
    """A body with a nose, a window and two darker fins."""
    for side in (-1, 1):
        pen.polygon([(side * 0.3, 0.25), (side * 0.85, 0.95), (side * 0.3, 0.85)], _shade(colour, 0.65))
    pen.box(-0.38, -0.4, 0.38, 0.85, colour)
    pen.polygon([(-0.38, -0.38), (0.0, -1.0), (0.38, -0.38)], colour)
    pen.disc(0.0, -0.1, 0.2, PAPER)


def snowman(pen: Pen, colour: RGB) -> None:
    """Two balls under a dark hat."""
    pen.disc(0.0, 0.42, 0.58, colour)
    pen.disc(0.0, -0.3, 0.4, colour)
    pen.box(-0.48, -0.66, 0.48, -0.52, INK)
    pen.box(-0.28, -1.0, 0.28, -0.55, INK)
    pen.disc(0.0, 0.35, 0.1, INK)


def square(pen: Pen, colour: RGB) -> None:
    """A square."""
    pen.box(-0.85, -0.85, 0.85, 0.85, colour)


def star(pen: Pen, colour: RGB) -> None:
    """Five points."""
    corners = [_on_circle(index * math.pi / 5 - math.pi / 2, 0.42 if index % 2 else 1.0) for index in range(10)]
    pen.polygon(corners, colour)


def sun(pen: Pen, colour: RGB) -> None:
    """A disc inside eight separate rays."""
    for ray in range(8):
        angle = ray * math.pi / 4
        base = [_on_circle(angle + 0.3, 0.64), _on_circle(angle - 0.3, 0.64)]
        pen.polygon([_on_circle(angle, 1.0), *base], colour)
    pen.disc(0.0, 0.0, 0.52, colour)


def tree(pen: Pen, colour: RGB) -> None:
    """A fir: three tiers on a trunk."""
    pen.box(-0.16, 0.5, 0.16, 1.0, WOOD)
    for top, bottom, width in ((-1.0, -0.35, 0.5), (-0.65, 0.15, 0.7), (-0.2, 0.65, 0.9)):
        pen.polygon([(0.0, top), (width, bottom), (-width, bottom)], colour)


def triangle(pen: Pen, colour: RGB) -> None:
    """A triangle on its base."""
    pen.polygon([(0.0, -0.95), (1.0, 0.8), (-1.0, 0.8)], colour)


def umbrella(pen: Pen, colour: RGB) -> None:
    """A dome with three scallops over a thin hooked stick."""
    rim = [(math.cos(math.pi * step / 24), 0.95 * -math.sin(math.pi * step / 24)) for step in range(25)]
    scallops = [(-1.0 + step / 12, -0.24 * abs(math.sin(math.pi * step / 8))) for step in range(1, 24)]
    pen.polygon([(x, y + 0.05) for x, y in rim + scallops], colour)
    pen.box(-0.07, -0.1, 0.07, 0.9, INK)
    pen.box(-0.07, 0.8, 0.4, 0.95, INK)
    pen.box(0.26, 0.6, 0.4, 0.95, INK)


DRAWINGS: dict[str, Callable[[Pen, RGB], None]] = {
    draw.__name__: draw
    for draw in (
        *(apple, arrow, balloon, boat, butterfly, car, cat, circle, cloud, crown, cup, diamond, fish),
        *(flower, heart, house, moon, mushroom, rocket, snowman, square, star, sun, tree, triangle, umbrella),
    )
}
