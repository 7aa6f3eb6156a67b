"""MLPerf training: `result_N.txt`, lines of `:::MLLOG {json}` among whatever else the run printed.

Lines are not in the order of their times, and a node may log a key more than once. Only keys that are named here are
read, a line at a time. Steps in a block are `step_num`, or `epoch_count` where the evaluation's samples confirm that it
counts steps: its unit differs from benchmark to benchmark.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from data.importers.draft import MAX_SAMPLES, Draft, ImportRefused, finite, metric, present, text, utc_text, whole
from data.importers.privacy import clean
from data.importers.reading import Source, lines
from runners.records import Metric, Series
from runners.stats import rate_metrics

MARK = ":::MLLOG "
_BENCHMARKS = {"bert": ("bert-pretraining", "bert-large"), "stable_diffusion": ("other", "stable-diffusion-2")}
"""What the benchmark's rules prescribe: BERT there is BERT-large."""
_FACTS = ("submission_benchmark", "submission_org", "submission_division", "submission_status", "submission_platform",
          "global_batch_size", "max_sequence_length", "gradient_accumulation_steps", "opt_base_learning_rate",
          "opt_name", "seed", "train_samples", "eval_samples")  # fmt: skip
_POINTS = ("eval_accuracy", "loss", "run_start", "run_stop", "block_start", "block_stop")


_Point = tuple[float, Any, Mapping[str, Any]]
"""Time in ms, value, metadata."""


@dataclass
class _Log:
    facts: dict[str, Any] = field(default_factory=dict)
    points: dict[str, list[_Point]] = field(default_factory=dict)


def is_ours(start: str) -> bool:
    """Whether there are such lines near the start; LoadGen's detail log has them too, and is told apart when read."""
    return MARK in start


def read(source: Source) -> list[Draft]:
    """One run from a log.

    Raises:
        ImportRefused: A line is damaged, the run has no start or no end, or it is another log.
    """
    log = _Log()
    for number, line in lines(source):
        start = line.find(MARK)
        if start >= 0:
            _take(source, log, number, line[start + len(MARK) :])
    started, stopped = _first(log, "run_start"), _last(log, "run_stop")
    if started is None or stopped is None:
        missing = "run_start" if started is None else "run_stop"
        raise ImportRefused("import-cut-short", file=source.name, missing=missing)
    duration_s = (stopped[0] - started[0]) / 1000
    if not 0 < duration_s < 1e8:
        raise ImportRefused(
            "import-implausible", file=source.name, what="run_stop - run_start", value=f"{duration_s} s"
        )
    return [_draft(log, started[0], stopped, duration_s)]


