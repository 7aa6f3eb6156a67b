"""The host's processor: calls return when the work is done, so there is nothing to wait for."""

import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from runners.records import DeviceInfo


class Cpu:
    """Backend for torch on the CPU."""

    kind = "cpu"
    sync_policy = "none needed: CPU calls return when the work is done"
    marks_wait = False

    def unavailable_reason(self) -> str | None:
        """A CPU is always here."""
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
        """The processor's name, the host's memory, and the cores that this process may use."""
        return DeviceInfo(kind="cpu", name=cpu_name(), memory_bytes=memory_limit_bytes(), cores=usable_cores())

    def peak_memory_bytes(self) -> int | None:
        """The most memory this process had resident since `reset_peak_memory`, in bytes; Linux only."""
        with suppress(OSError, ValueError):
            for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return None

    def reset_peak_memory(self) -> None:
        """Writing 5 to clear_refs starts Linux's VmHWM anew (proc(5)); elsewhere there is no such counter."""
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def free_memory_bytes(self) -> int | None:
        """What can be allocated without swapping, within the container's limit where there is one."""
        import psutil

        free = int(psutil.virtual_memory().available)
        limit = _cgroup_bytes("memory.max")
        used = _cgroup_bytes("memory.current")
        return min(free, max(0, limit - used)) if limit is not None and used is not None else free

    def empty_cache(self) -> None:
        """The allocator keeps no device cache."""

    def precisions(self) -> tuple[str, ...]:
        """fp32 first: bf16 without AMX or AVX-512 BF16 is some 60 times slower, but correct."""
        return ("fp32", "bf16")


def make() -> Cpu:
    """The backend."""
    return Cpu()


def cpu_name() -> str:
    """The processor's name as the operating system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_limit_bytes() -> int:
    """The host's memory, or the container's limit where that is smaller, in bytes."""
    import psutil

    total = int(psutil.virtual_memory().total)
    limit = _cgroup_bytes("memory.max")
    return min(total, limit) if limit is not None else total


def _cgroup_bytes(name: str) -> int | None:
    try:
        text = Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
