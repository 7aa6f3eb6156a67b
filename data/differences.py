"""Two runs beside each other: the fields that differ, the ratio of their times, and how alike their images are."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runners.records import Record
from runners.stats import RatioEstimate, ratio_of_means

if TYPE_CHECKING:
    import numpy as np

MEASURED_SERIES = ("denoise_vae_s", "step_s", "end_to_end_s")
"""Which samples are compared: the published clock first."""


@dataclass(frozen=True)
class Difference:
    """One field whose values differ."""

    group: str
    """spec, conditions, device or environment."""
    name: str
    value_a: object
    value_b: object


def differing(a: Record, b: Record) -> list[Difference]:
    """The settings, conditions, device facts and environment that differ; nothing that is the same.

    A condition that only repeats a setting of the same name is left out.
    """
    found: list[Difference] = []
    for group, one, other in (
        ("spec", a.spec, b.spec),
        ("conditions", asdict(a.conditions), asdict(b.conditions)),
        ("device", asdict(a.device), asdict(b.device)),
        ("environment", a.environment, b.environment),
    ):
        flat_a, flat_b = flat(one), flat(other)
        told = {difference.name for difference in found}
        found += [
            Difference(group, name, flat_a.get(name), flat_b.get(name))
            for name in dict.fromkeys((*flat_a, *flat_b))
            if flat_a.get(name) != flat_b.get(name) and name not in told
        ]
    return found


def sample_seconds(record: Record) -> list[float]:
    """Seconds in which one device makes one sample, of each measured batch or step; may be empty.

    On the published clock where there are two. Per device, since that is how verdicts compare unequal device counts.
    """
    per_step = record.conditions.batch_size_per_device or 1
    for name in MEASURED_SERIES:
        for series in record.series:
            if series.name == name and series.phase == "measured" and series.values:
                return [value / per_step for value in series.values]
    return []


def speed_ratio(a: Record, b: Record) -> RatioEstimate | None:
    """How many times as fast as `b` the run `a` was; None where one has no samples, or times that are none."""
    try:
        return ratio_of_means(sample_seconds(b), sample_seconds(a))
    except ValueError:
        return None


@dataclass(frozen=True)
class Similarity:
    """How alike two images are."""

    psnr_db: float
    """Peak signal-to-noise ratio; infinite for equal images, about 30 where one sees a difference only when looking."""
    ssim: float
    """Structural similarity, 1 for equal images."""


def similarity(a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]") -> Similarity | None:
    """PSNR and SSIM of two images of 8 bits; None where their sizes differ.

    SSIM is Wang et al. 2004: Gaussian windows of deviation 1.5, K1 = 0.01, K2 = 0.03, the mean over pixels and
    channels.

    Args:
        a: Shape (height, width, channels), 0 to 255.
        b: The same.
    """
    import numpy as np
    from scipy.ndimage import gaussian_filter

    if a.shape != b.shape:
        return None
    one, other = a.astype(float), b.astype(float)
    error = float(np.mean((one - other) ** 2))
    psnr = float("inf") if error == 0 else 10 * float(np.log10(255**2 / error))

    def smooth(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        return np.asarray(gaussian_filter(values, sigma=(1.5, 1.5, 0), truncate=3.5))

    mean_a, mean_b = smooth(one), smooth(other)
    variance_a, variance_b = smooth(one**2) - mean_a**2, smooth(other**2) - mean_b**2
    covariance = smooth(one * other) - mean_a * mean_b
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    index = ((2 * mean_a * mean_b + c1) * (2 * covariance + c2)) / (
        (mean_a**2 + mean_b**2 + c1) * (variance_a + variance_b + c2)
    )
    return Similarity(psnr, float(np.mean(index)))


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Nested facts as one list: packages.torch and so on."""
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
