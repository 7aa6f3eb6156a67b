"""Energy counters, one function per kind of device: each gives a counter, or says why there is none.

NVIDIA through nvidia-ml-py, AMD through amdsmi (which ROCm brings, and which must fit its version), Gaudi through
habana-pyhlml, Apple through zeus-apple-silicon, processors through Linux's powercap files (RAPL). Zeus covers all of
these but Gaudi, and brings pandas, scikit-learn, amdsmi and more for it; what is used of it here is one call each.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True)
class Counter:
    """A running total of joules."""

    name: str
    """The counter's own name, such as nvmlDeviceGetTotalEnergyConsumption."""
    resolution_j: float
    """The least step of what it tells."""
    scope: str
    """What it counts: device (its board, whoever uses it), processor (all packages, whoever uses them)."""
    read: Callable[[], float]
    """The total in joules."""
    wraps_at_j: float | None = None
    """Where it starts anew; None where that takes longer than any run."""
    integrated: bool = False
    """Whether `read` gives watts, to be added up by whoever reads."""


class NoCounter(Exception):
    """There is none; `message_id` and `params` say why, as a message of `runners.messages`."""

    def __init__(self, message_id: str, **params: object) -> None:
        super().__init__(message_id)
        self.message_id = message_id
        self.params = params


def counter_of(kind: str, index: int = 0) -> Counter:
    """The energy counter of a device.

    Args:
        kind: As in `DeviceInfo`: cuda and rocm are told apart.
        index: As torch counts.

    Raises:
        NoCounter: There is none, and why.
    """
    finders = {"cpu": rapl, "cuda": nvidia, "rocm": amd, "hpu": gaudi, "mps": apple}
    if kind not in finders:
        raise NoCounter("energy-no-library", device=kind)
    found: Counter = finders[kind](index) if kind in ("cuda", "rocm", "hpu") else finders[kind]()  # type: ignore[operator]
    return found


def rapl(folder: Path | None = None) -> Counter:
    """The processor's packages together; their memory and everything else of the machine is not in it."""
    folder = folder or POWERCAP
    packages = []
    for zone in sorted(folder.glob("intel-rapl:*")):
        try:
            if (zone / "name").read_text(encoding="ascii").startswith("package"):
                packages.append(zone)
        except (OSError, ValueError):
            continue
    if not packages:
        raise NoCounter("energy-no-rapl", path=str(folder))
    files = [zone / "energy_uj" for zone in packages]
    try:
        for file in files:
            int(file.read_text(encoding="ascii"))
        wraps_at_j = min(int((zone / "max_energy_range_uj").read_text(encoding="ascii")) for zone in packages) / 1e6
    except PermissionError:
        raise NoCounter("energy-rapl-forbidden", path=str(files[0])) from None
    except (OSError, ValueError) as error:
        raise NoCounter("energy-failed", counter="RAPL", reason=str(error)) from error
    name = f"RAPL {packages[0].name}/energy_uj" + (f" and {len(packages) - 1} more" if len(packages) > 1 else "")
    if len(packages) > 1:
        return Counter(name, 1e-6, "processor", _Unwrapped(files, packages).total_j)
    return Counter(name, 1e-6, "processor", lambda: int(files[0].read_text(encoding="ascii")) / 1e6, wraps_at_j)


class _Unwrapped:
    """Several counters that start anew one by one: their sum without the jumps."""

    def __init__(self, files: list[Path], zones: list[Path]) -> None:
        self._files = files
        self._ranges = [int((zone / "max_energy_range_uj").read_text(encoding="ascii")) for zone in zones]
        self._last = self._read()
        self._passed = [0] * len(files)

    def _read(self) -> list[int]:
        return [int(file.read_text(encoding="ascii")) for file in self._files]

    def total_j(self) -> float:
        """Joules; to be asked more often than a counter starts anew, which takes minutes."""
        now = self._read()
        for place, (value, before) in enumerate(zip(now, self._last, strict=True)):
            if value < before:
                self._passed[place] += self._ranges[place] + 1
        self._last = now
        return (sum(now) + sum(self._passed)) / 1e6


