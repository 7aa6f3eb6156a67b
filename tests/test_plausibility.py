"""Impossible numbers: each rule with a planted record, and FLOP formulas against torch's own counter."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from data.catalogue import Catalogue, load_catalogue, read_catalogue
from data.comparability import compare
from data.exports import report
from data.exports.selection import choose
from data.exports.tables import rows
from data.importers.draft import Draft
from data.importers.plan import _record
from data.measurements import Measurement, measurements_of
from data.messages import render
from data.plausibility import breaches_among, judged
from data.record_rows import rows_of
from runners.audit import GRADES
from runners.execute import execute
from runners.flops import bert_training, flops_per_sample, t5_training
from runners.messages import MESSAGES
from runners.peaks import peaks_of
from runners.plausibility import breaches, marked, params_of
from runners.preflight_training import BERT_CONFIGS, T5_CONFIGS
from runners.records import Audit, Conditions, DeviceInfo, Metric, Record
from runners.rundir import create_run
from tests.test_flops import IMAGE as PUBLISHED_IMAGE

GAUDI2 = DeviceInfo(kind="hpu", name="Gaudi2", memory_bytes=96 * 2**30)
BERT = Conditions(
    workload="bert-pretraining",
    model="bert-base",
    sequence_length=512,
    batch_size_per_device=32,
    devices=8,
    precision="bf16-mixed",
)


def metric(name: str, value: float, unit: str = "samples/s") -> Metric:
    return Metric(name=name, value=value, unit=unit, n=10, higher_is_better=not name.startswith("s_per"))


def found(*metrics: Metric, conditions: Conditions = BERT, details: dict[str, Any] | None = None) -> list[str]:
    return [item.message_id for item in breaches(conditions, GAUDI2, metrics, details or {})]


def published() -> list[Measurement]:
    """The article's throughputs of training."""
    workloads = ("bert-pretraining", "t5-finetuning")
    rows = [item for item in read_catalogue()[0].measurements if item.metric == "samples_per_s"]
    article = [item for item in rows if item.source_id == "article-gaudi2-a100" and item.value is not None]
    return [item for item in article if item.conditions.workload in workloads]


def as_run(item: Measurement, devices: int | None) -> list[str]:
    """What the rules say when a row is read as the total of so many devices."""
    assert item.value is not None
    conditions = dataclasses.replace(item.conditions, devices=devices)
    device = DeviceInfo(kind=item.device_kind, name=item.label)
    rate = metric("samples_per_s", item.value)
    return [breach.message_id for breach in breaches(conditions, device, [rate], {})]


def test_the_article_s_numbers_are_possible_as_totals() -> None:
    assert len(published()) >= 7
    assert [as_run(item, item.conditions.devices) for item in published()] == [[]] * len(published())


def test_read_as_one_device_s_they_are_not() -> None:
    """The misreading that the reference notes warn of: about 675 TFLOP/s on one Gaudi2."""
    fastest = max((item for item in published() if item.device_id == "gaudi2"), key=lambda item: item.value or 0)
    assert as_run(fastest, devices=1) == ["impossible-flops"]
    assert fastest.value is not None
    assert fastest.value * bert_training(BERT_CONFIGS["bert-base"], 512) / 1e12 == pytest.approx(675, rel=0.01)


def test_the_formula_of_t5_3b_is_the_reference_s_estimate() -> None:
    assert t5_training(T5_CONFIGS["t5-3b"], 1024, 128, checkpointing=True) / 1e12 == pytest.approx(14.9, rel=0.01)


def test_a_device_or_model_without_a_sourced_number_is_not_judged() -> None:
    assert peaks_of("Some CPU") is None
    assert flops_per_sample(dataclasses.replace(BERT, model="somebody/else")) is None


def test_samples_must_be_steps_times_batch() -> None:
    assert found(metric("samples_per_s", 256.0), metric("steps_per_s", 1.0, "steps/s")) == []
    assert found(metric("samples_per_s", 32.0), metric("steps_per_s", 1.0, "steps/s")) == ["impossible-batch"]


def test_a_time_and_its_rate_must_be_reciprocal() -> None:
    assert found(metric("samples_per_s", 2.0), metric("s_per_sample", 0.5, "s/sample")) == []
    assert found(metric("samples_per_s", 2.0), metric("s_per_sample", 0.4, "s/sample")) == ["impossible-reciprocal"]


def test_nothing_takes_no_time() -> None:
    assert found(metric("s_per_sample", 0.0, "s/sample")) == ["impossible-not-positive"]
    assert found(metric("samples_per_s", -1.0)) == ["impossible-not-positive"]


def test_no_device_uses_more_memory_than_it_has() -> None:
    assert found(details={"peak_memory_bytes": 96 * 2**30}) == []
    assert found(details={"peak_memory_bytes": 97 * 2**30}) == ["impossible-memory"]


def imported() -> Record:
    draft = Draft(
        title="x",
        workload="bert-pretraining",
        device_name="Gaudi2",
        device_kind="hpu",
        conditions={name: value for name, value in vars(BERT).items() if name != "workload" and value is not None},
        metrics=(metric("samples_per_s", 1e5),),
    )
    return _record(draft, "run", "a file", {})


