"""What devices can do at most, as published: `data/reference/peaks.csv`, a path and not an import. No torch here.

All peaks are dense: data sheets like to print twice as much, with a sparsity that these workloads do not have. A peak
is the product of a clock and of units, and some devices run above the clock of their data sheet (an H100 up to 1980 MHz
instead of 1830, Gaudi3's white paper and the device differ by 9 %), so `MARGIN` is allowed on top before anything is
called impossible.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from runners.paths import PROJECT_DIR

PEAKS_PATH = PROJECT_DIR / "data" / "reference" / "peaks.csv"
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8")
MARGIN = 1.1
"""Of arithmetic and bandwidth."""
POWER_MARGIN = 1.25
"""Of power: there are versions of the A100 with 500 W instead of 400."""


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """One device's limits; None where the source says nothing."""

    device_id: str
    """As in devices.csv."""
    tflops: Mapping[str, float]
    """Dense, by precision."""
    bandwidth_bytes_per_s: float | None
    limit_w: float | None
    """The most that it may draw: thermal design power or total board power."""
    idle_w: float | None
    source_id: str
    note: str

    def at(self, precision: str | None, tf32: bool | None = None) -> float | None:
        """TFLOP/s at a precision as `Conditions` writes it.

        Where a record leaves open which arithmetic was used, it gets the benefit of the doubt: fp32 may have been tf32
        unless the record says that it was not.
        """
        plain = (precision or "").removesuffix("-mixed")
        if plain == "fp32" and tf32 is not False:
            return self.tflops.get("tf32", self.tflops.get("fp32"))
        return self.tflops.get(plain)


@lru_cache(maxsize=1024)
def peaks_of(device_name: str) -> Peaks | None:
    """The limits of a device by the name that its driver or a publication gives it; None where none are known.

    Of several names that fit the longest decides: "NVIDIA H100 PCIe" is not the faster SXM version. A name that leaves
    the version open counts as the fastest.
    """
    told = re.sub(r"[^a-z0-9]+", " ", device_name.casefold())
    fitting = [(len(name), peaks) for name, peaks in _by_name() if re.search(rf"(?<![a-z0-9]){name}(?![0-9])", told)]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


@cache
def _by_name() -> list[tuple[str, Peaks]]:
    return read_peaks(PEAKS_PATH)


def read_peaks(path: Path) -> list[tuple[str, Peaks]]:
    """Every name of every row with its limits.

    Raises:
        ValueError: A cell is no number.
        OSError: The file cannot be read.
    """
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            bandwidth = _number(row["bandwidth_tb_per_s"])
            peaks = Peaks(
                device_id=row["device_id"],
                tflops={name: value for name in PRECISIONS if (value := _number(row[f"{name}_tflops"])) is not None},
                bandwidth_bytes_per_s=None if bandwidth is None else bandwidth * 1e12,
                limit_w=_number(row["limit_w"]),
                idle_w=_number(row["idle_w"]),
                source_id=row["source_id"],
                note=row["note"],
            )
            found += [(name.strip(), peaks) for name in row["names"].split(";")]
    return found


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
