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

from runners.errors import DeviceBusy, DeviceUnavailable
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
        DeviceUnavailable: The folder of locks cannot be used.
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
    """Opens the lock file below a folder that is one, and no link to one: everybody may write in /tmp."""
    no_link = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            # Shared by all users of the machine, like /tmp itself: each may add a lock, nobody remove another's.
            folder.chmod(0o1777)
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | no_link)
        try:
            return _open_lock(directory, f"{device}.lock", no_link)
        finally:
            os.close(directory)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DeviceUnavailable("leases-unusable", path=str(folder), reason=reason) from error


def _open_lock(directory: int, name: str, no_link: int) -> int:
    try:
        return os.open(name, os.O_RDWR | os.O_CREAT | no_link, 0o666, dir_fd=directory)
    except PermissionError:
        # Another user's file: one that we may only read can still be locked.
        return os.open(name, os.O_RDONLY | no_link, dir_fd=directory)


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
