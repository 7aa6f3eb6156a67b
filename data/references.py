"""The types of the catalogue: a device, a source, a published number, and a row that is none of them."""

import dataclasses
from dataclasses import dataclass

from data.measurements import Scope
from data.messages import render
from runners.records import Conditions


@dataclass(frozen=True, kw_only=True)
class Device:
    """An accelerator that published numbers speak of."""

    device_id: str
    name: str
    """As a person calls it: "Gaudi2"."""
    family: str
    vendor: str
    kind: str
    """hpu, cuda, rocm, xpu, mps, cpu, tpu, ipu or neuron."""
    product: str
    memory_gb: float | None
    """As published; sources rarely say whether GB or GiB is meant. None where the source does not name it."""
    memory_source_id: str | None
    year: int | None
    """Year of announcement; None where not certain."""
    note: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a number was read."""

    source_id: str
    title: str
    publisher: str
    reference: str
    """An address, or owner/repository@commit:path of a public repository."""
    date: str | None
    """None where it was not found."""
    revision: str
    """What changed when, or which version was read."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One published number."""

    id: str
    device_id: str
    model_as_published: str
    metric: str
    """As in the source, like `unit`, `value` and `scope`."""
    unit: str
    value: float | None
    """None: the source prints "not available"."""
    scope: Scope
    status: str
    canonical_metric: str | None
    canonical_value: float | None
    canonical_unit: str | None
    baseline_id: str | None
    """For a printed ratio: the row that it is relative to."""
    conditions: Conditions
    assumed_fields: tuple[str, ...]
    assumed_source_ids: tuple[str, ...]
    source_id: str
    date: str | None
    """Year, year-month or full date, as exact as the source is; None where it was not found."""
    revision: str
    tier: str
    """article, same-harness, same-task or related."""
    flags: tuple[str, ...]
    """Message ids of `data.messages`."""
    caveat: str
    line: int
    """Line in results.csv."""


@dataclass(frozen=True, kw_only=True)
class BadRow:
    """A row that cannot be used."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """File, line and reason as one sentence."""
        return render("catalogue-row", dataclasses.asdict(self))
