"""Reading files that somebody else wrote: as text of whatever encoding, line by line or as JSON, within limits."""

import codecs
import csv
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.importers.draft import ImportRefused

MAX_JSON_BYTES = 64 * 2**20
MAX_LINE_CHARACTERS = 1_000_000
HEAD_BYTES = 65_536
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True)
class Source:
    """A file and the name under which messages speak of it."""

    path: Path
    name: str

    def head(self) -> bytes:
        """Its first bytes.

        Raises:
            ImportRefused: It cannot be read, or is not a file.
        """
        try:
            if not self.path.is_file():  # a named pipe would be waited for without end
                raise ImportRefused("import-not-a-file", file=self.name)
            with self.path.open("rb") as file:
                return file.read(HEAD_BYTES)
        except (OSError, ValueError) as error:
            raise ImportRefused("import-unreadable", file=self.name, reason=_reason(error)) from error

    def sha256(self) -> str:
        """Of the whole file, in hex."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def encoding_of(head: bytes) -> str | None:
    """The encoding by the first bytes: UTF-8, or UTF-16 where a byte order mark or its zeros show it; None: binary."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    if b"\0" not in head:
        return "utf-8"
    even, odd = head[0::2], head[1::2]
    if odd.count(0) > 0.4 * len(odd) and not even.count(0):
        return "utf-16-le"
    if even.count(0) > 0.4 * len(even) and not odd.count(0):
        return "utf-16-be"
    return None


def lines(source: Source) -> Iterator[tuple[int, str]]:
    """The file's lines with their numbers from 1, read as they are asked for: a file may have ten million.

    Raises:
        ImportRefused: It is not text, or a line is longer than any of these formats has.
    """
    encoding = encoding_of(source.head())
    if encoding is None:
        raise ImportRefused("import-binary", file=source.name)
    number = 0
    try:
        with source.path.open(encoding=encoding, newline=None) as file:
            while line := file.readline(MAX_LINE_CHARACTERS):
                number += 1
                if len(line) >= MAX_LINE_CHARACTERS:
                    raise ImportRefused("import-line-too-long", file=source.name, line=number)
                yield number, line.rstrip("\n")
    except UnicodeError:
        raise ImportRefused("import-not-text", file=source.name, line=number + 1, encoding=encoding) from None
    except OSError as error:
        raise ImportRefused("import-unreadable", file=source.name, reason=_reason(error)) from error


def json_document(source: Source) -> Any:
    """The file's one JSON document; NaN and Infinity, which Python's writers leave, become floats.

    Raises:
        ImportRefused: It is too large, not text, or not JSON; the message says where it breaks.
    """
    encoding = encoding_of(source.head())
    if encoding is None:
        raise ImportRefused("import-binary", file=source.name)
    try:
        size_bytes = source.path.stat().st_size
        if size_bytes > MAX_JSON_BYTES:
            limit_mib = MAX_JSON_BYTES // 2**20
            raise ImportRefused("import-too-large", file=source.name, size_mib=size_bytes // 2**20, limit_mib=limit_mib)
        return json.loads(source.path.read_text(encoding=encoding))
    except json.JSONDecodeError as error:
        raise ImportRefused(
            "import-not-json", file=source.name, line=error.lineno, column=error.colno, reason=error.msg
        ) from None
    except UnicodeError:
        raise ImportRefused("import-not-text", file=source.name, line=1, encoding=encoding) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ImportRefused("import-unreadable", file=source.name, reason=_reason(error)) from error


def csv_rows(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with their line numbers; names and cells without the blanks that pad them.

    Raises:
        ImportRefused: A row has more or fewer cells than the header: the file is cut short or damaged there.
    """
    numbered = lines(source)
    reader = csv.reader(line for _, line in numbered)
    try:
        header = [name.strip() for name in next(reader, [])]
        for cells in reader:
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            if len(cells) != len(header):
                raise ImportRefused(
                    "import-row-cells", file=source.name, line=reader.line_num, cells=len(cells), columns=len(header)
                )
            yield reader.line_num, {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    except csv.Error as error:
        raise ImportRefused("import-unreadable", file=source.name, reason=str(error)) from error


def cell_number(cell: str | None) -> float | None:
    """A cell as a finite number; None where it is empty or no number."""
    try:
        number = float(cell or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
