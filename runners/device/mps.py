"""Apple GPUs through `torch.mps`."""

import time

from runners.device.cpu import memory_limit_bytes
from runners.records import DeviceInfo


class Mps:
    """Backend for Metal. Marks wait for the GPU: MPS events have no reliable clock across command buffers."""

    kind = "mps"
    sync_policy = "torch.mps.synchronize at the edges of the timed region; stage times from a separate pass"
    marks_wait = True

    def unavailable_reason(self) -> str | None:
        """Asks torch."""
        import torch

        if torch.backends.mps.is_available():
            return None
        return f"torch {torch.__version__} finds no Apple GPU (it needs macOS on Apple silicon)"

    def synchronize(self) -> None:
        """Waits for all queued work."""
        import torch

        torch.mps.synchronize()

    def mark(self) -> float:
        """Waits, then reads the host clock; the sync policy says so."""
        self.synchronize()
        return time.perf_counter()

    def seconds_between(self, start: float, end: float) -> float:
        """Seconds between two marks."""
        return end - start

    def info(self) -> DeviceInfo:
        """The chip shares the host's memory."""
        import platform

        return DeviceInfo(kind="mps", name=f"Apple GPU ({platform.machine()})", memory_bytes=memory_limit_bytes())

    def peak_memory_bytes(self) -> int | None:
        """Metal keeps no peak; the pool that `driver_allocated_memory` tells is several times what is used."""
        return None

    def reset_peak_memory(self) -> None:
        """No counter."""

    def free_memory_bytes(self) -> int | None:
        """What Metal recommends at most, less what this process holds."""
        import torch

        return max(0, int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory()))

    def empty_cache(self) -> None:
        """Gives torch's cached blocks back."""
        import torch

        torch.mps.empty_cache()

    def precisions(self) -> tuple[str, ...]:
        """fp32 first: Stable Diffusion in fp16 has crashed or given black images on MPS."""
        return ("fp32", "fp16")


def make() -> Mps:
    """The backend."""
    return Mps()
