"""What this device does at most: matrix products and a large copy in each precision, for some seconds.

The products have the sizes that the other workloads use, and squares beside them, from small to large; what would take
longer than its share of the time is left out. Each sample is as many products as take some 20 ms, from one wait for the
device to the next. The limit of a precision is the fastest sample of all: other load can only make samples slower.

fp32 is strict fp32; where a GPU has TF32 it is measured beside it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runners import environment
from runners.calibrate import COPY, IDLE, MATMUL, WORKLOAD
from runners.device import Backend
from runners.energy import idle_watts
from runners.errors import WorkloadFailed
from runners.execute import Outcome, RunContext
from runners.records import Audit, Conditions, Metric, Phase, Series
from runners.specs import CalibrationSpec

if TYPE_CHECKING:
    import torch

# (rows, inner, columns) and where it comes from; in order of size.
SIZES: tuple[tuple[str, tuple[int, int, int]], ...] = (
    ("square-256", (256, 256, 256)),
    ("square-512", (512, 512, 512)),
    ("bert-base-attention-512", (512, 768, 768)),
    ("square-1024", (1024, 1024, 1024)),
    ("t5-small-feed-forward-1024", (1024, 512, 2048)),
    ("bert-base-feed-forward-512", (512, 768, 3072)),
    ("stable-diffusion-feed-forward-4096", (4096, 320, 2560)),
    ("square-2048", (2048, 2048, 2048)),
    ("t5-3b-feed-forward-1024", (1024, 1024, 16384)),
    ("bert-base-feed-forward-16384", (16384, 768, 3072)),
    ("square-4096", (4096, 4096, 4096)),
    ("square-8192", (8192, 8192, 8192)),
)
SAMPLE_S = 0.02
LEAST_SAMPLES = 3
COPY_BYTES = 2**28
"""Beyond any cache; less where memory is short."""
MEMORY_SHARE = 0.1


@dataclass(frozen=True)
class Rates:
    """Rates of one size in the order in which they arose."""

    size: str
    values: list[float]

    @property
    def best(self) -> float:
        """The fastest sample: what else runs on the machine can only make one slower."""
        return max(self.values)


def run(spec: CalibrationSpec, context: RunContext) -> Outcome:
    """Measures every precision that the device has.

    Raises:
        Cancelled: Somebody asked the run to stop.
        DeviceUnavailable: The device is not here.
        WorkloadFailed: Nothing could be measured.
    """
    begun_s = time.perf_counter()
    idle_w = idle_watts(context.device, context.check_cancelled)
    kinds = arithmetics(context.device)
    products: dict[str, list[Rates]] = {}
    copies: dict[str, Rates] = {}
    for place, name in enumerate(kinds):
        context.progress("measured", step=place, steps=len(kinds))
        products[name] = _products(name, spec.seconds, context)
        if name != "tf32":
            copies[name] = _copy(name, spec.seconds, context)
    if not all(products.values()):
        raise WorkloadFailed("calibration-empty", seconds=spec.seconds)
    best = {name: max(rates, key=lambda item: item.best) for name, rates in products.items()}
    return Outcome(
        conditions=Conditions(
            workload=WORKLOAD, devices=1, warmup_rule="first-batch-dropped", software=environment.software(("torch",))
        ),
        phases=(Phase(name="measured", duration_s=time.perf_counter() - begun_s),),
        series=tuple(_series(products, copies)),
        metrics=(
            *(_metric(MATMUL.format(name), "TFLOP/s", rates) for name, rates in best.items()),
            *(_metric(COPY.format(name), "GB/s", rates) for name, rates in copies.items()),
        ),
        audit=Audit(sync_policy=context.device.sync_policy),
        details={"fastest_size": {name: rates.size for name, rates in best.items()}, IDLE: idle_w},
    )


def arithmetics(device: Backend) -> tuple[str, ...]:
    """The device's precisions, and tf32 where its fp32 has two meanings."""
    usable = device.precisions()
    return (*usable, "tf32") if device.info().kind == "cuda" and "bf16" in usable else usable


