"""A table to paste into an issue: what differs in columns, what is shared once above it."""

import re
from collections.abc import Callable, Sequence

from data.exports.conditions import cell, field_name, headline, measured, metric_name, split
from data.exports.selection import ChosenRun
from data.messages import render

MAX_CHARACTERS = 120


def to_markdown(runs: Sequence[ChosenRun], translate: Callable[[str], str] = str) -> str:
    """The runs as a Markdown table.

    Args:
        runs: What to show, in this order.
        translate: gettext of the reader; the default gives English.
    """
    nothing = render("export-not-published", {}, translate)
    shared, differing = split(runs)
    names = [
        render("export-device", {}, translate),
        *(field_name(name, translate) for name in differing),
        render("export-metric", {}, translate),
        render("export-value", {}, translate),
        "n",
    ]
    lines = [_line(names), _line(["---"] * (len(names) - 2) + ["---:", "---:"])]
    for run in runs:
        first = headline(run.record)
        lines.append(
            _line(
                [
                    run.record.device.name,
                    *(cell(getattr(run.record.conditions, name), nothing) for name in differing),
                    metric_name(first.name, translate) if first else "–",
                    measured(first, run.record.status),
                    str(first.n) if first else "–",
                ]
            )
        )
    conditions = "; ".join(f"{field_name(name, translate)}: {_safe(cell(value, ''))}" for name, value in shared.items())
    note = render("export-interval-note", {}, translate)
    return f"{conditions}\n\n" * bool(conditions) + "\n".join(lines) + f"\n\n{note}\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_safe(text) for text in cells) + " |"


def _safe(text: str) -> str:
    """A text that stays in its cell and makes nobody receive mail: no markup, no mention, no new line."""
    plain = " ".join(text.encode("utf-8", "replace").decode().split())[:MAX_CHARACTERS]
    if plain in ("---", "---:"):
        return plain
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", plain).replace("@", "@\u200b")
