"""The catalogue of published numbers: `reference/{devices,results,sources}.csv`, read, checked and typed.

Adding a number is adding a row. A row keeps what the source prints (`metric`, `unit`, `value`, `scope`); beside it
stands our canonical metric, empty where no honest conversion exists, and every condition under the name that
`runners.records.Conditions` gives it. An empty condition was not published; `assumed_fields` names those that were
reconstructed. A bad row is named by file, line and reason.
"""

import csv
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from data.errors import CatalogueError, UnknownMeasurement
from data.measurements import Measurement
from data.reference_rows import ID, Row, device_from, reference_from, source_from
from data.references import BadRow, Device, Reference, Source

__all__ = ["REFERENCE_DIR", "BadRow", "Catalogue", "Device", "Reference", "Source", "load_catalogue", "read_catalogue"]

REFERENCE_DIR = Path(__file__).parent / "reference"
Item = TypeVar("Item")


@dataclass(frozen=True)
class Catalogue:
    """All published numbers, with the devices and sources that they name."""

    devices: Mapping[str, Device]
    sources: Mapping[str, Source]
    references: tuple[Reference, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Reference]:
        """References by their id."""
        return {reference.id: reference for reference in self.references}

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every reference that has a canonical metric, as a measurement."""
        return tuple(self.measurement(item.id) for item in self.references if item.canonical_metric)

    def measurement(self, reference_id: str) -> Measurement:
        """A reference as a measurement: canonical metric where there is one, the source's own otherwise.

        Raises:
            UnknownMeasurement: There is no such row.
        """
        row = self.by_id.get(reference_id)
        if row is None:
            longer = [known for known in self.by_id if known.startswith(reference_id)]
            nearest = longer or difflib.get_close_matches(reference_id, self.by_id, cutoff=0)
            raise UnknownMeasurement("unknown-measurement", id=reference_id, nearest=", ".join(nearest[:3]))
        device = self.devices[row.device_id]
        return Measurement(
            id=row.id,
            label=device.name,
            device_id=device.device_id,
            device_kind=device.kind,
            metric=row.canonical_metric or row.metric,
            value=row.canonical_value if row.canonical_metric else row.value,
            unit=row.canonical_unit or row.unit,
            scope=row.scope,
            conditions=row.conditions,
            assumed_fields=row.assumed_fields,
            flags=row.flags,
            source_id=row.source_id,
            origin="published",
        )


def load_catalogue(folder: Path = REFERENCE_DIR) -> Catalogue:
    """The catalogue.

    Raises:
        CatalogueError: A row is bad; `params["problems"]` holds all of them as sentences.
    """
    catalogue, problems = read_catalogue(folder)
    if problems:
        texts = [str(problem) for problem in problems]
        raise CatalogueError("catalogue-invalid", count=len(texts), first=texts[0], problems=texts)
    return catalogue


def read_catalogue(folder: Path = REFERENCE_DIR) -> tuple[Catalogue, list[BadRow]]:
    """The good rows, and the bad ones with their reasons."""
    problems: list[BadRow] = []
    devices: dict[str, Device] = {}
    sources: dict[str, Source] = {}
    references: dict[str, Reference] = {}
    _read(folder / "sources.csv", source_from, sources, problems)
    _read(folder / "devices.csv", lambda row: device_from(row, sources), devices, problems)
    _read(folder / "results.csv", lambda row: reference_from(row, devices, sources), references, problems)
    for item in references.values():
        if item.baseline_id and item.baseline_id not in references:
            reason = f"baseline_id “{item.baseline_id}” is no row of this file"
            problems.append(BadRow(file="results.csv", line=item.line, reason=reason))
    return Catalogue(devices, sources, tuple(references.values())), problems


def _read(path: Path, build: Callable[[Row], Item], into: dict[str, Item], problems: list[BadRow]) -> None:
    for row in _rows(path, problems):
        try:
            key = row.pattern(next(iter(row.cells)), ID)
            if key in into:
                raise ValueError(f"the id “{key}” is already in use")
            into[key] = build(row)
        except KeyError as error:
            problems.append(BadRow(file=path.name, line=row.line, reason=f"there is no column {error.args[0]}"))
        except ValueError as error:
            problems.append(BadRow(file=path.name, line=row.line, reason=str(error)))


def _rows(path: Path, problems: list[BadRow]) -> Iterator[Row]:
    line = 0
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            for cells in reader:
                # The line on which the row ends: the same as where it starts, as long as no cell spans lines.
                line = reader.line_num
                if len(cells) != len(header):
                    reason = f"it has {len(cells)} cells, the header has {len(header)}"
                    problems.append(BadRow(file=path.name, line=line, reason=reason))
                    continue
                yield Row(dict(zip(header, (cell.strip() for cell in cells), strict=True)), line)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problems.append(BadRow(file=path.name, line=line + 1, reason=str(error)))
