"""The reference catalogue: every row is usable, the article's arithmetic reproduces, a bad row is named."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from data.catalogue import REFERENCE_DIR, Catalogue, load_catalogue, read_catalogue
from data.errors import CatalogueError, UnknownMeasurement
from data.measurements import METRIC_MEANINGS
from data.messages import MESSAGES
from data.references import Reference
from data.vocabulary import converted


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def article(catalogue: Catalogue) -> list[Reference]:
    return [row for row in catalogue.references if row.tier == "article"]


def value(catalogue: Catalogue, row_id: str) -> float:
    found = catalogue.by_id[row_id].value
    assert found is not None
    return found


def test_all_37_numbers_of_the_article_are_there(catalogue: Catalogue) -> None:
    rows = article(catalogue)
    assert len(rows) == 37
    assert sum(row.metric == "throughput" for row in rows) == 8
    assert sum(row.metric == "time_per_image" for row in rows) == 3
    assert sum(row.metric == "total_training_time" for row in rows) == 3


def test_every_row_has_source_unit_and_conditions(catalogue: Catalogue) -> None:
    for row in catalogue.references:
        assert row.unit and row.metric and row.revision and row.device_as_published, row.id
        assert row.source_id in catalogue.sources, row.id
        assert catalogue.sources[row.source_id].reference, row.id
        assert row.device_id in catalogue.devices, row.id
        if row.conditions.workload != "other":
            assert row.conditions.model and row.conditions.devices, row.id
        for flag in row.flags:
            assert flag in MESSAGES, row.id


def test_what_the_article_does_not_state_is_marked(catalogue: Catalogue) -> None:
    for row in article(catalogue):
        if row.conditions.workload == "text-to-image":
            assert {"width_px", "height_px", "steps"} <= set(row.assumed_fields), row.id
        if row.conditions.workload == "bert-pretraining":
            assert "sequence_length" in row.assumed_fields, row.id
        if row.conditions.workload == "t5-finetuning":
            assert {"sequence_length", "target_length"} <= set(row.assumed_fields), row.id
    a100 = catalogue.by_id["seed-bert-a100-bs32-throughput"].conditions
    assert a100.steps is None and a100.software is None  # not published, so not filled in


def test_not_available_is_never_zero(catalogue: Catalogue) -> None:
    row = catalogue.by_id["seed-t5-g1-throughput"]
    assert row.value is None and row.canonical_value is None
    assert row.status == "not available"
    assert "flag-does-not-fit" in row.flags


def test_bert_throughput_is_the_total_over_8_devices(catalogue: Catalogue) -> None:
    # steps x global batch / time, within what rounding the time to minutes allows
    for name, steps, batch, printed in (("g1-bs32", 65_000, 256, 520.2), ("g2-bs64", 20_000, 512, 1835.8)):
        row = catalogue.by_id[f"seed-bert-{name}-throughput"]
        seconds = value(catalogue, f"seed-bert-{name}-traintime")
        conditions = row.conditions
        assert conditions.batch_size_per_device is not None and conditions.devices is not None
        assert conditions.batch_size_per_device * conditions.devices == batch
        assert row.value == printed and row.scope == "total"
        assert steps * batch / (seconds + 30) <= printed <= steps * batch / (seconds - 30)
    assert 65_000 * 256 / value(catalogue, "seed-bert-g1-bs32-traintime") == pytest.approx(520.3, abs=0.05)


def test_printed_ratios_reproduce_except_the_one_that_does_not(catalogue: Catalogue) -> None:
    exceptions = {
        "seed-bert-text-habana-claim-phase1-bs64",  # another model: no value of the article belongs to it
        "seed-text-headline",
        "seed-bert-text-g2bs64-vs-g1-time",
    }
    numerators = {
        "seed-bert-text-g2bs32-vs-g1-time": "seed-bert-g2-bs32-traintime",
        "seed-bert-text-g2bs64-vs-g2bs32-throughput": "seed-bert-g2-bs64-throughput",
        "seed-bert-text-g2bs64-vs-g1-throughput": "seed-bert-g2-bs64-throughput",
        "seed-sd-text-g2-vs-g1": "seed-sd-g2-bs8-latency",
        "seed-sd-text-g2-vs-a100": "seed-sd-g2-bs8-latency",
        "seed-t5-text-g2-vs-a100": "seed-t5-g2-bs1-throughput",
    }
    checked = 0
    for row in article(catalogue):
        if row.canonical_metric != "printed_speedup" or row.id in exceptions:
            continue
        is_image = row.conditions.workload == "text-to-image"
        own_id = numerators.get(row.id) or row.id.replace("speedup", "latency" if is_image else "throughput")
        assert row.baseline_id is not None and row.value is not None
        own, baseline = value(catalogue, own_id), value(catalogue, row.baseline_id)
        lower_is_better = own_id.endswith(("latency", "traintime"))
        ratio = baseline / own if lower_is_better else own / baseline
        # The time ratio of 3.04 comes from times rounded to minutes.
        assert ratio == pytest.approx(row.value, abs=0.0075), row.id
        checked += 1
    assert checked == 16
    ratio = value(catalogue, "seed-bert-g1-bs32-traintime") / value(catalogue, "seed-bert-g2-bs64-traintime")
    row = catalogue.by_id["seed-bert-text-g2bs64-vs-g1-time"]
    assert row.value == 5.75 and round(ratio, 2) == 5.73
    assert "flag-recomputes-otherwise" in row.flags


def test_seconds_per_image_are_reciprocal_throughput(catalogue: Catalogue) -> None:
    # 1.081 and 0.308 images/s: the Diffusers documentation of the same software, at the same batch size of 8.
    assert round(1 / 1.081, 3) == value(catalogue, "seed-sd-g2-bs8-latency") == 0.925
    assert round(1 / 0.308, 2) == value(catalogue, "seed-sd-g1-bs8-latency") == 3.25
    row = catalogue.by_id["seed-sd-g2-bs8-latency"]
    assert (row.canonical_metric, row.canonical_unit) == ("s_per_image", "s/image")
    assert METRIC_MEANINGS["s_per_image"].kind == "throughput"
    assert not METRIC_MEANINGS["s_per_image"].higher_is_better


def test_memory_of_the_three_devices(catalogue: Catalogue) -> None:
    assert {key: catalogue.devices[key].memory_gb for key in ("gaudi1", "gaudi2", "a100-80gb")} == {
        "gaudi1": 32,
        "gaudi2": 96,
        "a100-80gb": 80,
    }
    for row in catalogue.references:
        if row.canonical_metric == "device_memory_gb":
            assert row.value == catalogue.devices[row.device_id].memory_gb


def test_unknown_id_names_the_nearest(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownMeasurement, match="seed-sd-g2-bs8-latency"):
        catalogue.measurement("seed-sd-g2-bs8-latencies")


def edited(tmp_path: Path, file: str, change: Callable[[list[dict[str, str]]], None]) -> Path:
    """A copy of the catalogue with some cells changed."""
    folder = tmp_path / "reference"
    shutil.copytree(REFERENCE_DIR, folder)
    with (folder / file).open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    change(rows)
    with (folder / file).open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("value", "fast", "value “fast” is not a number"),
        ("value", "0", "above zero"),
        ("value", "nan", "above zero"),
        ("value", "", "“not available”"),
        ("unit", "", "unit is empty"),
        ("scope", "each", "scope “each” is not one of total, per-device"),
        ("device_id", "gaudi9", "device_id “gaudi9”"),
        ("source_id", "nowhere", "source_id “nowhere”"),
        ("canonical_metric", "samples", "canonical_metric “samples” is not known"),
        ("canonical_unit", "s", "canonical_unit of samples_per_s must be “samples/s”"),
        ("steps", "1.5", "steps “1.5” is not a whole number"),
        ("tf32", "maybe", "tf32 “maybe” is neither true nor false"),
        ("flags", "flag-made-up", "flags names “flag-made-up”"),
        ("assumed_fields", "tf32", "assumed_fields names tf32, which is empty"),
        ("date", "last week", "date “last week”"),
        ("workload", "sd-inference", "workload “sd-inference”"),
        ("baseline_id", "no-such-row", "baseline_id “no-such-row”"),
        ("id", "seed-bert-g2-bs32-throughput", "already in use"),
        ("model", "", "needs its model"),
        ("date", "2022-13", "date “2022-13” is not a date"),
        ("date", "2022-02-30", "date “2022-02-30” is not a date"),
        ("date", "22-12-14", "date “22-12-14” is not a date"),
        ("steps", "50.0", "steps “50.0” is not a whole number"),
        ("steps", str(2**63), "is not a whole number"),
        ("batch_size_per_device", "1e3", "is not a whole number"),
        ("batch_size_per_device", "-8", "is not a whole number"),
        ("value", "1_000", "is not a number above zero"),
        ("value", "1e999", "is not a number above zero"),
        ("precision", "bfloat16", "precision “bfloat16” is not one of fp32"),
        ("timed_region", "everything", "timed_region “everything”"),
        ("warmup_rule", "first-1-batches-dropped", "warmup_rule “first-1-batches-dropped”"),
        ("scheduler", "ddim", "scheduler “ddim”"),
        ("mode", "quick", "mode “quick”"),
        ("weights", "fake", "weights “fake”"),
        ("canonical_value", "999", "canonical_value 999 does not follow from 520.2 samples/s"),
        ("unit", "furlongs", "there is no conversion from furlongs to samples/s"),
    ],
)
def test_bad_row_is_named_with_file_line_and_reason(tmp_path: Path, column: str, cell: str, reason: str) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        rows[0][column] = cell

    catalogue, problems = read_catalogue(edited(tmp_path, "results.csv", change))
    texts = [str(problem) for problem in problems]
    assert any(text.startswith("results.csv, line ") and reason in text for text in texts), texts
    assert len(catalogue.references) >= 36  # the good rows stay
    assert len(texts) == 1  # what follows from it is not said as well
    with pytest.raises(CatalogueError):
        load_catalogue(tmp_path / "reference")


def test_a_row_cut_short_and_a_missing_file_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "reference"
    shutil.copytree(REFERENCE_DIR, folder)
    results = folder / "results.csv"
    results.write_text(results.read_text(encoding="utf-8") + "half,gaudi2\n", encoding="utf-8")
    (folder / "devices.csv").unlink()
    texts = [str(problem) for problem in read_catalogue(folder)[1]]
    assert "results.csv, line 527: it has 2 cells, the header has 45." in texts
    assert any(text.startswith("devices.csv, line 1: ") for text in texts)


@pytest.mark.parametrize("file", ["results.csv", "devices.csv", "sources.csv"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: b"", "line 1: the header"),
        (lambda raw: b"\n\n\n", "line 1: the header"),
        (lambda raw: raw.splitlines()[0] + b"\n\n", "line 1: there are no rows"),
        (lambda raw: raw.decode().encode("utf-16"), "line 1: the header has bytes"),
        (lambda raw: raw.replace(b",", b";"), "line 1: there is no column"),
        (lambda raw: b"x," + raw.replace(b"\n", b"\nx,"), "cells, the header has"),
        (lambda raw: raw.replace(b"_id", b"_key", 1), "_id"),
        (lambda raw: raw + b'"never closed', "unexpected end of data"),
    ],
)
def test_a_file_that_is_none_is_one_problem(
    tmp_path: Path, file: str, change: Callable[[bytes], bytes], reason: str
) -> None:
    path = shutil.copytree(REFERENCE_DIR, tmp_path / "reference") / file
    path.write_bytes(change(path.read_bytes()))
    texts = [str(problem) for problem in read_catalogue(path.parent)[1]]
    assert len(texts) == 1 and texts[0].startswith(file) and reason in texts[0], texts


def test_what_excel_and_editors_add_is_no_problem(tmp_path: Path) -> None:
    path = shutil.copytree(REFERENCE_DIR, tmp_path / "reference") / "results.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    catalogue, problems = read_catalogue(path.parent)
    assert problems == [] and len(catalogue.references) >= 37


def test_bytes_that_are_not_utf_8_spoil_their_own_row(tmp_path: Path, catalogue: Catalogue) -> None:
    path = shutil.copytree(REFERENCE_DIR, tmp_path / "reference") / "results.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[6] = lines[6].replace(b"Printed as", b"Gedruckt f\xfcr", 1)
    path.write_bytes(b"".join(lines))
    read, problems = read_catalogue(path.parent)
    assert [str(problem) for problem in problems] == ["results.csv, line 7: caveat has bytes that are not UTF-8."]
    assert len(read.references) == len(catalogue.references) - 1


@pytest.mark.parametrize("file", ["results.csv", "devices.csv", "sources.csv"])
def test_rows_that_name_a_bad_row_are_not_reported(tmp_path: Path, file: str) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        column = {"results.csv": "value", "devices.csv": "memory_gb", "sources.csv": "date"}[file]
        rows[0][column] = "odd"

    catalogue, problems = read_catalogue(edited(tmp_path, file, change))
    assert [(problem.file, problem.line) for problem in problems] == [(file, 2)]
    for row in catalogue.references:  # what is left can be used
        assert catalogue.measurement(row.id)


def test_a_missing_baseline_is_said_once(tmp_path: Path) -> None:
    _, [problem] = read_catalogue(edited(tmp_path, "results.csv", lambda rows: rows.pop(0) and None))
    assert "seed-bert-g1-bs32-throughput” is no row of this file (named in 5 more rows)" in str(problem)


@pytest.mark.parametrize(
    ("value", "unit", "canonical_unit", "expected"),
    [
        (3.25, "s/img", "s/image", 3.25),
        (1.081, "images/s", "s/image", 1 / 1.081),
        (0.925, "s/img", "images/s", 1 / 0.925),
        (2, "min", "s", 120),
        (8, "count", "devices", 8),
        (8, "furlongs", "s", None),
    ],
)
def test_known_conversions(value: float, unit: str, canonical_unit: str, expected: float | None) -> None:
    found = converted(value, unit, canonical_unit)
    assert (found and found[0]) == (expected and pytest.approx(expected))


@pytest.mark.parametrize(("canonical_value", "problems"), [("0.925", 0), ("0.9251", 0), ("1.081", 1), ("999", 1)])
def test_a_canonical_value_must_follow_from_the_published_one(
    tmp_path: Path, canonical_value: str, problems: int
) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        [row] = [row for row in rows if row["id"] == "seed-sd-g2-bs8-latency"]
        row.update(metric="throughput", unit="images/s", value="1.081", canonical_value=canonical_value)

    assert len(read_catalogue(edited(tmp_path, "results.csv", change))[1]) == problems


def test_a_rate_of_steps_needs_their_number(tmp_path: Path) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        [row] = [row for row in rows if row["id"] == "diffusersdocs-pt2its-a100-bs16-t20"]
        row.update(steps="", assumed_fields="width_px;height_px")

    [problem] = read_catalogue(edited(tmp_path, "results.csv", change))[1]
    assert "it/s becomes s/image only where batch_size_per_device, steps are known" in str(problem)


def test_a_bad_row_speaks_the_readers_language(tmp_path: Path) -> None:
    [problem] = read_catalogue(edited(tmp_path, "results.csv", lambda rows: rows[0].update(scope="")))[1]
    german = {
        "{column} is empty": "{column} ist leer",
        "{file}, line {line}: {reason}.": "{file}, Zeile {line}: {reason}.",
    }
    assert problem.text(lambda text: german.get(text, text)) == "results.csv, Zeile 2: scope ist leer."
    assert str(problem) == "results.csv, line 2: scope is empty."


def test_a_source_is_one_click_away(catalogue: Catalogue) -> None:
    address = catalogue.sources["diffusers-docs-habana-2023-06"].address()
    assert address == "https://github.com/huggingface/diffusers/blob/61916fefc4/docs/source/en/optimization/habana.mdx"
    row = catalogue.by_id["milabench-h100-bert-fp16-bs64"]
    inside = catalogue.sources[row.source_id].address(row.locator)
    assert inside == "https://github.com/mila-iqia/milabench/blob/faf39234e7ff/config/scaling/H100.yaml"
    logs = catalogue.by_id["mlperf-train-v5.0-bert-nvidia-nyx-n1-ngc25-04-pytorch-ttt"]
    folder = catalogue.sources[logs.source_id].address(logs.locator)
    assert folder is not None and folder.endswith("/0fdc28f01325/NVIDIA/results/nyx_n1_ngc25.04_pytorch/bert")
    without = [source.source_id for source in catalogue.sources.values() if source.address() is None]
    assert without == ["intel-gaudi2-performance"]
