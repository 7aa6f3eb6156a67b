"""Clocks and statistics, with right answers known beforehand."""

import statistics
import sys
import types
from typing import Any

import pytest

from runners.device import DETECTION_ORDER, backend, select
from runners.errors import DeviceUnavailable
from runners.measure import RegionClock
from runners.stats import rate_metrics


class AsynchronousDevice:
    """A device with a queue: work is done only when somebody waits. Time is counted, not slept."""

    kind = "fake"
    sync_policy = "fake"
    marks_wait = False

    def __init__(self, clock: list[float]) -> None:
        self.clock = clock
        self.queued_s = 0.0
        self.synchronised = 0

    def launch(self, seconds: float) -> None:
        self.queued_s += seconds

    def synchronize(self) -> None:
        self.clock[0] += self.queued_s
        self.queued_s = 0.0
        self.synchronised += 1

    def mark(self) -> float:
        return self.clock[0] + self.queued_s

    def seconds_between(self, start: float, end: float) -> float:
        return end - start


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> AsynchronousDevice:
    clock = [100.0]
    monkeypatch.setattr("runners.measure.time.perf_counter", lambda: clock[0])
    return AsynchronousDevice(clock)


def test_queued_work_is_timed_where_it_was_launched(fake: AsynchronousDevice) -> None:
    fake.launch(5.0)
    region = RegionClock(fake, stages=True)  # type: ignore[arg-type]
    region.start()
    fake.launch(2.0)
    region.mark("denoising_s")
    fake.launch(1.0)
    region.mark("vae_s")
    waits_inside = fake.synchronised - 1
    assert region.stop() == 3.0
    assert region.stage_seconds() == {"denoising_s": 2.0, "vae_s": 1.0}
    assert waits_inside == 0
    assert fake.synchronised == 2


def test_an_unsynchronised_timer_would_be_caught(fake: AsynchronousDevice) -> None:
    before_s = fake.clock[0]
    fake.launch(2.0)
    assert fake.clock[0] - before_s == 0.0, "this is what a timer without a wait reads"


def test_without_stages_nothing_is_marked(fake: AsynchronousDevice) -> None:
    region = RegionClock(fake, stages=False)  # type: ignore[arg-type]
    region.start()
    region.mark("denoising_s")
    region.stop()
    assert region.stage_seconds() == {}


class Recorder:
    """Stands for torch.cuda, torch.xpu, torch.mps or the HPU module, and keeps the order of calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        calls = self.calls

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                calls.append("event")

            def elapsed_time(self, other: Any) -> float:
                return 1500.0

        self.Event = Event

    def synchronize(self) -> None:
        self.calls.append("synchronize")


@pytest.mark.parametrize(
    ("kind", "calls", "stages"),
    [
        ("cuda", ["synchronize", "event", "event", "synchronize"], {"denoising_s": 1.5}),
        ("xpu", ["synchronize", "event", "event", "synchronize"], {"denoising_s": 1.5}),
        ("mps", ["synchronize", "synchronize"], {}),
        ("hpu", ["synchronize", "synchronize"], {}),
    ],
)
def test_every_device_waits_at_the_edges_and_only_there(
    kind: str, calls: list[str], stages: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    recorder = Recorder()
    if kind == "hpu":
        package = types.ModuleType("habana_frameworks")
        package_torch = types.ModuleType("habana_frameworks.torch")
        package_torch.hpu = recorder  # type: ignore[attr-defined]
        package.torch = package_torch  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "habana_frameworks", package)
        monkeypatch.setitem(sys.modules, "habana_frameworks.torch", package_torch)
        monkeypatch.setitem(sys.modules, "habana_frameworks.torch.hpu", recorder)
    else:
        monkeypatch.setattr(torch, kind, recorder)
    device = backend(kind)
    region = RegionClock(device, stages=not device.marks_wait)
    region.start()
    region.mark("denoising_s")
    region.stop()
    assert recorder.calls == calls
    assert region.stage_seconds() == stages


def test_the_cpu_is_always_here() -> None:
    device = select("cpu")
    info = device.info()
    assert device.unavailable_reason() is None
    assert info.cores and info.memory_bytes and device.free_memory_bytes()
    assert device.peak_memory_bytes()


def test_a_missing_device_says_why() -> None:
    with pytest.raises(DeviceUnavailable, match="habana_frameworks"):
        select("hpu")
    with pytest.raises(DeviceUnavailable, match="hpu, cuda, xpu, mps, cpu"):
        select("tpu")


def test_gaudi_is_asked_before_cuda() -> None:
    assert DETECTION_ORDER.index("hpu") < DETECTION_ORDER.index("cuda")


def test_throughput_is_work_over_time() -> None:
    seconds = [1.0, 3.0]
    per_image, rate = rate_metrics("image", "images/s", seconds, 8, "denoise+vae")
    assert per_image.value == statistics.fmean(seconds) / 8 == 0.25
    assert rate.value == 16 / sum(seconds) == 4.0
    assert (per_image.unit, rate.unit, rate.n) == ("s/image", "images/s", 2)
    assert not per_image.higher_is_better and rate.higher_is_better
    assert rate_metrics("image", "images/s", [], 8, None) == []


def test_the_article_s_seconds_per_image_are_reciprocal_throughput() -> None:
    _, rate = rate_metrics("image", "images/s", [7.4], 8, None)
    assert rate.value == pytest.approx(1.081, abs=5e-4)
