"""Results of transformers' Trainer and optimum-habana's GaudiTrainer.

`all_results.json`, `train_results.json`, `eval_results.json`: one flat object; optimum-habana adds memory that it calls
GB and computes with 1024^3. `trainer_state.json`: the log, entry by entry, with steps and no times. Neither says which
device, how many, or in which precision.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data.importers.draft import MAX_SAMPLES, SAMPLES_PER_STEP, Draft, ImportRefused, finite, metric, present, whole
from data.importers.reading import Source, json_document
from runners.records import Metric, Series

GIB = 2**30
SPLITS = ("train", "eval", "predict", "test")
_RATES = ("samples_per_second", "steps_per_second", "tokens_per_second")
_QUALITY = {
    "loss": "lower", "accuracy": "higher", "f1": "higher", "exact_match": "higher", "rouge1": "higher",
    "rouge2": "higher", "rougeL": "higher", "rougeLsum": "higher", "bleu": "higher", "wer": "lower",
}  # fmt: skip
_MEMORY = {
    "memory_allocated (GB)": "memory_in_use_bytes",
    "max_memory_allocated (GB)": "peak_memory_bytes",
    "total_memory_available (GB)": "device_memory_bytes",
}
_PLAUSIBLE_SHARE = 0.05
"""How far samples/s divided by steps/s may be from a whole number: the last batch of an epoch is often smaller."""


def is_results(document: Mapping[str, Any]) -> bool:
    """Whether this is one of the flat result files."""
    return any(f"{split}_{name}" in document for split in SPLITS for name in (*_RATES, "runtime"))


def is_state(document: Mapping[str, Any]) -> bool:
    """Whether this is a `trainer_state.json`."""
    return isinstance(document.get("log_history"), list) and "global_step" in document


def read_results(source: Source) -> list[Draft]:
    """One run from a flat result file.

    Raises:
        ImportRefused: It holds no number that can be used, or numbers that cannot be true.
    """
    document = json_document(source)
    metrics = _result_metrics(document, source.name)
    if not metrics:
        raise ImportRefused("import-no-numbers", file=source.name)
    return [
        Draft(
            title="",
            conditions={"epochs": finite(document.get("epoch"))},
            device_memory_bytes=_gib(document.get("total_memory_available (GB)")),
            metrics=metrics,
            details={**_counts(document), SAMPLES_PER_STEP: samples_per_step(document, source.name)},
            warnings=_not_finite(document),
        )
    ]


def read_state(source: Source) -> list[Draft]:
    """One run from a `trainer_state.json`: what was logged, by step, and the closing summary.

    Raises:
        ImportRefused: An entry is not as the Trainer writes it, or there are none, or too many.
    """
    document = json_document(source)
    entries = document["log_history"]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ImportRefused("import-odd", file=source.name, what="log_history")
    summary: dict[str, Any] = next((entry for entry in reversed(entries) if "train_runtime" in entry), {})
    series = _logged_series([entry for entry in entries if entry is not summary], source.name)
    losses = next((item.values for item in series if item.name == "loss"), ())
    final = metric("final_loss", losses[-1], "", better="lower") if losses else None
    metrics = (*_result_metrics(summary, source.name), *present(final))
    if not series and not metrics:
        raise ImportRefused("import-no-numbers", file=source.name)
    return [
        Draft(
            title="",
            conditions={"epochs": finite(document.get("epoch")), "steps": whole(document.get("global_step"))},
            metrics=metrics,
            series=series,
            details={
                **_counts(summary),
                SAMPLES_PER_STEP: samples_per_step(summary, source.name),
                # Per process, so per device only where each process has one: kept, and not taken for the batch size.
                "train_batch_size_per_process": whole(document.get("train_batch_size")),
                "max_steps": whole(document.get("max_steps")),
            },
            warnings=_not_finite({str(index): value for index, value in enumerate(losses)}),
        )
    ]


def samples_per_step(document: Mapping[str, Any], name: str) -> int | None:
    """Samples of an optimizer step over all devices: samples/s divided by steps/s, where the file holds both.

    With gradient accumulation it is a multiple of batch size times devices, so neither follows from it.

    Raises:
        ImportRefused: They give less than one sample a step, so one of them is no such rate.
    """
    samples, steps = (finite(document.get(f"train_{rate}")) for rate in ("samples_per_second", "steps_per_second"))
    if not samples or not steps or samples < 0 or steps < 0:
        return None
    # The Trainer rounds both to three decimals, so a slow run's quotient says little.
    if steps < 0.01:
        return None
    share = samples / steps
    nearest = round(share)
    if share < 1 - _PLAUSIBLE_SHARE - 0.0005 / steps:
        raise ImportRefused("import-rates-disagree", file=name, samples=samples, steps=steps)
    return nearest if nearest and abs(share - nearest) <= _PLAUSIBLE_SHARE else None


def _result_metrics(document: Mapping[str, Any], name: str) -> tuple[Metric, ...]:
    found: list[Metric | None] = []
    for split in SPLITS:
        # Only training's rates are the quantities that workloads compare; evaluation's keep their own names.
        prefix = "" if split == "train" else f"{split}_"
        for rate in _RATES:
            noun = rate.removesuffix("_per_second")
            value = document.get(f"{split}_{rate}")
            _refuse_impossible(f"{split}_{rate}", value, name)
            found.append(metric(f"{prefix}{noun}_per_s", value, f"{noun}/s", better="higher"))
        _refuse_impossible(f"{split}_runtime", document.get(f"{split}_runtime"), name)
        found.append(metric(f"{split}_runtime_s", document.get(f"{split}_runtime"), "s", better="lower"))
        found += [
            metric(f"{split}_{quality}", document.get(f"{split}_{quality}"), "", better=better)
            for quality, better in _QUALITY.items()
        ]
    found.append(metric("perplexity", document.get("perplexity"), "", better="lower"))
    for key, own in _MEMORY.items():
        _refuse_impossible(key, document.get(key), name, most=1_000_000)
        found.append(metric(own, _gib(document.get(key)), "B", better="lower"))
    return present(*found)


def _refuse_impossible(key: str, value: object, name: str, most: float = 1e9) -> None:
    number = finite(value)
    if number is not None and not 0 <= number <= most:
        raise ImportRefused("import-implausible", file=name, what=key, value=number)


def _logged_series(entries: Sequence[Mapping[str, Any]], name: str) -> tuple[Series, ...]:
    """What was logged, each with the steps at which it was."""
    if len(entries) > MAX_SAMPLES:
        raise ImportRefused("import-too-many-samples", file=name, count=len(entries), maximum=MAX_SAMPLES)
    keys = {"loss": "", "learning_rate": "", "grad_norm": "", "eval_loss": ""}
    return tuple(item for key, unit in keys.items() for item in _one_series(entries, key, unit))


def _one_series(entries: Sequence[Mapping[str, Any]], key: str, unit: str) -> Iterator[Series]:
    points = [
        (step, float(value))
        for entry in entries
        if isinstance(value := entry.get(key), int | float)
        and not isinstance(value, bool)
        and (step := whole(entry.get("step"))) is not None
    ]
    if points:
        yield Series(name=key, unit=unit, phase="measured", values=tuple(value for _, value in points))
        yield Series(name=f"{key}_at_step", unit="step", phase="measured", values=tuple(float(at) for at, _ in points))


def _counts(document: Mapping[str, Any]) -> dict[str, int]:
    names = [f"{split}_samples" for split in SPLITS]
    return {name: count for name in names if (count := whole(document.get(name))) is not None}


def _gib(value: object) -> int | None:
    number = finite(value)
    return round(number * GIB) if number is not None and 0 <= number < 2**30 else None


def _not_finite(document: Mapping[str, Any]) -> tuple[str, ...]:
    broken = any(isinstance(value, float) and not math.isfinite(value) for value in document.values())
    return ("import-not-finite",) if broken else ()
