"""Which format a file has, by its content: names are changed by people, downloads and mail programs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from data.importers import (
    codecarbon,
    diffusers_csv,
    habana_baselines,
    mlperf_inference,
    mlperf_training,
    optimum_benchmark,
    tensorboard_events,
    trainer,
    web_ui_png,
)
from data.importers.draft import Draft, ImportRefused
from data.importers.reading import Source, encoding_of, json_document

ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
BUNDLE = "likeforlike-bundle"
COMPANION = "mlperf-system"


@dataclass(frozen=True)
class Format:
    """A format that becomes drafts."""

    origin: str
    """As in `Record.origin`: "imported from …"."""
    read: Callable[[Source], list[Draft]]


FORMATS: Mapping[str, Format] = {
    "trainer-results": Format("transformers", trainer.read_results),
    "trainer-state": Format("transformers", trainer.read_state),
    "tensorboard": Format("TensorBoard", tensorboard_events.read),
    "optimum-benchmark": Format("optimum-benchmark", optimum_benchmark.read),
    "habana-baselines": Format("optimum-habana baselines", habana_baselines.read),
    "mlperf-inference": Format("MLPerf inference", mlperf_inference.read),
    "mlperf-training": Format("MLPerf training", mlperf_training.read),
    "codecarbon": Format("codecarbon", codecarbon.read),
    "web-ui-png": Format("a web interface's PNG", web_ui_png.read),
    "diffusers-csv": Format("diffusers benchmarks", diffusers_csv.read),
}
_JSON: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("trainer-state", trainer.is_state),
    ("optimum-benchmark", optimum_benchmark.is_ours),
    ("habana-baselines", habana_baselines.is_ours),
    (COMPANION, mlperf_inference.is_companion),
    ("trainer-results", trainer.is_results),
)
_FIRST_LINES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("mlperf-inference", mlperf_inference.is_ours),
    ("mlperf-training", mlperf_training.is_ours),
    ("codecarbon", codecarbon.is_ours),
    ("diffusers-csv", diffusers_csv.is_ours),
)


def detect(source: Source) -> str:
    """The format's name: a key of `FORMATS`, `BUNDLE` or `COMPANION`.

    Raises:
        ImportRefused: The file is of no format that is read here, or cannot be read.
    """
    head = source.head()
    if not head:
        raise ImportRefused("import-empty", file=source.name)
    if head.startswith((ZIP, EMPTY_ZIP)):
        return BUNDLE
    if head.startswith(web_ui_png.SIGNATURE):
        return "web-ui-png"
    if tensorboard_events.is_ours(head):
        return "tensorboard"
    encoding = encoding_of(head)
    if encoding is None:
        raise ImportRefused("import-binary", file=source.name)
    # The end may cut a character in two.
    start = head.decode(encoding, errors="ignore").lstrip("\ufeff \t\r\n")
    if start.startswith(("{", "[")):
        return _detect_json(source)
    for name, is_ours in _FIRST_LINES:
        if is_ours(start):
            return name
    raise ImportRefused("import-unknown-format", file=source.name)


def _detect_json(source: Source) -> str:
    document = json_document(source)
    if isinstance(document, dict):
        if "schema_version" in document and "run_id" in document:
            raise ImportRefused("import-bare-record", file=source.name)
        for name, is_ours in _JSON:
            if is_ours(document):
                return name
    raise ImportRefused("import-unknown-json", file=source.name)
