"""The null object: a run that needs no accelerator, such as `synthetic`."""

import time

from runners.records import DeviceInfo


class NoDevice:
    """Keeps the host's clock and knows nothing else."""

    kind = "none"
    sync_policy = "none needed: no device takes part"
    marks_wait = False

    def unavailable_reason(self) -> str | None:
        """No device is always here."""
        return None

    def synchronize(self) -> None:
        """Nothing is queued."""

    def mark(self) -> float:
        """The host clock, in seconds."""
        return time.perf_counter()

    def seconds_between(self, start: float, end: float) -> float:
        """Seconds between two marks."""
        return end - start

    def info(self) -> DeviceInfo:
        """A device that is none."""
        return DeviceInfo(kind="none", name="none")

    def peak_memory_bytes(self) -> int | None:
        """No device, no memory."""
        return None

    def reset_peak_memory(self) -> None:
        """No counter."""

    def free_memory_bytes(self) -> int | None:
        """No device, no memory."""
        return None

    def empty_cache(self) -> None:
        """No cache."""

    def precisions(self) -> tuple[str, ...]:
        """Nothing is computed."""
        return ("fp32",)


def make() -> NoDevice:
    """The backend."""
    return NoDevice()
