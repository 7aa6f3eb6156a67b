"""The catalogue of published numbers: `reference/{devices,results,sources}.csv`, read, checked and typed.

Adding a number is adding a row. A row keeps what the source prints (`metric`, `unit`, `value`, `scope`); beside it
stands our canonical metric, empty where no honest conversion exists, and every condition under the name that
`runners.records.Conditions` gives it. An empty condition was not published; `assumed_fields` names those that were
reconstructed. A bad row is named by file, line and reason.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from data.csv_rows import ID, BadCell, FollowUp, Row, Table, Unreadable, read_rows
from data.errors import CatalogueError, UnknownMeasurement
from data.measurements import Measurement
from data.plausibility import judged
from data.reference_rows import device_from, reference_from, source_from
from data.references import BadRow, Device, Reference, Source

__all__ = ["REFERENCE_DIR", "BadRow", "Catalogue", "Device", "Reference", "Source", "load_catalogue", "read_catalogue"]

REFERENCE_DIR = Path(__file__).parent / "reference"
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
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
        """Every reference that has a canonical metric, as a measurement; one that cannot be true carries a warning."""
        return tuple(judged([self._raw(item) for item in self.references if item.canonical_metric]))

    @cached_property
    def _judged(self) -> Mapping[str, Measurement]:
        return {item.id: item for item in self.measurements}

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
        return self._judged[row.id] if row.canonical_metric else self._raw(row)

    def _raw(self, row: Reference) -> Measurement:
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
    """The good rows, and the bad ones with their reasons; a row that only names a bad one is in neither."""
    problems: list[BadRow] = []
    sources = _read(folder / "sources.csv", "source_id", source_from, problems)
    devices = _read(folder / "devices.csv", "device_id", lambda row: device_from(row, sources), problems)
    references = _read(folder / "results.csv", "id", lambda row: reference_from(row, devices, sources), problems)
    problems += _missing_baselines(references)
    return Catalogue(devices.items, sources.items, tuple(references.items.values())), problems


def _missing_baselines(references: Table[Reference]) -> Iterator[BadRow]:
    lines: dict[str, list[int]] = {}
    for item in references.items.values():
        if item.baseline_id and not references.may_have(item.baseline_id):
            lines.setdefault(item.baseline_id, []).append(item.line)
    for baseline_id, [first, *others] in lines.items():
        message_id = "row-baseline-more" if others else "row-baseline"
        params = {"value": baseline_id, "count": len(others)}
        yield BadRow(file="results.csv", line=first, message_id=message_id, params=params)


def _read(path: Path, id_column: str, build: Callable[[Row], Item], problems: list[BadRow]) -> Table[Item]:
    table: Table[Item] = Table()
    try:
        for row in read_rows(path):
            try:
                _take(row, id_column, build, table)
            except FollowUp:
                continue
            except BadCell as error:
                problems.append(_bad_row(path, row.line, error))
    except KeyError as error:
        # The header lacks it, so every row does.
        table.whole = False
        problems.append(_bad_row(path, 1, BadCell("file-no-column", value=error.args[0])))
    except Unreadable as error:
        table.whole = False
        problems.append(_bad_row(path, error.line, error))
    return table


def _bad_row(path: Path, line: int, error: BadCell) -> BadRow:
    return BadRow(file=path.name, line=line, message_id=error.message_id, params=error.params)


def _take(row: Row, id_column: str, build: Callable[[Row], Item], table: Table[Item]) -> None:
    key = row.cells.get(id_column, "") if row.fault else row.cells[id_column]
    if not ID.fullmatch(key) or key in table.named:
        # Nobody knows which id was meant, so rows that name a missing one are not held against it.
        table.whole = False
    repeated = key in table.named
    table.named.add(key)
    if row.fault:
        raise row.fault
    row.pattern(id_column, ID)
    if repeated:
        raise BadCell("row-id-used", value=key)
    table.items[key] = build(row)
