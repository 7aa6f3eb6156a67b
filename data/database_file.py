"""The database's file: whether it is ours to move, and moving it out of the way; nothing here opens it."""

import re
import time
from pathlib import Path

from data.errors import StoreBusy, StoreError
from runners.paths import database_path

MAGIC_OFFSET, MAGIC = 8, b"DUCK"
"""Every file of DuckDB has these bytes there."""


def check_place(path: Path) -> None:
    """Makes the folder of a database that is about to be opened.

    Raises:
        StoreError: No database can be there.
    """
    try:
        str(path).encode()  # The database takes paths as UTF-8 only, and says so with a C++ exception.
        path.parent.mkdir(parents=True, exist_ok=True)
        usable = path.is_file() or not path.exists()
    except (OSError, ValueError) as error:
        raise StoreError("store-unwritable", path=str(path), reason=str(error)) from error
    if not usable:
        raise StoreError("store-unwritable", path=str(path), reason="it is not a regular file")


def raise_if_busy(path: Path, reason: str) -> None:
    """Raises `StoreBusy` where the database says that another process holds the file."""
    if "Could not set lock" in reason:
        holder = re.search(r"\(PID (\d+)\)", reason)
        raise StoreBusy("store-busy", path=str(path), pid=int(holder[1]) if holder else "unknown")


def set_aside(path: Path, reason: str) -> Path:
    """Moves a broken database, with its log of changes, out of the way, and says where to.

    Args:
        path: The file; nobody may have it open.
        reason: What the database says about it.

    Raises:
        StoreError: The file is not what is wrong, or it is not ours: somebody may have named it by mistake.
    """
    if "No space" in reason or not path.is_file():
        raise StoreError("store-unwritable", path=str(path), reason=reason)
    try:
        if not _may_be_ours(path):
            raise StoreError("store-foreign", path=str(path))
        moved = _free_name(path)
        path.replace(moved)
        log = path.with_name(path.name + ".wal")
        if log.exists():
            log.replace(moved.with_name(moved.name + ".wal"))
    except OSError as error:
        raise StoreError("store-unwritable", path=str(path), reason=str(error)) from error
    return moved


def _may_be_ours(path: Path) -> bool:
    with path.open("r+b") as file:  # For writing too: a file that may only be read is not broken.
        start = file.read(MAGIC_OFFSET + len(MAGIC))
    return not start or start[MAGIC_OFFSET:] == MAGIC or path.absolute() == database_path().absolute()


def _free_name(path: Path) -> Path:
    name = f"{path.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}"
    number = 1
    while (moved := path.with_name(name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return moved