def _products(name: str, seconds: float, context: RunContext) -> list[Rates]:
    """Every size that fits into its time and the memory."""
    import torch

    found: list[Rates] = []
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        for size, (rows, inner, columns) in SIZES:
            context.check_cancelled()
            work = 2.0 * rows * inner * columns
            best = max((rates.best for rates in found), default=0.0)
            if best and work * (LEAST_SAMPLES + 1) / (best * 1e12) > 2 * seconds:
                break
            if _bytes(name) * (rows * inner + inner * columns + rows * columns) > _room(context.device):
                break
            left, right = (_noise(shape, name, context.device) for shape in ((rows, inner), (inner, columns)))
            rates = _repeated(_product(left, right), seconds, context)
            found.append(Rates(size, [work * rate / 1e12 for rate in rates]))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
    return found


def _product(left: "torch.Tensor", right: "torch.Tensor") -> Callable[[], Any]:
    """A product that cannot be left out: each adds to half of the last, so a compiler sees that all are needed."""
    total = left.new_zeros(left.shape[0], right.shape[1])
    return lambda: total.addmm_(left, right, beta=0.5)


def _copy(name: str, seconds: float, context: RunContext) -> Rates:
    import torch

    size = int(min(COPY_BYTES, _room(context.device)))
    source = torch.ones(size // _bytes(name), dtype=_dtype(name), device=context.device.kind)
    target = torch.empty_like(source)
    moved = 2.0 * source.numel() * _bytes(name)
    rates = _repeated(lambda: target.copy_(source), seconds, context)
    return Rates(f"{size // 2**20} MiB", [moved * rate / 1e9 for rate in rates])


def _repeated(call: Callable[[], Any], seconds: float, context: RunContext) -> list[float]:
    """Calls per second of each sample, until the time is over; the first call is not counted."""
    device = context.device
    device.synchronize()
    call()
    device.synchronize()
    begun_s = time.perf_counter()
    call()
    device.synchronize()
    calls = max(1, round(SAMPLE_S / max(time.perf_counter() - begun_s, 1e-7)))
    rates: list[float] = []
    begun_s = time.perf_counter()
    while len(rates) < LEAST_SAMPLES or time.perf_counter() - begun_s < seconds:
        context.check_cancelled()
        started_s = time.perf_counter()
        for _ in range(calls):
            call()
            if device.marks_wait:
                device.synchronize()  # where calls are collected first, each must be carried out as it is
        device.synchronize()
        rates.append(calls / (time.perf_counter() - started_s))
    return rates


def _noise(shape: tuple[int, int], name: str, device: Backend) -> "torch.Tensor":
    import torch

    return torch.randn(shape, device=device.kind).to(_dtype(name))


def _dtype(name: str) -> "torch.dtype":
    import torch

    return {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)


def _bytes(name: str) -> int:
    return 2 if name in ("fp16", "bf16") else 4


def _room(device: Backend) -> float:
    free = device.free_memory_bytes()
    return COPY_BYTES if free is None else MEMORY_SHARE * free


def _metric(name: str, unit: str, rates: Rates) -> Metric:
    return Metric(
        name=name,
        value=rates.best,
        unit=unit,
        n=len(rates.values),
        higher_is_better=True,
    )


def _series(products: dict[str, list[Rates]], copies: dict[str, Rates]) -> list[Series]:
    found = [
        Series(name=f"matmul_{name}_{rates.size}", unit="TFLOP/s", phase="measured", values=tuple(rates.values))
        for name, several in products.items()
        for rates in several
    ]
    found += [
        Series(name=f"copy_{name}", unit="GB/s", phase="measured", values=tuple(rates.values))
        for name, rates in copies.items()
    ]
    return found
