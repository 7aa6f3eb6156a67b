"""A draft: one run as a file of somebody else tells it. What the file does not say stays empty."""

import hashlib
import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from data.errors import StoreError
from data.importers.privacy import clean
from runners.records import Metric, Phase, Series, Status

MAX_RUNS = 10_000
"""Of one file."""
MAX_SAMPLES = 1_000_000
"""Of one series: more would have to be held by everybody who opens the run."""
SAMPLES_PER_STEP = "samples_per_step"
"""Name in `details` of what batch size times number of devices must divide."""


class ImportRefused(StoreError):
    """A file, or an answer about it, cannot be used; nothing of it was stored."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What one file says about one run."""

    title: str
    """Which of the file's runs this is, for the preview; empty where it has one."""
    workload: str | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Some fields of `runners.records.Conditions`."""
    device_name: str | None = None
    device_kind: str | None = None
    device_memory_bytes: int | None = None
    global_batch_size: int | None = None
    """Samples of a step over all devices, without gradient accumulation: together with the number of devices it gives
    the batch size, and the reverse."""
    started_utc: str | None = None
    finished_utc: str | None = None
    status: Status = "ok"
    metrics: tuple[Metric, ...] = ()
    """The first is the headline."""
    series: tuple[Series, ...] = ()
    phases: tuple[Phase, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """Ids of `data.import_messages`, without parameters: they become warnings of the record."""
    image: bytes | None = None
    """A PNG without its own metadata."""

    def run_id(self) -> str:
        """The same id for the same content, on every machine: that is how duplicates are found.

        A UUID of version 8 (RFC 9562): the first 48 bits are the time in ms, as in our own ids, so that names sort by
        age (0 where the file gives none); the rest is the content's SHA-256.
        """
        milliseconds = 0
        if self.started_utc:
            milliseconds = max(0, int(datetime.fromisoformat(self.started_utc).timestamp() * 1000))
        digest = int.from_bytes(hashlib.sha256(self._content()).digest()[:10])
        value = (milliseconds & (2**48 - 1)) << 80 | digest
        value = value & ~(0xF << 76) | 0x8 << 76
        value = value & ~(0b11 << 62) | 0b10 << 62
        return str(uuid.UUID(int=value))

    def _content(self) -> bytes:
        image = hashlib.sha256(self.image).hexdigest() if self.image is not None else None
        parts = {**vars(self), "image": image, "warnings": None}
        text = json.dumps(parts, sort_keys=True, default=lambda value: vars(value))
        return text.encode("utf-8", "surrogatepass")


def metric(name: str, value: object, unit: str, *, better: str, n: int = 1, region: str | None = None) -> Metric | None:
    """A metric, or None where the value is not a finite number.

    Args:
        name: Canonical where it is a quantity that we know, else the file's own.
        value: What the file says.
        unit: The unit of the value.
        better: "higher" or "lower".
        n: How many samples stand behind the value; 1 where the file does not say.
        region: Which clock.
    """
    number = finite(value)
    if number is None:
        return None
    return Metric(
        name=name, value=number, unit=unit, n=n, higher_is_better=better == "higher", timed_region=region, interval=None
    )


def finite(value: object) -> float | None:
    """The value as a finite number, or None; texts and booleans are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole(value: object) -> int | None:
    """The value as a whole number that a column takes, or None."""
    number = finite(value)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**63 else None


def text(value: object) -> str | None:
    """A text that says something, or None."""
    return value.strip() or None if isinstance(value, str) else None


def utc_text(seconds: float) -> str | None:
    """A Unix time as ISO 8601 with a trailing Z; None where it is not a time between 2000 and 2100."""
    if not 946_684_800 <= seconds < 4_102_444_800:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def present(*metrics: Metric | None) -> tuple[Metric, ...]:
    """Those that are there."""
    return tuple(item for item in metrics if item is not None)


def model_name(published: str) -> str:
    """The canonical architecture of a published model, where it has one here; else its name without folders."""
    first_generation = (
        "CompVis/stable-diffusion-v1-4",
        "runwayml/stable-diffusion-v1-5",
        "stable-diffusion-v1-5/stable-diffusion-v1-5",
    )
    return "stable-diffusion-1" if published in first_generation else clean(published)
