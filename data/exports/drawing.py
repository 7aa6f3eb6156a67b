"""Charts as SVG text: they stand in a file of their own, without any script."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH_PX = 720
ROW_PX = 44
_LABEL_PX = 16
_VALUE_PX = 190
MAX_POINTS = 600
COLOURS = ("#0a75b2", "#9d6135", "#df6590", "#9f8f00", "#2a3094", "#71115f", "#3f3f2c")


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar."""

    label: str
    value: float
    text: str
    interval: tuple[float, float] | None = None


def bars(rows: Sequence[Bar], title: str) -> str:
    """Horizontal bars from zero, with the interval as a line over each."""
    longest = max([row.value for row in rows] + [row.interval[1] for row in rows if row.interval] + [0.0]) or 1.0
    room = WIDTH_PX - _VALUE_PX
    parts = []
    for index, row in enumerate(rows):
        top = index * ROW_PX
        length = max(1.0, room * max(0.0, row.value) / longest)
        parts.append(f'<text x="0" y="{top + 13}" class="label">{_text(row.label)}</text>')
        parts.append(f'<rect x="0" y="{top + _LABEL_PX + 2}" width="{length:.1f}" height="16" class="bar"/>')
        end = length
        if row.interval and all(math.isfinite(bound) for bound in row.interval):
            low, high = (room * max(0.0, bound) / longest for bound in row.interval)
            middle = top + _LABEL_PX + 10
            parts.append(
                f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 5}v10M{high:.1f} {middle - 5}v10"'
                ' class="interval"/>'
            )
            end = max(end, high)
        parts.append(f'<text x="{end + 8:.1f}" y="{top + _LABEL_PX + 15}" class="value">{_text(row.text)}</text>')
    return _svg("".join(parts), len(rows) * ROW_PX + 6, title)


def lines(curves: Sequence[tuple[str, Sequence[float], Sequence[float]]], title: str, x_title: str) -> str:
    """Curves over a common x axis; points that are not finite break the line.

    Args:
        curves: Name, x values, y values.
        title: Of the chart, for readers who hear it.
        x_title: What the x axis is.
    """
    points = [
        (x, y) for _, xs, ys in curves for x, y in zip(xs, ys, strict=False) if math.isfinite(x) and math.isfinite(y)
    ]
    if not points:
        return ""
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    y_low, y_high = min(y for _, y in points), max(y for _, y in points)
    height, left, right = 240, 70, WIDTH_PX - 10
    parts = [f'<path d="M{left} 10V{height}H{right}" class="axis"/>']

    def place(x: float, y: float) -> str:
        across = left + (right - left) * (x - x_low) / ((x_high - x_low) or 1)
        return f"{across:.1f} {height - (height - 10) * (y - y_low) / ((y_high - y_low) or 1):.1f}"

    for index, (name, xs, ys) in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        path, pen_down = [], False
        pairs = list(zip(xs, ys, strict=False))
        for x, y in pairs[:: max(1, math.ceil(len(pairs) / MAX_POINTS))]:
            finite = math.isfinite(x) and math.isfinite(y)
            if finite:
                path.append(("L" if pen_down else "M") + place(x, y))
            pen_down = finite
        parts.append(f'<path d="{"".join(path)}" stroke="{colour}" class="curve"/>')
        parts.append(f'<rect x="{left}" y="{height + 30 + 18 * index}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{left + 18}" y="{height + 41 + 18 * index}" class="label">{_text(name)}</text>')
    for value, y in ((y_high, 18), (y_low, height)):
        parts.append(f'<text x="{left - 6}" y="{y}" text-anchor="end" class="label">{value:.4g}</text>')
    parts.append(f'<text x="{left}" y="{height + 18}" class="label">{x_low:.4g}</text>')
    parts.append(
        f'<text x="{right}" y="{height + 18}" text-anchor="end" class="label">{x_high:.4g} {_text(x_title)}</text>'
    )
    return _svg("".join(parts), height + 36 + 18 * len(curves), title)


def _svg(inside: str, height_px: int, title: str) -> str:
    name = _text(title)
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH_PX} {height_px}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{name}</title>{inside}</svg>"
    )


def _text(text: str) -> str:
    shown = text if len(text) <= 90 else f"{text[:89]}…"
    return html.escape(shown.encode("utf-8", "replace").decode())
