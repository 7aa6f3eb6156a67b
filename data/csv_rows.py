"""A CSV file of the catalogue as rows, and typed access to their cells, with reasons that name line and column."""

import csv
import difflib
import io
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"\d+", re.ASCII)
DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?", re.ASCII)
DATE_FORMS = {4: "%Y", 7: "%Y-%m", 10: "%Y-%m-%d"}
INT64 = 2**63
MOST_LISTED = 12
UNDECODABLE = re.compile("[\udc80-\udcff]")


class FollowUp(Exception):
    """A row names another that is bad itself: that one is reported, and this one is left out without a word."""


class BadCell(Exception):
    """A row that cannot be used, and why: a message id of `data.messages` with its parameters."""

    def __init__(self, message_id: str, **params: object) -> None:
        super().__init__(message_id)
        self.message_id = message_id
        self.params = params


class Unreadable(BadCell):
    """A file that cannot be read on."""

    def __init__(self, line: int, message_id: str, **params: object) -> None:
        super().__init__(message_id, **params)
        self.line = line


@dataclass
class Table(Generic[Item]):
    """What was read of one file."""

    items: dict[str, Item] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    """Ids of all rows, the bad ones too."""
    whole: bool = True
    """Whether all its ids are known; if not, one that is missing here may be there."""

    def may_have(self, key: str) -> bool:
        """Whether there is such a row, good or bad, as far as can be told."""
        return key in self.named or not self.whole


class Row:
    """One CSV row: typed access to its cells, with reasons that name the column."""

    def __init__(self, cells: Mapping[str, str], line: int, fault: BadCell | None = None) -> None:
        """Takes the cells by column, the line on which the row starts, and why it cannot be used, if so."""
        self.cells = cells
        self.line = line
        self.fault = fault

    def text(self, column: str) -> str:
        """A cell that must not be empty."""
        if not (value := self.cells[column]):
            raise BadCell("row-empty", column=column)
        return value

    def optional(self, column: str) -> str | None:
        """A cell that may be empty."""
        return self.cells[column] or None

    def choice(self, column: str, known: Collection[str]) -> str:
        """One of the known values."""
        if (value := self.text(column)) not in known:
            raise BadCell("row-choice", column=column, value=value, known=_listed(value, known))
        return value

    def optional_choice(self, column: str, known: Collection[str]) -> str | None:
        """One of the known values, or None for an empty cell."""
        return self.choice(column, known) if self.cells[column] else None

    def reference(self, column: str, table: Table[Any]) -> str:
        """The id of a row of another file.

        Raises:
            FollowUp: That row is bad.
        """
        if (value := self.text(column)) not in table.items and table.may_have(value):
            raise FollowUp
        return self.choice(column, table.items)

    def references(self, column: str, table: Table[Any]) -> tuple[str, ...]:
        """Ids of rows of another file, separated by semicolons; see `reference`."""
        values = self.several(column)
        if any(value not in table.items and table.may_have(value) for value in values):
            raise FollowUp
        return self.several(column, table.items)

    def pattern(self, column: str, pattern: re.Pattern[str]) -> str:
        """A cell of that form."""
        if not pattern.fullmatch(value := self.text(column)):
            raise BadCell("row-pattern", column=column, value=value, pattern=pattern.pattern)
        return value

    def optional_date(self, column: str) -> str | None:
        """A date, or None for an empty cell."""
        return self.date(column) if self.cells[column] else None

    def date(self, column: str) -> str:
        """A year, a month or a day that the calendar has."""
        value = self.text(column)
        try:
            if not DATE.fullmatch(value):
                raise ValueError
            datetime.strptime(value, DATE_FORMS[len(value)])
        except ValueError:
            raise BadCell("row-date", column=column, value=value) from None
        return value

    def number(self, column: str) -> float | None:
        """A number above zero, or None for an empty cell."""
        if not (value := self.cells[column]):
            return None
        if not NUMBER.fullmatch(value):
            raise BadCell("row-number", column=column, value=value)
        number = float(value)
        if not math.isfinite(number) or number <= 0:
            raise BadCell("row-number", column=column, value=value)
        return number

    def whole(self, column: str) -> int | None:
        """A whole number above zero, written without a point, or None for an empty cell."""
        if not (value := self.cells[column]):
            return None
        if not WHOLE_NUMBER.fullmatch(value) or len(value) > len(str(INT64)) or not 0 < int(value) < INT64:
            raise BadCell("row-whole", column=column, value=value, most=INT64 - 1)
        return int(value)

    def boolean(self, column: str) -> bool | None:
        """A cell of true or false, or None for an empty cell."""
        value = self.cells[column]
        if value not in ("", "true", "false"):
            raise BadCell("row-boolean", column=column, value=value)
        return value == "true" if value else None

    def several(self, column: str, known: Collection[str] | None = None) -> tuple[str, ...]:
        """Known values, separated by semicolons."""
        values = tuple(item.strip() for item in self.cells[column].split(";") if item.strip())
        for value in values:
            if known is not None and value not in known:
                raise BadCell("row-unknown", column=column, value=value)
        return values


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file; `Row.fault` says of one that its cells cannot be told.

    Raises:
        Unreadable: There is no reading on; it says why and from which line.
    """
    try:
        # Excel begins UTF-8 with a mark. Bytes that are not UTF-8 are kept as half surrogate pairs, to find their row.
        text = path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise Unreadable(1, "file-unreadable", reason=str(error)) from error
    whole = UNDECODABLE.search(text) is None  # then no cell needs to be looked at
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    start, rows = 1, 0
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header)
        start = reader.line_num + 1
        for cells in reader:
            line, start = start, reader.line_num + 1
            if cells:  # Editors leave blank lines at the end.
                rows += 1
                fault = _fault(header, cells, whole=whole)
                yield Row(dict(zip(header, (cell.strip() for cell in cells), strict=False)), line, fault)
    except csv.Error as error:
        raise Unreadable(start, "file-unreadable", reason=str(error)) from error
    if not rows:
        raise Unreadable(1, "file-empty")


def _listed(value: str, known: Collection[str]) -> str:
    """What may stand there; where that is a long list, the words that are most like the one that does."""
    shown = difflib.get_close_matches(value, known, n=3, cutoff=0) if len(known) > MOST_LISTED else list(known)
    return ", ".join(shown) + (", …" if len(known) > MOST_LISTED else "")


def _fault(header: list[str], cells: list[str], *, whole: bool) -> BadCell | None:
    if len(cells) != len(header):
        return BadCell("row-cells", count=len(cells), expected=len(header))
    for name, cell in zip(header, cells, strict=True):
        if not whole and UNDECODABLE.search(cell):
            return BadCell("row-not-utf8", column=name)
    return None


def _check_header(header: list[str]) -> None:
    if not any(header):
        raise Unreadable(1, "file-no-header")
    for name in header:
        if UNDECODABLE.search(name):
            raise Unreadable(1, "file-header-not-utf8")
        if header.count(name) > 1:
            raise Unreadable(1, "file-column-twice", value=name)