def test_an_imported_record_is_kept_and_marked_with_the_arithmetic() -> None:
    record = imported()
    assert record.audit.grade == "D"
    assert record.audit.reasons == ("impossible-flops",)
    sentence = render("impossible-flops", params_of(record.audit, "impossible-flops"))
    assert sentence.startswith("Impossible: 1e+05 samples per second on 8 devices at ")
    assert "its peak is 432" in sentence


def test_it_is_never_compared() -> None:
    record = imported()
    (own,) = measurements_of(record)
    possible = dataclasses.replace(own, value=1836.0, warnings=(), id="other")
    for verdict in (compare(own, possible), compare(possible, own)):
        assert (verdict.level, verdict.ratio) == ("not-comparable", None)
        assert "impossible-numbers" in [finding.message_id for finding in verdict.findings]
    assert compare(possible, possible).ratio == 1


def test_a_run_of_ours_is_not_marked(tmp_path: Path) -> None:
    record = execute(create_run(tmp_path / "runs", "synthetic", {"steps": 8, "step_ms": 1.0}))
    assert marked(record) is record
    assert "impossible" not in record.audit.readings


IMAGE = dataclasses.replace(PUBLISHED_IMAGE, devices=1, precision="bf16", timed_region=None)


def image_breaches(*metrics: Metric, device: DeviceInfo = GAUDI2, **details: Any) -> list[str]:
    return [item.message_id for item in breaches(IMAGE, device, metrics, details)]


def test_images_cannot_be_made_faster_than_the_device_computes() -> None:
    """A Stable Diffusion image is some 80 TFLOP: a Gaudi2 makes 5 a second at its peak, and published is 1.08."""
    published_rate = metric("images_per_s", 1.081, "images/s")
    assert image_breaches(published_rate) == []
    assert image_breaches(metric("images_per_s", 12.0, "images/s")) == ["impossible-flops"]
    assert image_breaches(metric("s_per_image", 1 / 12, "s/image")) == ["impossible-flops"]


def test_a_boost_clock_above_the_data_sheet_s_is_not_impossible() -> None:
    each = flops_per_sample(IMAGE)
    assert each is not None
    at_peak = 432e12 / each
    assert image_breaches(metric("images_per_s", 1.05 * at_peak, "images/s")) == []
    assert image_breaches(metric("images_per_s", 1.15 * at_peak, "images/s")) == ["impossible-flops"]


def test_images_are_denoising_steps_over_steps() -> None:
    rate, steps = metric("images_per_s", 1.0, "images/s"), metric("steps_per_s", 6.25, "steps/s")
    assert image_breaches(rate, steps) == []
    assert image_breaches(rate, metric("steps_per_s", 50.0, "steps/s")) == ["impossible-batch"]


def test_weights_cannot_be_read_faster_than_the_memory_gives_them() -> None:
    """T5-3B one at a time in fp32 reads 11.4 GB twice a step; a Gaudi2 gives 2,460 GB/s, an A100 2,000."""
    one = dataclasses.replace(
        BERT, workload="t5-finetuning", model="t5-3b", sequence_length=8, target_length=8, precision="fp32"
    )
    slow = dataclasses.replace(one, batch_size_per_device=1, devices=1)
    assert [b.message_id for b in breaches(slow, GAUDI2, [metric("samples_per_s", 100.0)], {})] == []
    [broken] = breaches(slow, GAUDI2, [metric("samples_per_s", 200.0)], {})
    assert broken.message_id == "impossible-bandwidth"
    assert broken.params["reached"] == pytest.approx(200 * 2 * (4 * 2_851_598_336 - 2**29) / 1e9, rel=0.01)
    assert broken.params["bandwidth"] == 2460
    small = dataclasses.replace(slow, model="t5-small", workload="t5-finetuning")
    assert [b.message_id for b in breaches(small, GAUDI2, [metric("samples_per_s", 200.0)], {})] == []


def test_energy_below_idle_and_above_the_limit() -> None:
    def energy(mean_w: float, idle_w: float | None = 90.0) -> list[str]:
        told = {"joules": mean_w * 10, "duration_s": 10.0, "idle_w": idle_w}
        return image_breaches(energy=told)

    assert energy(500) == []
    assert energy(20) == ["impossible-energy"]
    assert energy(20, idle_w=None) == []
    assert energy(2_000) == ["impossible-power"]
    imported_energy = (metric("gpu_energy_j", 2e4, "J"), metric("duration_s", 10.0, "s"))
    assert image_breaches(*imported_energy) == ["impossible-power"]


def test_numbers_that_are_none_break_nothing() -> None:
    assert image_breaches(metric("images_per_s", float("nan"), "images/s")) == []
    assert image_breaches(energy={"joules": None, "reason": "no counter"}) == []
    assert image_breaches(energy="odd") == []


