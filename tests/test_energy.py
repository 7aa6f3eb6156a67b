"""Energy counters with fake drivers and a fake powercap folder, and joules per image or sample in the record."""

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runners.device import energy_counters
from runners.device.cpu import Cpu
from runners.device.energy_counters import Counter, NoCounter, counter_of
from runners.energy import SHORTEST_S, Meter, idle_watts, with_energy
from runners.execute import Outcome, execute
from runners.messages import render
from runners.plausibility import breaches
from runners.records import Audit, Conditions, DeviceInfo
from runners.rundir import create_run
from runners.stats import rate_metrics


def powercap(folder: Path, *packages: int, most_uj: int = 262_143_328_850) -> list[Path]:
    """The files that Linux shows for so many packages, with their counters in microjoules."""
    zones = []
    for number, energy_uj in enumerate(packages):
        zone = folder / f"intel-rapl:{number}"
        zone.mkdir(parents=True)
        (zone / "name").write_text(f"package-{number}\n")
        (zone / "energy_uj").write_text(f"{energy_uj}\n")
        (zone / "max_energy_range_uj").write_text(f"{most_uj}\n")
        core = folder / f"intel-rapl:{number}:0"
        core.mkdir()
        (core / "name").write_text("core\n")
        (core / "energy_uj").write_text("999999999\n")
        zones.append(zone)
    return zones


def test_rapl_is_the_packages_and_not_their_parts(tmp_path: Path) -> None:
    [zone] = powercap(tmp_path, 5_000_000)
    counter = energy_counters.rapl(tmp_path)
    assert (counter.name, counter.scope, counter.resolution_j) == ("RAPL intel-rapl:0/energy_uj", "processor", 1e-6)
    assert counter.read() == 5.0
    (zone / "energy_uj").write_text("7500000\n")
    assert counter.read() == 7.5
    assert counter.wraps_at_j == pytest.approx(262_143.32885)


def test_several_packages_are_added_and_each_may_start_anew(tmp_path: Path) -> None:
    first, second = powercap(tmp_path, 1_000_000, 9_000_000, most_uj=9_999_999)
    counter = energy_counters.rapl(tmp_path)
    assert counter.read() == 10.0
    (first / "energy_uj").write_text("2000000")
    (second / "energy_uj").write_text("500000")
    assert counter.read() == pytest.approx(2.0 + 10.0 + 0.5)


def reason(find: Callable[[], Counter]) -> NoCounter:
    with pytest.raises(NoCounter) as caught:
        find()
    assert "{" not in render(caught.value.message_id, caught.value.params)
    return caught.value


def test_why_there_is_no_rapl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(lambda: energy_counters.rapl(tmp_path)).message_id == "energy-no-rapl"
    [zone] = powercap(tmp_path, 1)
    (zone / "energy_uj").write_text("odd")
    assert reason(lambda: energy_counters.rapl(tmp_path)).message_id == "energy-failed"

    def refuse(self: Path, *_arguments: Any, **_more: Any) -> str:
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return "package-0"

    monkeypatch.setattr(Path, "read_text", refuse)
    forbidden = reason(lambda: energy_counters.rapl(tmp_path))
    assert forbidden.message_id == "energy-rapl-forbidden"
    assert "sudo chmod a+r" in render(forbidden.message_id, forbidden.params)


class NvmlError(Exception):
    pass


def fake_nvml(total_mj: int | None, power_mw: int = 300_000, count: int = 1) -> Any:
    def total(_handle: object) -> int:
        if total_mj is None:
            raise NvmlError("Not Supported")
        return total_mj

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetTotalEnergyConsumption=total,
        nvmlDeviceGetPowerUsage=lambda _handle: power_mw,
    )


@pytest.fixture
def no_torch_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_counters, "_torch_uuid", lambda _index: None)


