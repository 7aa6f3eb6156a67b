"""MLPerf inference: `mlperf_log_summary.txt` of LoadGen, and beside it the submission's system JSON.

The summary names neither device nor benchmark; both are in the folder's path and in `systems/*.json`, which is given
together with it. `measurements.json` adds number formats. Times are in ns.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from data.importers.draft import Draft, ImportRefused, metric, present, text, whole
from data.importers.privacy import clean
from data.importers.reading import Source, cell_number, json_document, lines
from runners.records import Metric

NS = 1e-9
MAX_LINES = 100_000
_RATES = {
    "Samples per second": ("samples_per_s", "samples/s"),
    "Completed samples per second": ("samples_per_s", "samples/s"),
    "Tokens per second": ("tokens_per_s", "tokens/s"),
    "Completed tokens per second": ("tokens_per_s", "tokens/s"),
    "Scheduled samples per second": ("scheduled_samples_per_s", "samples/s"),
    "QPS w/ loadgen overhead": ("queries_per_s", "queries/s"),
    "QPS w/o loadgen overhead": ("queries_per_s_without_loadgen", "queries/s"),
}
_LATENCY = re.compile(r"(?:(Min|Max|Mean)|([\d.]+)(?:th)?(?: percentile)?) ?(first token |per token )?latency \(ns\)")
_KEPT = ("Scenario", "Mode", "Result is", "Min duration satisfied", "Min queries satisfied", "target_qps",
         "min_duration (ms)", "samples_per_query", "qsl_rng_seed", "sample_index_rng_seed",
         "schedule_rng_seed")  # fmt: skip
_PRECISION = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "bfloat16": "bf16", "fp8": "fp8", "int8": "int8"}


def is_ours(start: str) -> bool:
    """Whether the text starts as LoadGen's summary does."""
    return "MLPerf Results Summary" in start[:400]


def is_companion(document: Mapping[str, Any]) -> bool:
    """Whether this is a system description or a `measurements.json`: not a result, but what goes with one."""
    return "accelerators_per_node" in document or {"weight_data_types", "input_data_types"} <= set(document)


def read(source: Source) -> list[Draft]:
    """One run from a summary.

    Raises:
        ImportRefused: It holds no performance numbers, ends before the test parameters, or has impossible values.
    """
    values: dict[str, str] = {}
    for number, line in lines(source):
        name, separator, value = line.partition(":")
        if separator and value.strip():
            values.setdefault(name.strip(), value.strip())
        if number > MAX_LINES:
            raise ImportRefused("import-too-many-lines", file=source.name, maximum=MAX_LINES)
    if values.get("Mode") not in (None, "PerformanceOnly", "FindPeakPerformance", "SubmissionRun"):
        raise ImportRefused("import-mlperf-accuracy", file=source.name, mode=clean(values["Mode"])[:40])
    if "performance_sample_count" not in values:
        raise ImportRefused("import-cut-short", file=source.name, missing="performance_sample_count")
    metrics = _metrics(source, values)
    if not metrics:
        raise ImportRefused("import-no-numbers", file=source.name)
    valid = values.get("Result is") == "VALID"
    return [
        Draft(
            title=f"{clean(values.get('Scenario', ''))}",
            metrics=metrics,
            details={name: clean(values[name]) for name in _KEPT if name in values},
            warnings=() if valid else ("import-mlperf-invalid",),
        )
    ]


def with_companion(draft: Draft, source: Source) -> Draft:
    """The draft with what a system description or a `measurements.json` says.

    Raises:
        ImportRefused: The description names no accelerators, or impossibly many.
    """
    document = json_document(source)
    if "accelerators_per_node" not in document:
        kinds = [part.strip().lower() for part in str(document.get("weight_data_types", "")).split(",")]
        only = _PRECISION.get(kinds[0]) if len(kinds) == 1 else None
        kept = {"weight_data_types": clean(", ".join(kinds))}
        conditions = {**draft.conditions, "precision": only} if only else draft.conditions
        return replace(draft, conditions=conditions, details={**draft.details, **kept})
    name = text(document.get("accelerator_model_name"))
    per_node, nodes = _count(document.get("accelerators_per_node")), _count(document.get("number_of_nodes"))
    if not name or not per_node or not nodes or per_node * nodes > 1_000_000:
        raise ImportRefused(
            "import-odd", file=source.name, what="accelerator_model_name, accelerators_per_node, number_of_nodes"
        )
    kept_names = (
        "submitter",
        "division",
        "status",
        "accelerator_memory_capacity",
        "system_type",
        "other_software_stack",
    )
    kept = {key: clean(value) for key in kept_names if (value := text(document.get(key)))}
    machine = {
        "os": text(document.get("operating_system")),
        "cpu": text(document.get("host_processor_model_name")),
    }
    framework = text(document.get("framework"))
    return replace(
        draft,
        device_name=clean(name),
        conditions={
            **draft.conditions,
            "devices": per_node * nodes,
            "software": clean(framework) if framework else None,
        },
        environment={key: clean(value) for key, value in machine.items() if value},
        details={**draft.details, **kept},
    )


def _metrics(source: Source, values: Mapping[str, str]) -> tuple[Metric, ...]:
    found: list[Metric | None] = []
    for key, value in values.items():
        number = cell_number(value)
        if key in _RATES:
            name, unit = _RATES[key]
            found.append(metric(name, number, unit, better="higher"))
        elif match := _LATENCY.fullmatch(key):
            statistic = match[1].lower() if match[1] else f"p{float(match[2]):g}"
            kind = {"first token ": "first_token_", "per token ": "per_token_"}.get(match[3] or "", "")
            seconds = None if number is None else number * NS
            found.append(metric(f"{kind}latency_{statistic}_s", seconds, "s", better="lower"))
        else:
            continue
        if number is None or not 0 <= number < 1e18:
            raise ImportRefused("import-implausible", file=source.name, what=key, value=value[:40])
    return present(*found)


def _count(value: object) -> int | None:
    """The descriptions have numbers, and texts that are numbers."""
    return whole(cell_number(value)) if isinstance(value, str) else whole(value)
