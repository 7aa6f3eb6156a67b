"""Figures from plain values; no Streamlit, no translation: texts arrive finished.

Text, axes and series take the placeholders that Streamlit's Plotly theme replaces in the browser by the colours of
`.streamlit/config.toml`, so one figure is right in the light and in the dark appearance. The colours of verdicts are
fixed instead: they mean something, so they must not change with a palette.
"""

import html
import importlib
import math
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import plotly.graph_objects as go

Tone = Literal["baseline", "like-for-like", "caveats", "not-comparable"]
Look = Literal["published", "own", "projected"]

_MUTED, _TEXT, _BACKGROUND = "#000036", "#000037", "#000038"
_SERIES = "#00000{number}"
_TRANSPARENT = "rgba(0,0,0,0)"
# Each has a contrast of at least 3:1 to the light and to the dark background (tests/test_charts.py computes it). Red
# is not among them: a verdict is no alarm. Every bar says its verdict in words too, for whoever sees no colours.
TONE_COLOURS: dict[Tone, str] = {
    "baseline": "#2a86c7",
    "like-for-like": "#1f9b6e",
    "caveats": "#d9720d",
    "not-comparable": "#7d8790",
}

PATTERNS: dict[Look, str] = {"published": "", "own": "/", "projected": "."}

_ROW_PX = 74
# The room for a line of words under a bar.
_CUT_NOTE_ROWS = 18 / _ROW_PX
# An own bar may be this many times as long as the longest published one; a longer one is cut off there.
LONGEST_OWN = 1.25
_MARGIN = {"l": 0, "r": 0, "t": 6, "b": 8}
# No toolbar, no zoom: a page of bars is for reading, and on a phone a drag must scroll the page.
CONFIG = {"displayModeBar": False, "scrollZoom": False, "staticPlot": False}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One row of a bar chart: a heading over the bar, a line of conditions, the bar, its value."""

    title: str
    conditions: str
    value: float | None
    """None draws no bar: there is nothing to show a length for, which is not the same as zero."""
    value_text: str
    mark: str
    """A word or two at the right: ratio and verdict."""
    tone: Tone
    look: Look = "published"
    """The reader's own measurement is hatched, a projection dotted."""
    hover: str = ""
    interval: tuple[float, float] | None = None

    @property
    def own(self) -> bool:
        """Whether it is the reader's own."""
        return self.look != "published"


def cut_off_at(rows: Sequence[Bar]) -> float | None:
    """Where own bars end that would squash the published ones to nothing; None where none is that long."""
    published = max((row.value for row in rows if row.value is not None and not row.own), default=0.0)
    limit = published * LONGEST_OWN
    too_long = any(row.own and row.value is not None and row.value > limit for row in rows)
    return limit if limit > 0 and too_long else None


def figure(data: Sequence[Any], layout: Mapping[str, Any]) -> go.Figure:
    """A figure of these traces.

    Plotly looks into pandas wherever it is loaded. Where another reader's page is loading it at this moment, what it
    finds is half of it, and it fails; importing waits until it is whole. Where it is not loaded it stays so: pages open
    half a second sooner without.
    """
    if "pandas" in sys.modules:
        importlib.import_module("pandas")
    return go.Figure(data=data, layout=layout)


