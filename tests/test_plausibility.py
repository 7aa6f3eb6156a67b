"""Impossible numbers: each rule with a planted record, and FLOP formulas against torch's own counter."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from data.catalogue import read_catalogue
from data.comparability import compare
from data.importers.draft import Draft
from data.importers.plan import _record
from data.measurements import Measurement, measurements_of
from data.messages import render
from runners.execute import execute
from runners.flops import bert_training, flops_per_sample, peak_tflops, t5_training
from runners.plausibility import breaches, marked, params_of
from runners.preflight_training import BERT_CONFIGS, T5_CONFIGS
from runners.records import Conditions, DeviceInfo, Metric, Record
from runners.registry import make_spec
from runners.rundir import create_run
from runners.workloads import bert_pretraining, t5_finetuning

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
    assert peak_tflops("Some CPU", "fp32") is None
    assert peak_tflops("NVIDIA A100-SXM4-80GB", "fp16-mixed") == 312.0
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


def counted(model: Any, inputs: dict[str, Any]) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        model(**inputs).loss.backward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("length", [16, 64])
def test_bert_s_formula_is_what_torch_counts(length: int) -> None:
    import torch

    model, _ = bert_pretraining._model(make_spec("bert-pretraining", {"model": "bert-tiny"}))
    model.set_attn_implementation("eager")
    ids = torch.randint(5, 100, (1, length))
    ours = bert_training(BERT_CONFIGS["bert-tiny"], length)
    assert ours == pytest.approx(counted(model, {"input_ids": ids, "labels": ids}), rel=0.02)


@pytest.mark.parametrize(("source", "target"), [(32, 8), (64, 16)])
def test_t5_s_formula_is_what_torch_counts(source: int, target: int) -> None:
    import torch

    model, _ = t5_finetuning._model(make_spec("t5-finetuning", {"model": "t5-tiny"}))
    ids, labels = torch.randint(5, 100, (1, source)), torch.randint(5, 100, (1, target))
    ours = t5_training(T5_CONFIGS["t5-tiny"], source, target, checkpointing=False)
    assert ours == pytest.approx(counted(model, {"input_ids": ids, "labels": labels}), rel=0.02)
