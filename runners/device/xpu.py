"""Intel GPUs through `torch.xpu`."""

from typing import Any

from runners.records import DeviceInfo


class Xpu:
    """Backend for `torch.xpu`; kernels are queued, as on CUDA."""

    kind = "xpu"
    sync_policy = "torch.xpu.synchronize at the edges of the timed region; XPU events inside"
    marks_wait = False

    def unavailable_reason(self) -> str | None:
        """Asks torch."""
        import torch

        if hasattr(torch, "xpu") and torch.xpu.is_available():
            return None
        return f"torch {torch.__version__} finds no Intel GPU (it needs the XPU build and driver)"

    def synchronize(self) -> None:
        """Waits for all queued work."""
        import torch

        torch.xpu.synchronize()

    def mark(self) -> Any:
        """A recorded event."""
        import torch

        event = torch.xpu.Event(enable_timing=True)
        event.record()
        return event

    def seconds_between(self, start: Any, end: Any) -> float:
        """Event time is in ms."""
        return float(start.elapsed_time(end)) / 1000.0

    def info(self) -> DeviceInfo:
        """Name and memory as the driver tells them."""
        import torch

        properties = torch.xpu.get_device_properties(torch.xpu.current_device())
        return DeviceInfo(
            kind="xpu",
            name=str(properties.name),
            index=torch.xpu.current_device(),
            memory_bytes=int(properties.total_memory),
        )

    def peak_memory_bytes(self) -> int | None:
        """Peak of torch's own allocations, in bytes."""
        import torch

        return int(torch.xpu.max_memory_allocated())

    def reset_peak_memory(self) -> None:
        """Starts the peak anew."""
        import torch

        torch.xpu.reset_peak_memory_stats()

    def free_memory_bytes(self) -> int | None:
        """What the driver says is free."""
        import torch

        return int(torch.xpu.mem_get_info()[0])

    def empty_cache(self) -> None:
        """Gives torch's cached blocks back."""
        import torch

        torch.xpu.empty_cache()

    def precisions(self) -> tuple[str, ...]:
        """fp16 and bf16 are native on the GPUs that torch.xpu supports."""
        return ("fp16", "bf16", "fp32")


def make() -> Xpu:
    """The backend."""
    return Xpu()
