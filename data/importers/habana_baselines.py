"""optimum-habana's baselines for its own tests: tests/baselines/fixture/tests/*.json.

{"path::Class::test": {"gaudi2": {"throughput": …}}}: one run for each test and device. They are floors for tests, not
best results, and for some devices the values of another were copied: such copies are marked. `throughput` has no unit
in the file (images, samples or tokens per second, by test), so it is asked for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from data.importers.draft import MAX_RUNS, Draft, ImportRefused, finite, metric, present
from data.importers.privacy import clean
from data.importers.reading import Source, json_document
from runners.records import Metric

DEVICES = {"gaudi1": "Gaudi (1st gen)", "gaudi2": "Gaudi2", "gaudi3": "Gaudi3"}
UNSTATED_THROUGHPUT = "throughput"
_METRICS = {
    "train_samples_per_second": ("samples_per_s", "samples/s", "higher"),
    "throughput": (UNSTATED_THROUGHPUT, "", "higher"),
    "eval_samples_per_second": ("eval_samples_per_s", "samples/s", "higher"),
    "predict_samples_per_second": ("predict_samples_per_s", "samples/s", "higher"),
    "train_runtime": ("train_runtime_s", "s", "lower"),
    "perplexity": ("perplexity", "", "lower"),
    "eval_f1": ("eval_f1", "", "higher"),
    "eval_accuracy": ("eval_accuracy", "", "higher"),
    "eval_rougeLsum": ("eval_rougeLsum", "", "higher"),
    "predict_rougeLsum": ("predict_rougeLsum", "", "higher"),
    "eval_wer": ("eval_wer", "", "lower"),
}


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether every entry is a test with values by Gaudi generation."""
    return bool(document) and all(
        isinstance(value, dict) and "::" in key and value and set(value) <= set(DEVICES)
        for key, value in document.items()
    )


def read(source: Source) -> list[Draft]:
    """One run for each test and device.

    Raises:
        ImportRefused: A value is not a number, is impossible, or there are too many.
    """
    drafts = [draft for name, devices in json_document(source).items() for draft in _test(source, name, devices)]
    if not drafts:
        raise ImportRefused("import-no-numbers", file=source.name)
    if len(drafts) > MAX_RUNS:
        raise ImportRefused("import-too-many-runs", file=source.name, count=len(drafts), maximum=MAX_RUNS)
    return drafts


def _test(source: Source, name: str, devices: Mapping[str, Any]) -> Iterator[Draft]:
    values = {device: _metrics(source, name, given) for device, given in devices.items()}
    copies = Counter(values.values())
    for device, metrics in values.items():
        if metrics:
            yield Draft(
                title=f"{clean(name.split('::', 1)[1])}, {device}",
                device_name=DEVICES[device],
                device_kind="hpu",
                metrics=metrics,
                details={"test": clean(name)},
                warnings=("import-baseline-floor", *(("import-identical-devices",) if copies[metrics] > 1 else ())),
            )


def _metrics(source: Source, name: str, given: object) -> tuple[Metric, ...]:
    if not isinstance(given, dict):
        raise ImportRefused("import-odd", file=source.name, what=name[:200])
    for key, value in given.items():
        number = finite(value)
        if number is None or not 0 <= number < 1e9:
            raise ImportRefused(
                "import-implausible", file=source.name, what=f"{name} {key}"[:200], value=str(value)[:40]
            )
    return present(*(metric(own, given.get(key), unit, better=better) for key, (own, unit, better) in _METRICS.items()))
