"""The only place that says hpu, cuda, xpu, mps or cpu: one backend per file, and a null object for "none".

A backend answers four questions that differ per device: is it here, how does the host wait for it, what does a mark
inside a timed region cost, and how much memory was used. Everything else is the same code on every device.
"""

import importlib
from typing import TYPE_CHECKING, Any, Protocol

from runners.errors import DeviceUnavailable

if TYPE_CHECKING:
    from runners.records import DeviceInfo

# Gaudi comes first: its GPU migration toolkit can make torch.cuda answer for an HPU, never the other way round.
DETECTION_ORDER = ("hpu", "cuda", "xpu", "mps", "cpu")


class Backend(Protocol):
    """What a workload may ask of the device it runs on."""

    kind: str
    """hpu, cuda, xpu, mps, cpu or none: the name in `torch.device` and in the specification."""
    sync_policy: str
    """How the host waits at the edges of a timed region, for the record's audit."""
    marks_wait: bool
    """Whether `mark` makes the host wait; then stage times come from a separate pass, never from a timed region."""

    def unavailable_reason(self) -> str | None:
        """None where the device can be used, else why not, in English (library words are not translated)."""

    def synchronize(self) -> None:
        """Waits until all queued work is done."""

    def mark(self) -> Any:
        """A point in time on the device's own clock; makes the host wait only where `marks_wait` says so."""

    def seconds_between(self, start: Any, end: Any) -> float:
        """Seconds between two marks; call it only after `synchronize`."""

    def info(self) -> "DeviceInfo":
        """Name, memory and cores."""

    def peak_memory_bytes(self) -> int | None:
        """The most memory that was in use since `reset_peak_memory`, in bytes; None where there is no counter."""

    def reset_peak_memory(self) -> None:
        """Starts the peak anew, where there is a counter."""

    def free_memory_bytes(self) -> int | None:
        """Memory that can still be had, in bytes; None where it cannot be asked."""

    def empty_cache(self) -> None:
        """Gives cached memory back, where the device can."""

    def precisions(self) -> tuple[str, ...]:
        """Usable number formats; the first is the default."""


def backend(kind: str) -> Backend:
    """The backend of that kind, whether or not its device is here.

    Raises:
        DeviceUnavailable: There is no such kind.
    """
    if kind not in (*DETECTION_ORDER, "none"):
        raise DeviceUnavailable("device-unknown", name=kind, known=", ".join(DETECTION_ORDER))
    module = importlib.import_module(f"runners.device.{kind}")
    made: Backend = module.make()
    return made


def select(wanted: str) -> Backend:
    """The backend to run on.

    Args:
        wanted: A kind, or "auto" for the first of `DETECTION_ORDER` that is here.

    Raises:
        DeviceUnavailable: The wanted device is not here; the message says why.
    """
    if wanted == "auto":
        for kind in DETECTION_ORDER:
            candidate = backend(kind)
            if candidate.unavailable_reason() is None:
                return candidate
    chosen = backend(wanted)
    reason = chosen.unavailable_reason()
    if reason is not None:
        raise DeviceUnavailable("device-unavailable", name=wanted, reason=reason)
    return chosen
