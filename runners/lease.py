"""One accelerator, one owner: an operating-system lock per device in a per-machine folder.

The kernel frees the lock when its holder dies, however it dies, so there is nothing to clean up. What the file says
about the holder is for messages only; the lock itself decides.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runners.errors import DeviceBusy
from runners.paths import lease_dir


@contextmanager
def lease(device: str, purpose: str, folder: Path | None = None) -> Iterator[None]:
    """Holds a device for the length of a `with` block, in this process and its children that inherit the descriptor.

    Args:
        device: Kind and index, such as "cuda-0"; "none" needs no lease.
        purpose: What for, shown to whoever finds the device busy.
        folder: Where the locks are; the machine's shared folder when None.

    Raises:
        DeviceBusy: Another process holds it; the message names its id and purpose.
    """
    if device.startswith("none"):
        yield
        return
    descriptor = _open(folder or lease_dir(), device)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DeviceBusy("device-busy", device=device, holder=_holder(descriptor)) from None
        _describe(descriptor, purpose)
        yield
    finally:
        os.close(descriptor)


def lease_name(kind: str, index: int = 0) -> str:
    """The lock's name. ROCm devices are torch's cuda devices, so both names mean one lock."""
    return f"{'cuda' if kind == 'rocm' else kind}-{index}"


def _open(folder: Path, device: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(PermissionError):
        # Shared by all users of the machine, like /tmp itself; only the creator may change the mode.
        folder.chmod(0o1777)
    path = folder / f"{device}.lock"
    # O_NOFOLLOW: in a folder that everybody may write, a link would let another user aim our writes elsewhere.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except PermissionError:
        # Another user's file: a shared lock file that we may only read can still be locked.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _describe(descriptor: int, purpose: str) -> None:
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "purpose": purpose}).encode(), 0)
        os.fchmod(descriptor, 0o666)


def _holder(descriptor: int) -> str:
    with suppress(OSError, ValueError, TypeError, KeyError):
        document = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {int(document['pid'])} ({document['purpose']})"
    return "another process"
