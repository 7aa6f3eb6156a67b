"""The run's page says how close to the device's limit a run came, what it drew, and what cannot be true."""

import dataclasses
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import state
from runners import calibrate
from runners.paths import runs_dir
from runners.queue import RunQueue
from runners.records import Audit, Conditions, DeviceInfo, Metric, Record
from runners.rundir import RunDir, create_run, utc_now
from runners.stats import rate_metrics
from tests.test_app_views import app, texts

__all__ = ["app"]  # the fixture
EXPLORER = "app/views/explorer.py"
DEVICE = DeviceInfo(kind="cuda", name="NVIDIA H200", memory_bytes=150_000_000_000)
BERT = Conditions(
    workload="bert-pretraining",
    model="bert-base",
    weights="architecture",
    sequence_length=512,
    batch_size_per_device=32,
    devices=1,
    precision="bf16-mixed",
    timed_region="training-steps",
)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is on this machine, and nothing takes from the queue."""
    monkeypatch.setattr(state, "device", lambda: DEVICE)
    monkeypatch.setattr(RunQueue, "_start_dispatcher", lambda _self: None)


def make_run(workload: str = "bert-pretraining", *, step_s: float = 0.1, **changes: Any) -> RunDir:
    """A finished run, its seconds made up."""
    run = create_run(runs_dir(), workload, {})
    values: dict[str, Any] = {
        "conditions": BERT,
        "metrics": tuple(rate_metrics("sample", "samples/s", [step_s] * 10, 32, "training-steps")),
        **changes,
    }
    record = Record(
        run_id=run.run_id,
        workload=workload,
        status="ok",
        spec={},
        device=DEVICE,
        environment={},
        created_utc=run.request().created_utc,
        finished_utc=utc_now(),
        audit=Audit(sync_policy="after every batch"),
        **values,
    )
    run.write_record(record)
    return run


def make_calibration(bf16: float, grade: str = "A") -> None:
    metric = Metric(name="matmul_bf16_tflops", value=bf16, unit="TFLOP/s", n=20, higher_is_better=True)
    conditions = Conditions(workload="calibration")
    run = make_run("calibration", conditions=conditions, metrics=(metric,))
    record = run.record()
    calibrate.keep(runs_dir(), dataclasses.replace(record, audit=dataclasses.replace(record.audit, grade=grade)))


def opened(app: AppTest, run: RunDir) -> AppTest:
    app.query_params["run"] = run.run_id
    at = app.run().switch_page(EXPLORER)
    at.query_params["run"] = run.run_id
    at = at.run()
    assert not at.exception
    return at


def progress(at: AppTest) -> list[tuple[str, int]]:
    return [(item.proto.text, item.proto.value) for item in at.get("progress")]


def test_without_a_calibration_it_says_so_and_one_can_be_made(app: AppTest) -> None:
    run = make_run()
    at = opened(app, run)
    assert "this device has not been calibrated" in texts(at)
    assert progress(at) == []
    at.button(key=f"calibrate-{run.run_id}").click().run()
    assert not at.exception
    [waiting] = state.queue().state().waiting
    request = RunDir(runs_dir() / waiting).request()
    assert (request.workload, request.fields) == ("calibration", {"device": "cuda"})


def test_a_device_that_is_elsewhere_cannot_be_calibrated_here(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "device", lambda: DeviceInfo(kind="cpu", name="x"))
    at = opened(app, make_run())
    assert "this device is not on this machine" in texts(at)
    assert "Calibrate this device" not in [button.label for button in at.button]


def test_the_share_of_the_measured_peak(app: AppTest) -> None:
    """320 sequences a second at 0.367 TFLOP each are 118 TFLOP/s: 59 % of 200."""
    make_calibration(bf16=200.0)
    at = opened(app, make_run())
    [(text, value)] = progress(at)
    assert text == "Training steps: 59 % of this device's measured bf16 peak"
    assert value in (58, 59)
    assert "117." in texts(at)
    assert "of 200 TFLOP/s" in texts(at)
    assert "not at the time of this run" in texts(at)
    assert "Calibrate this device" not in [button.label for button in at.button]


def test_a_doubtful_calibration_is_called_so(app: AppTest) -> None:
    make_calibration(bf16=200.0, grade="D")
    assert "The calibration has grade D" in texts(opened(app, make_run()))


def test_more_than_the_calibration_reached(app: AppTest) -> None:
    make_calibration(bf16=100.0)
    at = opened(app, make_run())
    assert progress(at)[0][1] == 100, "the bar ends at its end"
    assert "More than the calibration reached" in texts(at)


def test_a_model_without_a_formula(app: AppTest) -> None:
    make_calibration(bf16=200.0)
    at = opened(app, make_run(conditions=dataclasses.replace(BERT, model="somebody/else")))
    assert "has no formula for the work of this model" in texts(at)


def test_energy_with_its_counter(app: AppTest) -> None:
    energy = {
        "joules": 650.0,
        "duration_s": 1.0,
        "counter": "nvmlDeviceGetTotalEnergyConsumption",
        "resolution_j": 0.001,
        "scope": "device",
        "method": "counted",
    }
    each = Metric(name="j_per_sample", value=650 / 320, unit="J/sample", n=1, higher_is_better=False)
    timed = rate_metrics("sample", "samples/s", [0.1] * 10, 32, "training-steps")
    at = opened(app, make_run(metrics=(*timed, each), details={"energy": energy}))
    assert [item.label for item in at.metric] == ["Training steps", "Energy per sample"]
    assert "650 J in 1 s (650 W), counted by nvmlDeviceGetTotalEnergyConsumption, in steps of 0.001 J." in texts(at)


def test_energy_that_is_not_available_has_its_reason(app: AppTest) -> None:
    reason = {"message_id": "energy-rapl-forbidden", "params": {"path": "/sys/x"}}
    at = opened(app, make_run(details={"energy": {"joules": None, "reason": reason}}))
    assert "only the administrator may read /sys/x" in texts(at)


def test_an_impossible_run_is_marked_in_the_table_and_never_compared(app: AppTest) -> None:
    run = make_run(step_s=0.001)
    at = app.run().switch_page(EXPLORER).run()
    assert list(at.dataframe[0].value["Status"]) == ["⚠ Impossible"]
    at = opened(app, run)
    shown = texts(at)
    assert "Impossible: 3.2e+04 samples per second on 1 devices" in shown
    assert "its peak is 989" in shown
    assert not any("×**" in item.label for item in at.expander), "a ratio"


def test_a_value_copied_from_another_device(app: AppTest) -> None:
    row = state.catalogue().measurement("seed-bert-g2-bs32-throughput")
    assert row.value is not None
    copied = Metric(name="samples_per_s", value=row.value, unit="samples/s", n=1, higher_is_better=True)
    run = make_run(conditions=row.conditions, metrics=(copied,))
    at = opened(app, run)
    assert "is to the last digit the value of another device, Gaudi2" in texts(at)


def test_a_calibration_s_own_page(app: AppTest) -> None:
    make_calibration(bf16=200.0)
    [run] = [RunDir(path) for path in runs_dir().iterdir() if path.name != calibrate.FOLDER]
    at = opened(app, run)
    assert "What this device does at most" in texts(at)
    assert at.table[0].value.iloc[0].tolist() == ["bf16", "200", "–"]