def _take(source: Source, log: _Log, number: int, document: str) -> None:
    try:
        entry = json.loads(document)
        key, time_ms = entry["key"], entry["time_ms"]
        metadata = entry.get("metadata") or {}
        if not isinstance(key, str) or not isinstance(metadata, dict):
            raise TypeError(key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ImportRefused("import-line-damaged", file=source.name, line=number) from None
    if key == "loadgen_version":
        raise ImportRefused("import-loadgen-detail", file=source.name)
    if key in _FACTS:
        log.facts.setdefault(key, entry.get("value"))
    elif key in _POINTS:
        at = finite(time_ms)
        if at is None:
            raise ImportRefused("import-line-damaged", file=source.name, line=number)
        points = log.points.setdefault(key, [])
        points.append((at, entry.get("value"), metadata))
        if len(points) > MAX_SAMPLES:
            raise ImportRefused("import-too-many-samples", file=source.name, count=len(points), maximum=MAX_SAMPLES)


def _draft(log: _Log, started_ms: float, stopped: _Point, duration_s: float) -> Draft:
    benchmark = text(log.facts.get("submission_benchmark"))
    workload, model = _BENCHMARKS.get(benchmark or "", ("other" if benchmark else None, benchmark))
    batch = whole(log.facts.get("global_batch_size"))
    success = stopped[2].get("status") == "success"
    steps, times = _blocks(log, batch)
    series = [Series(name="block_s", unit="s", phase="measured", values=tuple(times))] if times else []
    for key in ("eval_accuracy", "loss"):
        values = [(at, finite(value)) for at, value, _ in sorted(log.points.get(key, ()), key=lambda point: point[0])]
        found = [(at, value) for at, value in values if value is not None]
        if found:
            series.append(Series(name=key, unit="", phase="measured", values=tuple(value for _, value in found)))
            after = tuple((at - started_ms) / 1000 for at, _ in found)
            series.append(Series(name=f"{key}_at_s", unit="s", phase="measured", values=after))
    accumulation = whole(log.facts.get("gradient_accumulation_steps")) or 1
    return Draft(
        title=clean(benchmark or ""),
        workload=workload,
        conditions={
            "model": clean(model) if model else None,
            "sequence_length": whole(log.facts.get("max_sequence_length")),
            "learning_rate": finite(log.facts.get("opt_base_learning_rate")),
            "optimizer": clean(name) if (name := text(log.facts.get("opt_name"))) else None,
            "timed_region": "training-steps" if times else None,
        },
        global_batch_size=batch if accumulation == 1 else None,
        started_utc=utc_text(started_ms / 1000),
        finished_utc=utc_text(stopped[0] / 1000),
        status="ok" if success else "failed",
        metrics=_metrics(log, batch, steps, times, duration_s),
        series=tuple(series),
        details={key: clean(value) if isinstance(value, str) else value for key, value in log.facts.items()},
        warnings=() if success else ("import-mlperf-unfinished",),
    )


def _blocks(log: _Log, batch: int | None) -> tuple[int, list[float]]:
    """The steps of one block and the durations of the blocks with so many, up to the end of the run."""
    confirmed = _epochs_are_steps(log, batch)
    found: list[tuple[int, float]] = []
    for start, stop in _paired_blocks(log):
        first, end = (whole(point[2].get("step_num")) for point in (start, stop))
        steps = end - first if first is not None and end is not None else None
        if steps is None and confirmed:
            steps = whole(start[2].get("epoch_count"))
        if steps and steps > 0:
            found.append((steps, (stop[0] - start[0]) / 1000))
    if not found:
        return 0, []
    usual = max({steps for steps, _ in found}, key=lambda size: sum(steps == size for steps, _ in found))
    return usual, [seconds for steps, seconds in found if steps == usual]


def _paired_blocks(log: _Log) -> Iterator[tuple[_Point, _Point]]:
    """Each stop with the last start before it; what the run went on with after its end is left out."""
    marked = [(point, key) for key in ("block_start", "block_stop") for point in log.points.get(key, ())]
    end = _last(log, "run_stop")
    start: _Point | None = None
    # At the same millisecond a stop comes before the next start.
    for point, key in sorted(marked, key=lambda item: (item[0][0], item[1] == "block_start")):
        if end is not None and point[0] > end[0]:
            return
        if key == "block_start":
            start = point
        elif start is not None and point[0] > start[0]:
            yield start, point
            start = None


def _epochs_are_steps(log: _Log, batch: int | None) -> bool:
    """Whether epoch_count counts steps: then so many steps of so many samples end at the evaluation's sample count."""
    start = min(log.points.get("block_start", ()), key=lambda point: point[0], default=None)
    evaluations = [whole(point[2].get("epoch_num")) for point in log.points.get("eval_accuracy", ())]
    count = whole(start[2].get("epoch_count")) if start else None
    return bool(batch and count and count * batch in evaluations)


def _metrics(log: _Log, batch: int | None, steps: int, times: list[float], duration_s: float) -> tuple[Metric, ...]:
    rates = rate_metrics("sample", "samples/s", times, batch * steps, "training-steps") if batch and times else []
    accuracies = sorted(log.points.get("eval_accuracy", ()), key=lambda point: point[0])
    return (
        *sorted(rates, key=lambda item: not item.higher_is_better),
        *present(
            metric("time_to_train_s", duration_s, "s", better="lower"),
            metric("eval_accuracy", accuracies[-1][1], "", better="higher") if accuracies else None,
        ),
    )


def _first(log: _Log, key: str) -> _Point | None:
    return min(log.points.get(key, ()), key=lambda point: point[0], default=None)


def _last(log: _Log, key: str) -> _Point | None:
    return max(log.points.get(key, ()), key=lambda point: point[0], default=None)
