"""Gaudi through the Gaudi software and `torch.hpu`; one process holds a device at a time."""

import importlib.util
import time
from typing import Any

from runners.records import DeviceInfo


class Hpu:
    """Backend for `habana_frameworks.torch.hpu`."""

    kind = "hpu"
    sync_policy = "torch.hpu.synchronize at the edges of the timed region; stage times from a separate pass"
    marks_wait = True

    def unavailable_reason(self) -> str | None:
        """Looks for the package before importing anything: without it even `import optimum.habana` fails oddly."""
        if importlib.util.find_spec("habana_frameworks") is None:
            return "the Gaudi software (habana_frameworks) is not installed"
        return None if _hpu().is_available() else "the Gaudi software finds no device"

    def synchronize(self) -> None:
        """Waits for all queued work."""
        _hpu().synchronize()

    def mark(self) -> float:
        """Waits, then reads the host clock; in lazy mode events would not be placed where they are called."""
        self.synchronize()
        return time.perf_counter()

    def seconds_between(self, start: float, end: float) -> float:
        """Seconds between two marks."""
        return end - start

    def info(self) -> DeviceInfo:
        """The driver says GAUDI, GAUDI2 or GAUDI3."""
        statistics = _hpu().memory_stats()
        name = str(_hpu().get_device_name()).upper().replace(" ", "")
        return DeviceInfo(kind="hpu", name=name, memory_bytes=int(statistics["Limit"]))

    def peak_memory_bytes(self) -> int | None:
        """MaxInUse; what hl-smi calls used is the pool that the process reserved."""
        return int(_hpu().memory_stats()["MaxInUse"])

    def reset_peak_memory(self) -> None:
        """Starts the peak anew."""
        _hpu().reset_peak_memory_stats()

    def free_memory_bytes(self) -> int | None:
        """Limit less what is in use."""
        statistics = _hpu().memory_stats()
        return int(statistics["Limit"]) - int(statistics["InUse"])

    def empty_cache(self) -> None:
        """The process keeps its pool until it ends."""

    def precisions(self) -> tuple[str, ...]:
        """bf16 as published; Gaudi refuses fp16 in training, and fp32 is there for the T5 run."""
        return ("bf16", "fp32")


def _hpu() -> Any:
    import habana_frameworks.torch.hpu as hpu

    return hpu


def make() -> Hpu:
    """The backend."""
    return Hpu()
