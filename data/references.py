"""The types of the catalogue: a device, a source, a published number, and a row that is none of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from data.measurements import Scope
from data.messages import render
from runners.records import Conditions

REPOSITORY_FILE = re.compile(r"([\w.-]+/[\w.-]+)@([^:]+)(?::(.+))?")


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
    """As published, None where no source in the catalogue says; they rarely tell GB from GiB."""
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
    """Year, year-month or full date; None where it is not known."""
    revision: str
    """What changed when, or which version was read."""

    def address(self, locator: str = "") -> str | None:
        """Where a reader can look it up in a browser; None where no address is known.

        Args:
            locator: Where inside the source, as `Reference.locator` says it.
        """
        if self.reference.startswith(("https://", "http://")):
            return self.reference
        if not (found := REPOSITORY_FILE.fullmatch(self.reference)):
            return None
        repository, commit, path = found.groups()
        path = path or locator.split("#")[0]
        # A pattern for several files is none of them; the folder above it is there.
        path = path.partition("*")[0].rpartition("/")[0] if "*" in path else path
        return f"https://github.com/{repository}/blob/{quote(commit)}/{quote(path)}".rstrip("/")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One published number."""

    id: str
    device_id: str
    device_as_published: str
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
    locator: str
    """Where in the source: a path, the name of a test, a heading; empty where the source is one page."""
    date: str | None
    """Year, year-month or full date, as exact as the source is; None where it does not say."""
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
    message_id: str
    """A key of `data.messages`: why."""
    params: Mapping[str, object]

    def text(self, translate: Callable[[str], str] = str) -> str:
        """File, line and reason as one sentence.

        Args:
            translate: gettext of the reader; the default gives English.
        """
        reason = render(self.message_id, self.params, translate)
        return render("catalogue-row", {"file": self.file, "line": self.line, "reason": reason}, translate)

    def __str__(self) -> str:
        """The sentence in English."""
        return self.text()