def test_no_published_row_is_called_impossible() -> None:
    """The three placeholders of the Gaudi3 fixtures are known as such and forbid comparison by their own flag."""
    catalogue = load_catalogue()
    assert [item.id for item in catalogue.measurements if item.warnings] == []
    unflagged = [dataclasses.replace(item, flags=()) for item in catalogue.measurements]
    found = breaches_among(unflagged)
    copied = {item.id for item in catalogue.measurements if "flag-copied-placeholder" in item.flags}
    assert {key[0] for key in found} == copied
    assert {breach.message_id for several in found.values() for breach in several} == {"impossible-copy"}


def test_planted_rows_are_caught_in_the_catalogue() -> None:
    catalogue = load_catalogue()
    row = next(item for item in catalogue.references if item.id == "seed-bert-g2-bs32-throughput")
    planted = dataclasses.replace(row, id="planted", value=1e6, canonical_value=1e6)
    changed = Catalogue(catalogue.devices, catalogue.sources, (*catalogue.references, planted))
    item = changed.measurement("planted")
    assert item.warnings == ("impossible-flops",)
    verdict = compare(item, changed.measurement("seed-bert-a100-bs32-throughput"))
    assert (verdict.level, verdict.ratio) == ("not-comparable", None)


def a_rate(value: float, devices: int, run_id: str, **changes: Any) -> Measurement:
    conditions = dataclasses.replace(BERT, devices=devices)
    one = Measurement(
        id=run_id,
        label="Some device",
        device_id="Some device",
        device_kind="cuda",
        metric="samples_per_s",
        value=value,
        unit="samples/s",
        conditions=conditions,
    )
    return dataclasses.replace(one, **changes)


def test_scaling_above_one_hundred_percent_without_a_reason() -> None:
    one = a_rate(100.0, 1, "one")
    assert breaches_among([one, a_rate(790.0, 8, "eight")]) == {}
    assert breaches_among([one, a_rate(830.0, 8, "eight")]) == {}, "within what two runs may differ"
    found = breaches_among([one, a_rate(1_080.0, 8, "eight")])
    [(key, [breach])] = found.items()
    assert key[0] == "eight"
    assert breach.params == pytest.approx({**breach.params, "share": 1.35, "one": 100.0})
    assert judged([one, a_rate(1_080.0, 8, "eight")])[1].warnings == ("impossible-scaling",)


def test_scaling_with_a_reason_or_an_interval_that_leaves_room() -> None:
    one, eight = a_rate(100.0, 1, "one"), a_rate(1_080.0, 8, "eight")
    other_batch = dataclasses.replace(eight, conditions=dataclasses.replace(eight.conditions, batch_size_per_device=64))
    assert breaches_among([one, other_batch]) == {}
    assert breaches_among([one, dataclasses.replace(eight, device_id="Another")]) == {}
    assert breaches_among([dataclasses.replace(one, interval=(60.0, 140.0)), eight]) == {}


def test_an_imported_number_that_is_another_device_s() -> None:
    catalogue = load_catalogue()
    published_row = catalogue.measurement("seed-bert-g2-bs32-throughput")
    copied = dataclasses.replace(published_row, id="run", label="X", device_id="X", origin="measured", source_id=None)
    assert judged([copied], catalogue.measurements)[0].warnings == ("impossible-copy",)
    same_device = dataclasses.replace(copied, device_id=published_row.device_id)
    assert judged([same_device], catalogue.measurements)[0].warnings == ()
    rounded = dataclasses.replace(copied, value=1600.0)
    assert judged([rounded], catalogue.measurements)[0].warnings == ()


@pytest.mark.parametrize(
    "name", ["bandwidth", "energy", "power", "scaling", "copy", "batch", "flops", "memory", "reciprocal"]
)
def test_every_rule_has_its_sentence(name: str) -> None:
    assert MESSAGES[f"impossible-{name}"].startswith("Impossible")
    assert GRADES[f"impossible-{name}"] == "D"


def test_a_record_that_nobody_marked_is_judged_by_whoever_reads_it(tmp_path: Path) -> None:
    """Of an older version, or out of another machine's bundle: index, comparison and export say the same."""
    run = create_run(tmp_path, "bert-pretraining", {})
    unmarked = dataclasses.replace(imported(), run_id=run.run_id, audit=Audit(sync_policy="x", grade="A"))
    run.write_record(unmarked)
    [row] = rows_of(unmarked, {}, run.record_path)["runs"]
    assert (row["grade"], row["grade_reasons"]) == ("D", ["impossible-flops"])
    assert "impossible-flops" in measurements_of(unmarked)[0].warnings
    [exported] = rows(choose(tmp_path))
    assert (exported["grade"], exported["grade_reasons"]) == ("D", "impossible-flops")
    assert "its peak is 432" in report.to_html(choose(tmp_path))
    assert run.record().audit.grade == "A", "the file stays as it is"


def test_nonsense_in_a_record_is_left_to_its_reader() -> None:
    odd = dataclasses.replace(imported(), details=["odd"], audit=Audit(sync_policy="x"))  # type: ignore[arg-type]
    assert marked(odd) is odd
