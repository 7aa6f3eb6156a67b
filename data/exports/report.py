"""A report in one HTML file: charts, conditions and verdicts of some runs, with no script and nothing to fetch."""

import base64
import html
from collections.abc import Callable, Iterator, Mapping, Sequence

from data.comparability import compare
from data.exports import drawing
from data.exports.conditions import cell, field_name, headline, measured, metric_name, number, split
from data.exports.selection import ChosenRun
from data.measurements import Measurement, measurements_of
from data.messages import render
from runners.plausibility import params_of
from runners.records import Record
from runners.rundir import utc_now

MAX_BARS = 60
MAX_CURVES = 7
MAX_IMAGES = 24
MAX_IMAGE_BYTES = 2 * 2**20
MAX_VERDICTS = 40
PNG = b"\x89PNG\r\n\x1a\n"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --text: #1d2630; --muted: #5a6673; --line: #d5dbe1; --bar: #2a86c7; --back: #fff }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6ebf0; --muted: #a3aeb9; --line: #3a444e; --bar: #4ba0dc; --back: #14191e }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem } small, .muted { color: var(--muted) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .9rem }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
td:first-child { min-width: 14rem }
svg { width: 100%; min-width: 34rem; height: auto; margin: .5rem 0 }
svg text { fill: var(--text); font: 13px system-ui, sans-serif }
.bar { fill: var(--bar) } .value { font-weight: 600 } .axis { stroke: var(--muted); fill: none }
.interval { stroke: var(--text); stroke-width: 1.5; fill: none } .curve { fill: none; stroke-width: 2 }
figure { display: inline-block; margin: 0 1rem 1rem 0; width: 12rem; vertical-align: top } img { max-width: 100% }
figcaption { font-size: .8rem; color: var(--muted); overflow-wrap: anywhere }
@media print { body { margin: 0 } h2 { break-after: avoid } svg, tr, figure { break-inside: avoid } }
"""
Translate = Callable[[str], str]


def to_html(runs: Sequence[ChosenRun], title: str = "", about: str = "", translate: Translate = str) -> str:
    """The report.

    Args:
        runs: What it is about; the first of each group is the baseline of its verdicts.
        title: Heading; a default where it is empty.
        about: What was chosen, as a sentence, such as the filters of a view.
        translate: gettext of the reader; the default gives English.
    """
    heading = title or render("export-title", {}, translate)
    made = render("export-made", {"time": utc_now()[:16].replace("T", " "), "count": len(runs)}, translate)
    sections = "".join(_group(group, translate) for group in _groups(runs).values())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(heading)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{_text(heading)}</h1>"
        f'<p class="muted">{_text(made)}{" " + _text(about) if about else ""}</p>'
        f"{sections}{_images(runs, translate)}"
        f'<p class="muted">{_text(render("export-interval-note", {}, translate))}</p></body></html>\n'
    )


def _groups(runs: Sequence[ChosenRun]) -> Mapping[tuple[str, str], list[ChosenRun]]:
    """By workload and headline metric: only those stand in one chart."""
    groups: dict[tuple[str, str], list[ChosenRun]] = {}
    for run in runs:
        first = headline(run.record)
        groups.setdefault((run.record.workload, first.name if first else ""), []).append(run)
    return groups


def _group(runs: Sequence[ChosenRun], translate: Translate) -> str:
    record = runs[0].record
    first = headline(record)
    name = f"{record.workload}: {metric_name(first.name, translate)}" if first else record.workload
    better = ""
    if first:
        direction = "export-higher" if first.higher_is_better else "export-lower"
        better = f'<p class="muted">{_text(render(direction, {}, translate))}</p>'
    shown = [run for run in runs if headline(run.record)][:MAX_BARS]
    chart = drawing.bars(list(_bars(shown, translate)), name) if shown else ""
    rest = len(runs) - len(shown)
    more = f'<p class="muted">{_text(render("export-more", {"count": rest}, translate))}</p>' if rest and shown else ""
    return (
        f'<section><h2>{_text(name)}</h2>{better}<div class="wide">{chart}</div>{more}'
        f'<div class="wide">{_losses(runs, translate)}</div>'
        f"{_table(runs, translate)}{_verdicts(runs, translate)}</section>"
    )


def _bars(runs: Sequence[ChosenRun], translate: Translate) -> Iterator[drawing.Bar]:
    _, differing = split(runs)
    for run in runs:
        metric = headline(run.record)
        if metric is None:
            continue
        parts = [
            f"{field_name(name, translate)} {getattr(run.record.conditions, name)}"
            for name in differing[:3]
            if getattr(run.record.conditions, name) is not None
        ]
        yield drawing.Bar(
            label=", ".join([run.record.device.name, *parts]),
            value=metric.value,
            text=f"{number(metric.value)} {metric.unit}",
            interval=metric.interval,
        )


def _losses(runs: Sequence[ChosenRun], translate: Translate) -> str:
    curves = []
    for run in runs[:MAX_CURVES]:
        series = {item.name: item.values for item in run.record.series if item.phase == "measured"}
        if len(loss := series.get("loss", ())) > 1:
            steps = series.get("loss_at_step") or tuple(float(index + 1) for index in range(len(loss)))
            curves.append((f"{run.record.device.name}, {run.run.run_id[-8:]}", steps, loss))
    return drawing.lines(curves, metric_name("loss", translate), render("export-step", {}, translate)) if curves else ""


def _table(runs: Sequence[ChosenRun], translate: Translate) -> str:
    nothing = render("export-not-published", {}, translate)
    shared, differing = split(runs)
    names = [render(f"export-{key}", {}, translate) for key in ("device", "value")]
    heads = [names[0], *(field_name(name, translate) for name in differing), names[1], "n"]
    lines = ["".join(f"<th>{_text(head)}</th>" for head in heads)]
    for run in runs:
        first = headline(run.record)
        value = measured(first, run.record.status)
        cells = [run.record.device.name, *(cell(getattr(run.record.conditions, name), nothing) for name in differing)]
        warned = "".join(
            f"<br><small>{_text(render(item, params_of(run.record.audit, item), translate))}</small>"
            for item in dict.fromkeys((*run.record.audit.reasons, *run.record.audit.warnings))
        )
        graded = run.record.audit.grade
        if graded:
            warned = f"<br><small>{_text(render('export-grade', {'grade': graded}, translate))}</small>{warned}"
        note = f"<br><small>{_text(run.note)}</small>" if run.note else ""
        lines.append(
            f"<td>{_text(cells[0])}{note}{warned}</td>"
            + "".join(f"<td>{_text(item)}</td>" for item in cells[1:])
            + f'<td class="number">{_text(value)}</td><td class="number">{first.n if first else "–"}</td>'
        )
    common = "; ".join(f"{field_name(name, translate)}: {cell(value, '')}" for name, value in shared.items())
    intro = f"<p>{_text(render('export-shared', {'conditions': common}, translate))}</p>" if common else ""
    return f'{intro}<div class="wide"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _verdicts(runs: Sequence[ChosenRun], translate: Translate) -> str:
    """Each run against the first one, with the reasons."""
    first = _measurement(runs[0].record)
    if first is None or len(runs) < 2:
        return ""
    lines = []
    for run in runs[1 : MAX_VERDICTS + 1]:
        other = _measurement(run.record)
        if other is None:
            continue
        verdict = compare(other, first)
        reasons = "".join(
            f"<li>{_text(render(finding.message_id, finding.params, translate))}</li>" for finding in verdict.findings
        )
        lines.append(f"<li>{_text(render(verdict.message_id, verdict.params, translate))}<ul>{reasons}</ul></li>")
    title = render("export-against-first", {"device": runs[0].record.device.name}, translate)
    return f"<h3>{_text(title)}</h3><ul>{''.join(lines)}</ul>" if lines else ""


def _measurement(record: Record) -> Measurement | None:
    first = headline(record)
    return next((item for item in measurements_of(record) if first and item.metric == first.name), None)


def _images(runs: Sequence[ChosenRun], translate: Translate) -> str:
    """The first image of each run, inside the file."""
    figures: list[str] = []
    for run in runs:
        artifact = next((item for item in run.record.artifacts if item.kind == "image"), None)
        if artifact is None or len(figures) == MAX_IMAGES:
            continue
        path = run.run.path / artifact.path
        data = b""
        # A record may be anybody's: only a file directly in the folder of images, and no link out of it.
        if path.parent == run.run.images_dir and path.is_file() and not path.is_symlink():
            data = path.read_bytes() if path.stat().st_size <= MAX_IMAGE_BYTES else b""
        if data.startswith(PNG):
            source = base64.b64encode(data).decode()
            caption = str(run.record.spec.get("prompt") or run.record.device.name)
            figures.append(
                f'<figure><img alt="{_text(caption)}" src="data:image/png;base64,{source}">'
                f"<figcaption>{_text(caption)}</figcaption></figure>"
            )
    title = render("export-images", {}, translate)
    return f"<h2>{_text(title)}</h2>{''.join(figures)}" if figures else ""


def _text(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode())
