"""A chart of any answer: which columns to draw is guessed from their types, and the reader may choose others."""

import html
import json
import math
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app import charts
from data.query import QueryResult

EXACT = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
NUMBERS = (*EXACT, "UBIGINT", "HUGEINT", "UHUGEINT")
FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")
TIMES = ("DATE", "TIMESTAMP")
MAX_GROUPS = 7
"""As many colours as can be told apart."""
MAX_BARS = 60
_SERIES = "#00000{number}"
_TRANSPARENT = "rgba(0,0,0,0)"


@dataclass(frozen=True, kw_only=True)
class Plot:
    """What a chart shows."""

    x: str
    y: str
    group: str | None
    kind: str
    """bars, lines or points."""


def suggest(result: QueryResult) -> Plot | None:
    """A chart that most likely answers; None where no column holds numbers."""
    numbers = number_columns(result)
    if not numbers:
        return None
    kinds = dict(zip(result.columns, result.types, strict=True))
    # What is measured is rarely a count, and mostly stands last.
    fractions = [name for name in numbers if _is(kinds[name], FRACTIONS)]
    x = result.columns[0] if result.columns[0] != (fractions or numbers)[-1] or len(numbers) == 1 else numbers[0]
    y = next((name for name in fractions if name != x), next((name for name in numbers if name != x), numbers[0]))
    texts = [name for name in result.columns if name not in (x, y) and kinds[name] == "VARCHAR"]
    group = next(
        (name for name in texts if 1 < len({row[result.columns.index(name)] for row in result.rows}) <= MAX_GROUPS),
        None,
    )
    continuous = _is(kinds[x], (*NUMBERS, *FRACTIONS, *TIMES))
    return Plot(x=x, y=y, group=group, kind="lines" if continuous and len(result.rows) > 1 else "bars")


def number_columns(result: QueryResult) -> list[str]:
    """Names of the columns that hold numbers."""
    pairs = zip(result.columns, result.types, strict=True)
    return list(dict.fromkeys(name for name, kind in pairs if _is(kind, (*NUMBERS, *FRACTIONS))))


def figure(result: QueryResult, plot: Plot) -> go.Figure:
    """The chart; a value that is not a number leaves a gap."""
    groups: dict[str, list[tuple[Any, float | None]]] = {}
    places = {name: result.columns.index(name) for name in (plot.x, plot.y)}
    group_at = result.columns.index(plot.group) if plot.group in result.columns else None
    for row in result.rows:
        name = "" if group_at is None else str(shown(row[group_at]) if row[group_at] is not None else "–")
        groups.setdefault(name, []).append((shown(row[places[plot.x]]), _number(row[places[plot.y]])))
    traces = [_trace(name, points, plot, index) for index, (name, points) in enumerate(groups.items())]
    layout = {
        "height": 420,
        "margin": {"l": 64, "r": 8, "t": 8, "b": 56},
        "paper_bgcolor": _TRANSPARENT,
        "plot_bgcolor": _TRANSPARENT,
        "showlegend": len(groups) > 1,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "dragmode": False,
        "font": {"size": 14},
        "xaxis": {"title": {"text": html.escape(plot.x)}, "fixedrange": True, "automargin": True},
        "yaxis": {
            "title": {"text": html.escape(plot.y)},
            "fixedrange": True,
            "automargin": True,
            "rangemode": "tozero" if plot.kind == "bars" else "normal",
        },
    }
    return charts.figure(data=traces[:MAX_GROUPS], layout=layout)


def cell(value: Any, kind: str) -> Any:
    """A value for a table: columns that a browser's numbers cannot hold (HUGEINT), and all odd kinds, are texts."""
    if value is None or kind == "BOOLEAN" or _is(kind, (*EXACT, *FRACTIONS)):
        return value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shown(value: Any) -> Any:
    """A value as a cell or an axis shows it: lists and structures as text."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _trace(name: str, points: list[tuple[Any, float | None]], plot: Plot, index: int) -> dict[str, Any]:
    taken = points[:MAX_BARS] if plot.kind == "bars" else points
    colour = _SERIES.format(number=index % MAX_GROUPS + 1)
    # Plotly reads some HTML in texts; a prompt or a name may hold any.
    across = [html.escape(x) if isinstance(x, str) else x for x, _ in taken]
    shared = {"x": across, "y": [y for _, y in taken], "name": html.escape(name[:60])}
    if plot.kind == "bars":
        return {"type": "bar", "marker": {"color": colour}, **shared}
    mode = "markers" if plot.kind == "points" else "lines+markers" if len(points) <= 200 else "lines"
    return {"type": "scatter", "mode": mode, "line": {"color": colour}, "marker": {"color": colour}, **shared}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None


def _is(kind: str, names: tuple[str, ...]) -> bool:
    return kind.split("(")[0].split(" ")[0] in names