def bars(
    rows: Sequence[Bar], *, cut_note: str = "", log_scale: bool = False, line: tuple[float, str] | None = None
) -> go.Figure:
    """Horizontal bars, each with its labels above it, so that nothing is cut off on a narrow screen.

    An own bar far longer than the published ones ends at the axis' end, with a break mark through it.

    Args:
        rows: From top to bottom.
        cut_note: What stands under a bar that is cut off.
        log_scale: Whether equal ratios have equal lengths; then no bar is too long, and none is cut off.
        line: A value that is marked across all bars, and what stands at it.
    """
    limit = None if log_scale else cut_off_at(rows)
    cut = {index for index, row in enumerate(rows) if limit and row.own and row.value and row.value > limit}
    lengths = [limit if index in cut else row.value for index, row in enumerate(rows)]
    longest = max((length for length in lengths if length is not None), default=0.0) or 1.0
    positions = _positions(len(rows), cut)
    height_rows = 1 - positions[-1] if rows else 1.0
    # The note under the last bar needs room that others have anyway.
    height_rows += _CUT_NOTE_ROWS if len(rows) - 1 in cut else 0
    layout = {
        **_layout(height_px=round(_ROW_PX * height_rows) + _MARGIN["t"] + _MARGIN["b"] - 8),
        # Two fifths of the width are left to the value that stands behind the longest bar, on a phone too.
        "xaxis": {**_bar_axis(lengths, longest, log_scale=log_scale), "visible": False, "fixedrange": True},
        "yaxis": {"range": [0.72 - height_rows, 0.62], "visible": False, "fixedrange": True},
        "annotations": [label for place, row in zip(positions, rows, strict=True) for label in _labels(place, row)]
        + [_cut_label(positions[index], cut_note) for index in sorted(cut)]
        + ([_line_label(*line)] if line else []),
        "shapes": [shape for index in sorted(cut) for shape in _break_mark(positions[index], longest)]
        + ([_line_across(line[0])] if line else []),
    }
    whole = {positions[index]: row for index, row in enumerate(rows) if index not in cut}
    # In one go: each `add_annotation` checks all earlier ones again, which made the page twice as slow.
    return figure(data=[_bar_trace(rows, lengths, positions), *_intervals(whole)], layout=layout)


def samples(
    values_by_name: Mapping[str, Sequence[float]],
    *,
    x_title: str,
    y_title: str,
    firsts: Sequence[int] | None = None,
    from_zero: bool = True,
) -> go.Figure:
    """Every sample in the order in which it arose, one line per series.

    Args:
        values_by_name: The series.
        x_title: Of the axis of samples.
        y_title: Of the axis of values, with its unit.
        firsts: Where each series begins, counted from 1; all at 1 by default.
        from_zero: Whether the values' axis shows 0, as for times; of a loss one would see nothing then.
    """
    firsts = firsts or [1] * len(values_by_name)
    traces = [
        {
            "type": "scatter",
            "x": list(range(first, first + len(values))),
            "y": [value if math.isfinite(value) else None for value in values],
            "name": name,
            "mode": "lines+markers" if len(values) <= 200 else "lines",
            "line": {"color": _SERIES.format(number=index % 7 + 1), "width": 2},
        }
        for index, ((name, values), first) in enumerate(zip(values_by_name.items(), firsts, strict=True))
    ]
    layout = {
        **_layout(height_px=280),
        "margin": {"l": 56, "r": 8, "t": 8, "b": 44},
        "showlegend": len(values_by_name) > 1,
        "legend": {"orientation": "h", "y": 1.12},
        "xaxis": {"title": {"text": x_title}, "fixedrange": True, "nticks": 8},
        "yaxis": {
            "title": {"text": y_title},
            "rangemode": "tozero" if from_zero else "normal",
            "fixedrange": True,
        },
    }
    return figure(data=traces, layout=layout)


def live_line(x: Sequence[float], y: Sequence[float | None], x_title: str, y_title: str) -> go.Figure:
    """One measured quantity while a run goes on."""
    line = {"color": _SERIES.format(number=1), "width": 2}
    trace = {"type": "scatter", "x": list(x), "y": list(y), "mode": "lines", "line": line, "hoverinfo": "x+y"}
    layout = {
        **_layout(height_px=200),
        "margin": {"l": 56, "r": 8, "t": 8, "b": 40},
        "xaxis": {"title": {"text": x_title}, "fixedrange": True, "nticks": 6},
        "yaxis": {"title": {"text": y_title}, "rangemode": "tozero", "fixedrange": True},
    }
    return figure(data=[trace], layout=layout)


