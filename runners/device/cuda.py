"""NVIDIA GPUs, and AMD GPUs through ROCm: torch calls both cuda."""

from typing import Any

from runners.records import DeviceInfo


class Cuda:
    """Backend for `torch.cuda`; kernels are queued, so times need events or a wait."""

    kind = "cuda"
    sync_policy = "torch.cuda.synchronize at the edges of the timed region; CUDA events inside"
    marks_wait = False

    def unavailable_reason(self) -> str | None:
        """Asks torch; a CPU build of torch and a missing driver are told apart."""
        import torch

        if torch.cuda.is_available():
            return None
        if torch.version.cuda is None and torch.version.hip is None:
            return f"torch {torch.__version__} is built without CUDA and ROCm"
        return "torch finds no GPU or no driver"

    def synchronize(self) -> None:
        """Waits for all streams of the current GPU."""
        import torch

        torch.cuda.synchronize()

    def mark(self) -> Any:
        """A recorded event; costs the host microseconds."""
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds_between(self, start: Any, end: Any) -> float:
        """Event time is in ms."""
        return float(start.elapsed_time(end)) / 1000.0

    def info(self) -> DeviceInfo:
        """Rocm where torch was built with HIP, else cuda."""
        import torch

        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return DeviceInfo(
            kind="rocm" if torch.version.hip else "cuda",
            name=properties.name,
            index=torch.cuda.current_device(),
            memory_bytes=int(properties.total_memory),
            cores=int(properties.multi_processor_count),
        )

    def peak_memory_bytes(self) -> int | None:
        """Peak of torch's own allocations, in bytes."""
        import torch

        return int(torch.cuda.max_memory_allocated())

    def reset_peak_memory(self) -> None:
        """Starts the peak anew."""
        import torch

        torch.cuda.reset_peak_memory_stats()

    def free_memory_bytes(self) -> int | None:
        """What the driver says is free, other processes counted."""
        import torch

        return int(torch.cuda.mem_get_info()[0])

    def empty_cache(self) -> None:
        """Gives torch's cached blocks back to the driver."""
        import torch

        torch.cuda.empty_cache()

    def precisions(self) -> tuple[str, ...]:
        """fp16 as published for the A100; bf16 where the GPU has it."""
        import torch

        return ("fp16", "fp32", "bf16") if torch.cuda.is_bf16_supported(including_emulation=False) else ("fp16", "fp32")


def make() -> Cuda:
    """The backend."""
    return Cuda()
