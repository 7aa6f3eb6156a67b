"""The formats in which runs are handed out, by the end of a file's name."""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from data import bundle
from data.exports import tables
from data.exports.markdown import to_markdown
from data.exports.report import to_html
from data.exports.selection import ChosenRun, ExportError

Writer = Callable[[Sequence[ChosenRun]], bytes]
WRITERS: Mapping[str, Writer] = {
    ".csv": tables.to_csv,
    ".parquet": tables.to_parquet,
    ".json": tables.to_json,
    ".html": lambda runs: to_html(runs).encode(),
    ".md": lambda runs: to_markdown(runs).encode(),
}
BUNDLE = ".zip"
SUFFIXES = (BUNDLE, *WRITERS)


def write(runs: Sequence[ChosenRun], target: Path, runs_dir: Path) -> None:
    """Writes runs into a file, in the format that its name ends with; whole, or not at all.

    Raises:
        ExportError: The name ends with no format, or the file cannot be written.
        RecordError: A record cannot be read any more.
    """
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ExportError("export-format", suffix=suffix or target.name, known=", ".join(SUFFIXES))
    try:
        if suffix == BUNDLE:
            bundle.write([run.run.run_id for run in runs], runs_dir, target)
            return
        content = WRITERS[suffix](runs)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.write_bytes(content)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError("export-unwritable", path=str(target), reason=reason) from error
