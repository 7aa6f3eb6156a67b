"""Calibration: measured for real on this CPU, kept for its device, and the share of it that a run reached."""

import dataclasses
import json
from pathlib import Path

import pytest

from runners import calibrate
from runners.calibrate import Calibration, calibration_of, from_json, newest, shares
from runners.execute import execute
from runners.flops import flops_per_sample
from runners.records import Audit, Conditions, DeviceInfo, Metric, Record
from runners.rundir import create_run, list_runs
from runners.workloads import calibration

A_GPU = DeviceInfo(kind="cuda", name="NVIDIA X", memory_bytes=2**35, cores=100)
LIMITS = Calibration(
    run_id="c",
    created_utc="2026-12-01T10:00:00Z",
    device="NVIDIA X",
    cores=100,
    matmul_tflops={"fp32": 10.0, "tf32": 80.0, "bf16": 160.0},
    copy_gb_per_s={"fp32": 1_500.0},
    idle_w=55.0,
    grade="A",
)
BERT = Conditions(
    workload="bert-pretraining", model="bert-base", sequence_length=512, devices=1, precision="bf16-mixed"
)


def a_record(rate: float, conditions: Conditions = BERT, **changes: object) -> Record:
    base = Record(
        run_id="r",
        workload=conditions.workload,
        status="ok",
        spec={},
        conditions=conditions,
        device=A_GPU,
        environment={},
        created_utc="2026-12-01T11:00:00Z",
        finished_utc="2026-12-01T11:00:00Z",
        metrics=(
            Metric(name="samples_per_s", value=rate, unit="samples/s", n=20, higher_is_better=True, timed_region=None),
        ),
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """A real calibration of this CPU, as short as it can be."""
    runs = tmp_path_factory.mktemp("calibration") / "runs"
    return runs, execute(create_run(runs, "calibration", {"seconds": 0.02, "device": "cpu"}))


def test_a_calibration_is_a_run_with_record_samples_and_grade(measured: tuple[Path, Record]) -> None:
    _, record = measured
    assert record.status == "ok"
    names = {metric.name for metric in record.metrics}
    assert {"matmul_fp32_tflops", "matmul_bf16_tflops", "copy_fp32_gb_per_s", "copy_bf16_gb_per_s"} <= names
    fastest = record.metric("matmul_fp32_tflops")
    assert fastest is not None
    samples = [value for item in record.series if item.name.startswith("matmul_fp32_") for value in item.values]
    assert fastest.value == max(samples)
    assert 1e-4 < fastest.value < 100, "TFLOP/s of a CPU"
    assert record.details["fastest_size"]["fp32"] in {name for name, _ in calibration.SIZES}
    assert record.audit.grade in ("A", "B", "C", "D")


def test_the_newest_is_kept_for_its_device_alone(measured: tuple[Path, Record]) -> None:
    runs, record = measured
    kept = newest(runs, record.device)
    assert kept == calibrate.from_record(record)
    assert kept is not None
    assert (kept.run_id, kept.grade) == (record.run_id, record.audit.grade)
    assert newest(runs, dataclasses.replace(record.device, name="Another CPU")) is None
    assert newest(runs, dataclasses.replace(record.device, cores=(record.device.cores or 0) + 1)) is None
    assert newest(runs, A_GPU) is None
    assert [run.run_id for run in list_runs(runs)] == [record.run_id], "its file is none of the runs"


def test_a_real_run_reaches_a_share_of_it(measured: tuple[Path, Record]) -> None:
    runs, _ = measured
    fields = {"model": "bert-tiny", "batch_size": 8, "steps": 8, "sequence_length": 64, "device": "cpu"}
    record = execute(create_run(runs, "bert-pretraining", fields))
    kept = calibration_of(record)
    assert kept is not None, "the record holds what stood when it was made"
    assert kept == newest(runs, record.device)
    [share] = shares(record, kept)
    assert share.precision == "fp32"
    assert 0.0 < share.share < 5.0, "of a tiny model on a CPU that others use too"
    assert share.limit_tflops == kept.matmul_tflops["fp32"]


def test_the_share_s_arithmetic() -> None:
    each = flops_per_sample(BERT)
    assert each is not None
    rate = 0.6 * 160e12 / each
    [share] = shares(a_record(rate), LIMITS)
    assert (share.precision, share.share) == ("bf16", pytest.approx(0.6))
    eight = dataclasses.replace(BERT, devices=8)
    [per_device] = shares(a_record(8 * rate, eight), LIMITS)
    assert per_device.share == pytest.approx(0.6)


def test_fp32_that_was_tf32_is_held_against_tf32() -> None:
    fp32 = dataclasses.replace(BERT, precision="fp32")
    strict = a_record(10.0, fp32, audit=Audit(sync_policy="x", readings={"tf32_matmul": False}))
    loose = a_record(10.0, fp32, audit=Audit(sync_policy="x", readings={"tf32_matmul": True}))
    assert [calibrate.arithmetic(item) for item in (strict, loose)] == ["fp32", "tf32"]
    convolving = a_record(
        1.0,
        Conditions(workload="text-to-image", precision="fp32"),
        audit=Audit(sync_policy="x", readings={"tf32_matmul": False, "tf32_convolution": True}),
    )
    assert calibrate.arithmetic(convolving) == "tf32", "cuDNN's convolutions use it unless told otherwise"
    on_cpu = dataclasses.replace(convolving, device=DeviceInfo(kind="cpu", name="x"))
    assert calibrate.arithmetic(on_cpu) == "fp32"


def test_no_share_without_formula_or_precision() -> None:
    assert shares(a_record(10.0, dataclasses.replace(BERT, model="somebody/else")), LIMITS) == []
    assert shares(a_record(10.0, dataclasses.replace(BERT, precision="fp16-mixed")), LIMITS) == []
    assert shares(a_record(float("nan")), LIMITS) == []


def test_imports_are_not_held_against_this_machine(measured: tuple[Path, Record]) -> None:
    runs, record = measured
    own = a_record(1.0, device=record.device)
    assert calibration_of(own, runs) is not None
    assert calibration_of(dataclasses.replace(own, origin="imported from x"), runs) is None
    assert calibration_of(own) is None, "nothing is looked up where nobody said where"


def test_a_damaged_file_is_none(measured: tuple[Path, Record], tmp_path: Path) -> None:
    _, record = measured
    path = tmp_path / calibrate.FOLDER / "cpu-0.json"
    path.parent.mkdir()
    for text in ("", "[]", "{", '{"run_id": 1}', json.dumps({**LIMITS.to_json(), "matmul_tflops": "x"})):
        path.write_text(text)
        assert newest(tmp_path, record.device) is None
    assert from_json(json.loads(json.dumps(LIMITS.to_json()))) == LIMITS


def test_tf32_is_an_arithmetic_of_nvidia_alone() -> None:
    class Gpu:
        def precisions(self) -> tuple[str, ...]:
            return ("fp16", "fp32", "bf16")

        def info(self) -> DeviceInfo:
            return A_GPU

    gpu = Gpu()
    assert calibration.arithmetics(gpu) == ("fp16", "fp32", "bf16", "tf32")  # type: ignore[arg-type]
    gpu.info = lambda: DeviceInfo(kind="rocm", name="x")  # type: ignore[method-assign]
    assert "tf32" not in calibration.arithmetics(gpu)  # type: ignore[arg-type]