def history(points_by_name: Mapping[str, Sequence[tuple[str, float, str]]], *, y_title: str) -> go.Figure:
    """Values over time, one line per name.

    Args:
        points_by_name: Date (ISO 8601, as exact as it is known), value and a text for each point. Values stand at
            the first, the last and wherever one has moved by a twentieth.
        y_title: What the values are.
    """
    traces = [
        {
            "type": "scatter",
            "x": [_whole_date(date) for date, _value, _text in points],
            "y": [value for _date, value, _text in points],
            "customdata": [text for _date, _value, text in points],
            "text": _moved([value for _date, value, _text in points]),
            "textposition": "top right",
            "textfont": {"color": _TEXT},
            "cliponaxis": False,
            "name": name,
            "mode": "lines+markers+text",
            "line": {"color": _SERIES.format(number=index % 7 + 1), "width": 2, "shape": "hv"},
            "marker": {"size": 8},
            "hovertemplate": "%{y} · %{x}<br>%{customdata}<extra></extra>",
        }
        for index, (name, points) in enumerate(points_by_name.items())
    ]
    layout = {
        **_layout(height_px=320),
        "margin": {"l": 56, "r": 8, "t": 8, "b": 36},
        "showlegend": True,
        "legend": {"orientation": "h", "y": 1.15},
        "xaxis": {"type": "date", "fixedrange": True},
        "yaxis": {"title": {"text": y_title}, "rangemode": "tozero", "fixedrange": True},
    }
    return figure(data=traces, layout=layout)


def _moved(values: Sequence[float]) -> list[str]:
    texts, last = [], 0.0
    for index, value in enumerate(values):
        shown = index == len(values) - 1 or abs(value - last) > 0.05 * last
        last = value if shown else last
        texts.append(format_number(value) if shown else "")
    return texts


def _whole_date(date: str) -> str:
    """A year or month as its first day, since an axis needs a day."""
    return date + {4: "-01-01", 7: "-01"}.get(len(date), "")


def stages(seconds_by_name: Mapping[str, float], *, unit: str) -> go.Figure:
    """Where the time went: one bar per stage."""
    total = sum(seconds_by_name.values()) or 1.0
    rows = [
        Bar(
            title=name,
            conditions="",
            value=seconds,
            value_text=f"{format_number(seconds)} {unit} ({seconds / total:.0%})",
            mark="",
            tone="baseline",
        )
        for name, seconds in seconds_by_name.items()
    ]
    return bars(rows)