def nvidia(index: int, library: Any = None) -> Counter:
    """NVML's total since the driver was loaded; where a GPU has none, its power, which is then added up."""
    nvml = library or _module("pynvml", "cuda", "nvidia-ml-py")
    try:
        nvml.nvmlInit()
        handle = _nvidia_handle(nvml, index)
        try:
            nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        except nvml.NVMLError:
            nvml.nvmlDeviceGetPowerUsage(handle)
            power = "nvmlDeviceGetPowerUsage"
            return Counter(power, 1e-3, "device", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3, integrated=True)
    except nvml.NVMLError as error:
        raise NoCounter("energy-failed", counter="NVML", reason=str(error)) from error
    total = "nvmlDeviceGetTotalEnergyConsumption"
    return Counter(total, 1e-3, "device", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3)


def _nvidia_handle(nvml: Any, index: int) -> Any:
    """NVML counts all GPUs and torch only the visible ones, so they meet by their id."""
    if (uuid := _torch_uuid(index)) is not None:
        return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    if nvml.nvmlDeviceGetCount() != 1:
        raise NoCounter("energy-device-unknown", counter="NVML", index=index)
    return nvml.nvmlDeviceGetHandleByIndex(0)


def _torch_uuid(index: int) -> str | None:
    import torch

    if not torch.cuda.is_available():
        return None
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return None if uuid is None else str(uuid)


def amd(index: int, library: Any = None) -> Counter:
    """AMD SMI's accumulator, in its own resolution of microjoules."""
    smi = library or _module("amdsmi", "rocm", "amdsmi")
    try:
        smi.amdsmi_init()
        handles = smi.amdsmi_get_processor_handles()
        visible = os.environ.get("HIP_VISIBLE_DEVICES") or os.environ.get("ROCR_VISIBLE_DEVICES")
        if index >= len(handles) or (visible and len(handles) > 1):
            raise NoCounter("energy-device-unknown", counter="AMD SMI", index=index)
        handle = handles[index]
        resolution_j = float(smi.amdsmi_get_energy_count(handle)["counter_resolution"]) / 1e6
    except (smi.AmdSmiException, KeyError) as error:
        raise NoCounter("energy-failed", counter="AMD SMI", reason=str(error)) from error

    def read() -> float:
        told = smi.amdsmi_get_energy_count(handle)
        return float(told["energy_accumulator"]) * float(told["counter_resolution"]) / 1e6

    return Counter("amdsmi_get_energy_count", resolution_j, "device", read)


def gaudi(index: int, library: Any = None) -> Counter:
    """HLML's total since the driver was loaded. It counts devices otherwise than torch does: they meet by module."""
    hlml = library or _module("pyhlml", "hpu", "habana-pyhlml")
    try:
        hlml.hlmlInit()
        handles = [hlml.hlmlDeviceGetHandleByIndex(place) for place in range(int(hlml.hlmlDeviceGetCount()))]
        module = os.environ.get("HLS_MODULE_ID", "")
        if len(handles) > 1 and module.isdigit():
            handles = [handle for handle in handles if int(hlml.hlmlDeviceGetModuleID(handle)) == int(module)]
        if len(handles) != 1:
            raise NoCounter("energy-device-unknown", counter="HLML", index=index)
        [handle] = handles
        hlml.hlmlDeviceGetTotalEnergyConsumption(handle)
    except (hlml.HLMLError, OSError) as error:
        raise NoCounter("energy-failed", counter="HLML", reason=str(error)) from error
    total = "hlmlDeviceGetTotalEnergyConsumption"
    return Counter(total, 1e-3, "device", lambda: float(hlml.hlmlDeviceGetTotalEnergyConsumption(handle)) / 1e3)


def apple(library: Any = None) -> Counter:
    """IOReport's total of the GPU, which is a part of the chip."""
    silicon = library or _module("zeus_apple_silicon", "mps", "zeus-apple-silicon")
    try:
        monitor = silicon.AppleEnergyMonitor()
        if monitor.get_cumulative_energy().gpu_mj is None:
            raise NoCounter("energy-failed", counter="IOReport", reason="no energy of the GPU")
    except RuntimeError as error:
        raise NoCounter("energy-failed", counter="IOReport", reason=str(error)) from error
    return Counter("IOReport gpu_mj", 1e-3, "device", lambda: monitor.get_cumulative_energy().gpu_mj / 1e3)


def _module(name: str, kind: str, package: str) -> Any:
    if importlib.util.find_spec(name) is None:
        raise NoCounter("energy-no-package", device=kind, package=package)
    try:
        return importlib.import_module(name)
    except (ImportError, KeyError, OSError) as error:  # amdsmi raises a KeyError where ROCm is missing
        raise NoCounter("energy-failed", counter=name, reason=str(error)) from error