@pytest.mark.usefixtures("no_torch_gpu")
class TestNvidia:
    def test_the_total_in_millijoules(self) -> None:
        counter = energy_counters.nvidia(0, fake_nvml(1_234_567))
        assert (counter.name, counter.read()) == ("nvmlDeviceGetTotalEnergyConsumption", 1234.567)
        assert not counter.integrated

    def test_power_where_there_is_no_total(self) -> None:
        counter = energy_counters.nvidia(0, fake_nvml(None, power_mw=250_000))
        assert (counter.name, counter.read(), counter.integrated) == ("nvmlDeviceGetPowerUsage", 250.0, True)

    def test_several_gpus_of_which_it_is_not_known_which(self) -> None:
        assert reason(lambda: energy_counters.nvidia(0, fake_nvml(1, count=4))).message_id == "energy-device-unknown"

    def test_the_gpu_is_found_by_torch_s_id(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(energy_counters, "_torch_uuid", lambda _index: "abc")
        asked: list[str] = []
        nvml = fake_nvml(1, count=4)
        nvml.nvmlDeviceGetHandleByUUID = asked.append
        energy_counters.nvidia(2, nvml)
        assert asked == ["GPU-abc"]

    def test_no_driver(self) -> None:
        def init() -> None:
            raise NvmlError("Driver Not Loaded")

        nvml = fake_nvml(1)
        nvml.nvmlInit = init
        assert "Driver Not Loaded" in str(reason(lambda: energy_counters.nvidia(0, nvml)).params["reason"])


def test_amd(monkeypatch: pytest.MonkeyPatch) -> None:
    class AmdSmiException(Exception):
        pass

    smi = SimpleNamespace(
        AmdSmiException=AmdSmiException,
        amdsmi_init=lambda: None,
        amdsmi_get_processor_handles=lambda: ["a", "b"],
        amdsmi_get_energy_count=lambda _handle: {"energy_accumulator": 2_000_000, "counter_resolution": 15.3},
    )
    counter = energy_counters.amd(1, smi)
    assert counter.read() == pytest.approx(30.6)
    assert counter.resolution_j == pytest.approx(15.3e-6)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    assert reason(lambda: energy_counters.amd(0, smi)).message_id == "energy-device-unknown"


def test_gaudi_meets_torch_by_module(monkeypatch: pytest.MonkeyPatch) -> None:
    class HLMLError(Exception):
        pass

    hlml = SimpleNamespace(
        HLMLError=HLMLError,
        hlmlInit=lambda: None,
        hlmlDeviceGetCount=lambda: 8,
        hlmlDeviceGetHandleByIndex=lambda index: index,
        hlmlDeviceGetModuleID=lambda handle: 7 - handle,
        hlmlDeviceGetTotalEnergyConsumption=lambda handle: 1_000 * handle,
    )
    assert reason(lambda: energy_counters.gaudi(0, hlml)).message_id == "energy-device-unknown"
    monkeypatch.setenv("HLS_MODULE_ID", "2")
    assert energy_counters.gaudi(0, hlml).read() == 5.0


def test_apple() -> None:
    monitor = SimpleNamespace(get_cumulative_energy=lambda: SimpleNamespace(gpu_mj=4_500))
    counter = energy_counters.apple(SimpleNamespace(AppleEnergyMonitor=lambda: monitor))
    assert (counter.name, counter.read()) == ("IOReport gpu_mj", 4.5)


def test_devices_without_a_counter_or_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(lambda: counter_of("xpu")).message_id == "energy-no-library"
    monkeypatch.setattr(energy_counters.importlib.util, "find_spec", lambda _name: None)
    missing = reason(lambda: counter_of("hpu"))
    assert missing.params["package"] == "habana-pyhlml"
    assert reason(lambda: counter_of("mps")).params["package"] == "zeus-apple-silicon"


class Fake:
    """A counter that runs with the clock."""

    def __init__(self, watts: float, *, integrated: bool = False, wraps_at_j: float | None = None) -> None:
        self.watts, self.wraps_at_j = watts, wraps_at_j
        self.begun_s = time.perf_counter()
        self.integrated = integrated

    def find(self, _kind: str, _index: int) -> Counter:
        return Counter("fake", 1e-3, "device", self.read, self.wraps_at_j, self.integrated)

    def read(self) -> float:
        if self.integrated:
            return self.watts
        total = self.watts * (time.perf_counter() - self.begun_s)
        return total if self.wraps_at_j is None else total % self.wraps_at_j


@dataclasses.dataclass
class Pacing:
    measuring: bool
    over: bool


def followed(fake: Fake, seconds: float = 0.7) -> dict[str, Any]:
    begun_s = time.perf_counter()
    meter = Meter("cuda", 0, fake.find)
    meter.prepare()
    meter.follow(Pacing(measuring=False, over=False))
    time.sleep(0.1)
    meter.follow(Pacing(measuring=True, over=False))
    time.sleep(seconds)
    meter.follow(Pacing(measuring=True, over=False))
    meter.follow(Pacing(measuring=True, over=True))
    time.sleep(0.1)
    told = meter.told()
    assert told is not None
    return {**told, "whole_s": time.perf_counter() - begun_s}


@pytest.mark.parametrize("integrated", [False, True])
def test_only_what_was_measured_counts(integrated: bool) -> None:
    told = followed(Fake(100.0, integrated=integrated))
    assert told["joules"] == pytest.approx(100 * told["duration_s"], rel=0.05)
    assert told["duration_s"] >= 0.7
    # Before and after it paused for 0.2 s in all.
    assert told["duration_s"] <= told["whole_s"] - 0.19
    assert told["method"] == ("integrated" if integrated else "counted")
    assert (told["counter"], told["resolution_j"]) == ("fake", 1e-3)


def test_a_counter_that_starts_anew_in_between() -> None:
    fake = Fake(100.0, wraps_at_j=65.0)
    fake.begun_s -= 0.5
    told = followed(fake, seconds=0.6)
    assert told["joules"] == pytest.approx(100 * told["duration_s"], rel=0.05)


def test_too_short_for_a_counter() -> None:
    told = followed(Fake(100.0), seconds=SHORTEST_S / 10)
    assert told["joules"] is None
    assert told["reason"]["message_id"] == "energy-too-short"
    assert "0.05" in render("energy-too-short", told["reason"]["params"])


def test_a_counter_that_fails_underway() -> None:
    fake = Fake(100.0)
    meter = Meter("cuda", 0, fake.find)
    meter.start()

    def broken() -> float:
        raise OSError("gone")

    meter._counter = dataclasses.replace(meter._counter, read=broken)  # type: ignore[type-var]
    told = meter.told()
    assert told is not None
    assert told["reason"]["params"] == {"counter": "fake", "reason": "gone"}


def an_outcome(devices: int = 1) -> Outcome:
    conditions = Conditions(workload="text-to-image", batch_size_per_device=4, devices=devices)
    metrics = tuple(rate_metrics("image", "images/s", [0.2] * 10, 4, "denoise+vae"))
    return Outcome(conditions=conditions, metrics=metrics, audit=Audit(sync_policy="none needed"))


def test_joules_of_an_image_are_all_joules_over_all_images() -> None:
    meter = Meter("cuda", 0, Fake(100.0).find)
    meter.start()
    time.sleep(0.6)
    made = with_energy(an_outcome(), meter, idle_w=60.0)
    metric = next(item for item in made.metrics if item.name == "j_per_image")
    energy = made.details["energy"]
    assert metric.value == pytest.approx(energy["joules"] / 40)
    assert (metric.unit, metric.interval, metric.n) == ("J/image", None, 1)
    assert energy["idle_w"] == 60.0
    device = DeviceInfo(kind="cuda", name="x")
    assert breaches(made.conditions, device, made.metrics, made.details) == []
    impossible = {"energy": {**energy, "idle_w": 1_000.0}}
    assert [item.message_id for item in breaches(made.conditions, device, (), impossible)] == ["impossible-energy"]


def test_what_was_never_followed_says_nothing_and_several_devices_say_why() -> None:
    assert "energy" not in with_energy(an_outcome(), Meter("cpu"), None).details
    told = with_energy(an_outcome(devices=8), Meter("cpu"), None).details["energy"]
    assert told["reason"]["message_id"] == "energy-several-devices"


def test_idle_power() -> None:
    assert idle_watts(Cpu(), lambda: None, Fake(40.0).find) == pytest.approx(40.0, rel=0.05)

    def none(_kind: str, _index: int) -> Counter:
        raise NoCounter("energy-no-library", device="cpu")

    assert idle_watts(Cpu(), lambda: None, none) is None


def test_a_training_run_says_its_joules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through execute, on the CPU, with a powercap folder whose counter runs while the run goes on."""
    [zone] = powercap(tmp_path / "powercap", 0)
    monkeypatch.setattr(energy_counters, "POWERCAP", tmp_path / "powercap")
    over = threading.Event()

    def runs() -> None:
        begun_s = time.perf_counter()
        while not over.wait(0.005):
            (zone / "energy_uj.new").write_text(str(int(50e6 * (time.perf_counter() - begun_s))))
            (zone / "energy_uj.new").replace(zone / "energy_uj")

    thread = threading.Thread(target=runs)
    thread.start()
    try:
        fields = {"model": "bert-tiny", "batch_size": 8, "steps": 30, "sequence_length": 64, "device": "cpu"}
        record = execute(create_run(tmp_path / "runs", "bert-pretraining", fields))
    finally:
        over.set()
        thread.join()
    assert record.status == "ok"
    energy = record.details["energy"]
    if energy["joules"] is None:  # a machine that is through with it in less than a counter needs
        assert energy["reason"]["message_id"] == "energy-too-short"
        return
    assert energy["joules"] == pytest.approx(50 * energy["duration_s"], rel=0.1)
    measured = next(phase.duration_s for phase in record.phases if phase.name == "measured")
    assert energy["duration_s"] == pytest.approx(measured, rel=0.1, abs=0.1)
    metric = record.metric("j_per_sample")
    assert metric is not None
    assert metric.value == pytest.approx(energy["joules"] / (30 * 8))