def format_number(value: float) -> str:
    """Four significant digits, or one decimal from a thousand on; no trailing zeros: 1,835.8, 520.2, 0.925."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 3 - math.floor(math.log10(abs(value)))) if abs(value) < 1000 else 1
    text = f"{value:,.{min(decimals, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_interval(low: float, high: float) -> str:
    """Two bounds with as many decimals as their distance has meaning for."""
    width = abs(high - low)
    decimals = max(0, 1 - math.floor(math.log10(width))) if width > 0 else 3
    return f"{low:,.{min(decimals, 6)}f} – {high:,.{min(decimals, 6)}f}"


def format_ratio(ratio: float) -> str:
    """A speed-up: 2.84×."""
    return f"{ratio:.2f}×" if ratio >= 0.1 else f"{ratio:.2g}×"


def _labels(position: float, row: Bar) -> Iterator[dict[str, object]]:
    """The texts over a bar: heading, conditions, verdict; and the word that stands where there is no bar."""
    shared = {"y": position, "showarrow": False, "yanchor": "bottom"}
    left = {**shared, "xref": "paper", "x": 0, "xanchor": "left"}
    # Pixels over the bar's middle: the conditions stand right above the bar, the heading above them.
    heading_px, conditions_px = (28, 12) if row.conditions else (12, 0)
    yield {**left, "yshift": heading_px, "text": f"<b>{html.escape(row.title)}</b>", "font": {"color": _TEXT}}
    if row.conditions:
        yield {**left, "yshift": conditions_px, "text": row.conditions, "font": {"size": 12, "color": _MUTED}}
    if row.mark:
        # The square repeats the bar's colour; the words stay in the text's, which is easier to read.
        text = f'<span style="color:{TONE_COLOURS[row.tone]}">■</span> {row.mark}'
        font = {"size": 13, "color": _TEXT}
        yield {**shared, "xref": "paper", "x": 1, "xanchor": "right", "yshift": heading_px, "text": text, "font": font}
    if row.value is None:
        yield {**left, "yanchor": "middle", "text": row.value_text, "font": {"color": _MUTED}}


@lru_cache(maxsize=256)
def kept_bars(rows: tuple[Bar, ...], cut_note: str, log_scale: bool) -> go.Figure:
    """`bars`, made once for the same rows: Plotly checks every property, which takes longer than all else on the page.

    The figure is shared and must not be changed.
    """
    return bars(rows, cut_note=cut_note, log_scale=log_scale)


def _bar_axis(lengths: Sequence[float | None], longest: float, *, log_scale: bool) -> dict[str, object]:
    if not log_scale:
        return {"range": [0, longest * 1.7]}
    # A logarithm has no zero, so bars begin at a third of the shortest; the same share as above is left for values.
    low = math.log10(min((length for length in lengths if length), default=longest)) - 0.5
    return {"type": "log", "range": [low, low + (math.log10(longest) - low) * 1.7]}


def _bar_trace(rows: Sequence[Bar], lengths: list[float | None], positions: list[float]) -> dict[str, object]:
    colours = [TONE_COLOURS[row.tone] for row in rows]
    return {
        "type": "bar",
        "x": lengths,
        "y": positions,
        "orientation": "h",
        "width": 0.3,
        "marker": {
            "color": colours,
            "pattern": {
                "shape": [PATTERNS[row.look] for row in rows],
                "size": 6,
                "solidity": 0.35,
                "fillmode": "replace",
                "fgcolor": colours,
            },
            "line": {"width": [1.5 if row.own else 0 for row in rows], "color": colours},
        },
        "text": [f"<b>{row.value_text}</b>" if row.value is not None else "" for row in rows],
        "textposition": "outside",
        "textfont": {"color": _TEXT},
        "cliponaxis": False,
        "customdata": [row.hover or html.escape(row.title) for row in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _positions(count: int, cut: Collection[int]) -> list[float]:
    """Where each bar stands, from 0 downwards in rows; under a bar that is cut off there is room for the note."""
    return [-index - _CUT_NOTE_ROWS * sum(1 for other in cut if other < index) for index in range(count)]


def _cut_label(position: float, note: str) -> dict[str, object]:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "y": position, "yanchor": "top", "yshift": -11}
    return {**place, "showarrow": False, "text": note, "font": {"size": 12, "color": _TEXT}}


def _line_across(value: float) -> dict[str, object]:
    ends = {"x0": value, "x1": value, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", "xref": "x", **ends, "line": {"color": _TEXT, "width": 2, "dash": "dot"}}


def _line_label(value: float, text: str) -> dict[str, object]:
    place = {"xref": "x", "x": value, "xanchor": "left", "xshift": 6, "yref": "paper", "y": 0, "yanchor": "bottom"}
    return {**place, "showarrow": False, "text": text, "font": {"size": 13, "color": _TEXT}}


def _break_mark(position: float, end: float) -> Iterator[dict[str, object]]:
    """Two slanted strokes with a gap between them, through a bar that goes on beyond its end."""
    shared = {"type": "line", "xref": "x", "yref": "y", "y0": position - 0.22, "y1": position + 0.22}
    for middle, width, colour in ((0.9, 8, _BACKGROUND), (0.885, 2, _TEXT), (0.915, 2, _TEXT)):
        ends = {"x0": end * (middle - 0.015), "x1": end * (middle + 0.015)}
        yield {**shared, **ends, "line": {"color": colour, "width": width}}


def _intervals(rows: Mapping[float, Bar]) -> Iterator[dict[str, object]]:
    """The intervals of the bars that have one, by position; as a trace of their own, since Plotly draws a 0 too."""
    found = [
        (position, row.value, row.interval)
        for position, row in rows.items()
        if row.value is not None and row.interval is not None
    ]
    if not found:
        return
    reach = {
        "type": "data",
        "symmetric": False,
        "array": [interval[1] - value for _position, value, interval in found],
        "arrayminus": [value - interval[0] for _position, value, interval in found],
        "thickness": 1.5,
        "width": 4,
        "color": _MUTED,
    }
    yield {
        "type": "scatter",
        "mode": "markers",
        "marker": {"opacity": 0},
        "hoverinfo": "skip",
        "x": [value for _position, value, _interval in found],
        "y": [position for position, _value, _interval in found],
        "error_x": reach,
    }


def _layout(height_px: int) -> dict[str, object]:
    return {
        "height": height_px,
        "margin": _MARGIN,
        "paper_bgcolor": _TRANSPARENT,
        "plot_bgcolor": _TRANSPARENT,
        "showlegend": False,
        "dragmode": False,
        "hoverlabel": {"align": "left"},
        "font": {"size": 14},
    }
