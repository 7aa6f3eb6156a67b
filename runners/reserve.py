"""Disk space set aside, given up when the disk is full so that a last record can still be written."""

import errno
import os
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 4 * 2**20
"""A record of an hour of steps has about one megabyte."""


def keep_reserve(runs_dir: Path) -> None:
    """Sets the space aside, where there is room for it and it is not there yet."""
    path = _path(runs_dir)
    with suppress(OSError):
        if path.is_file() and path.stat().st_size == RESERVE_BYTES:
            return
    try:
        # Written, not only allocated, and not compressible: some file systems promise space that they do not have.
        path.write_bytes(os.urandom(RESERVE_BYTES))
    except OSError:
        with suppress(OSError):
            path.unlink()


def give_up_reserve(runs_dir: Path, problem: OSError) -> bool:
    """Frees the space where a write has failed for want of it.

    Returns:
        Whether trying again may help: the problem was a full disk, and there was a reserve.
    """
    if not is_disk_full(problem):
        return False
    try:
        _path(runs_dir).unlink()
    except OSError:
        return False
    return True


def is_disk_full(problem: OSError) -> bool:
    """Whether a write failed because the disk, or the user's share of it, is full."""
    return problem.errno in (errno.ENOSPC, errno.EDQUOT)


def _path(runs_dir: Path) -> Path:
    return runs_dir / ".queue" / "reserve"
