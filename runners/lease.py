"""One accelerator, one owner: an operating-system lock per device in a per-machine folder.

The kernel frees the lock when its holder dies, however it dies, so there is nothing to clean up. What the file says
about the holder is for messages only; the lock itself decides. Whoever waits for a device holds a second lock beside
the first, shared with others who wait: there a holder that could give the device up, as an idle generation worker can,
sees that it is wanted.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from runners.errors import DeviceBusy, DeviceUnavailable
from runners.paths import lease_dir

POLL_S = 0.1


class Lease:
    """A device that this process holds, until `release` or the end of a `with` block."""

    def __init__(self, device: str, descriptor: int | None, folder: Path) -> None:
        """Made by `take`."""
        self.device = device
        self._descriptor = descriptor
        self._folder = folder

    def wanted(self) -> bool:
        """Whether another process waits for the device."""
        if self._descriptor is None:
            return False
        try:
            descriptor = _open(self._folder, f"{self.device}.wanted")
        except DeviceUnavailable:
            return False
        try:
            return not _locked(descriptor, fcntl.LOCK_EX)
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Gives the device up; a second call changes nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Nothing more to do: it is held since `take`."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Releases it."""
        self.release()


def take(
    device: str, purpose: str, folder: Path | None = None, *, waiting: Callable[[str], None] | None = None
) -> Lease:
    """Takes a device, in this process and its children that inherit the descriptor.

    Args:
        device: Kind and index, such as "cuda-0"; "none" needs no lease.
        purpose: What for, shown to whoever finds the device busy.
        folder: Where the locks are; the machine's shared folder when None.
        waiting: Called ten times a second with the holder's description while another process has the device; it ends
            the wait by raising. When None, nobody waits.

    Raises:
        DeviceBusy: Another process holds it; the message names its id and purpose.
        DeviceUnavailable: The folder of locks cannot be used.
    """
    where = folder or lease_dir()
    if device.startswith("none"):
        return Lease(device, None, where)
    descriptor = _open(where, f"{device}.lock")
    try:
        if not _locked(descriptor, fcntl.LOCK_EX):
            if waiting is None:
                raise DeviceBusy("device-busy", device=device, holder=_holder(descriptor))
            _wait(descriptor, where, device, waiting)
        _describe(descriptor, purpose)
    except BaseException:
        os.close(descriptor)
        raise
    return Lease(device, descriptor, where)


def holder_of(device: str, folder: Path | None = None) -> str | None:
    """Who holds a device now, in words, or None where nobody does.

    Raises:
        DeviceUnavailable: The folder of locks cannot be used.
    """
    if device.startswith("none"):
        return None
    descriptor = _open(folder or lease_dir(), f"{device}.lock")
    try:
        return None if _locked(descriptor, fcntl.LOCK_SH) else _holder(descriptor)
    finally:
        os.close(descriptor)


def lease_name(kind: str, index: int = 0) -> str:
    """The lock's name. ROCm devices are torch's cuda devices, so both names mean one lock."""
    return f"{'cuda' if kind == 'rocm' else kind}-{index}"


def _wait(descriptor: int, folder: Path, device: str, waiting: Callable[[str], None]) -> None:
    wanted = _open(folder, f"{device}.wanted")
    try:
        while True:
            # Shared, since several may wait. A holder that looks at this moment makes it fail once; then try again.
            _locked(wanted, fcntl.LOCK_SH)
            if _locked(descriptor, fcntl.LOCK_EX):
                return
            waiting(_holder(descriptor))
            time.sleep(POLL_S)
    finally:
        os.close(wanted)


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(folder: Path, name: str) -> int:
    """Opens a lock file below a folder that is one, and no link to one: everybody may write in /tmp."""
    no_link = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            # Shared by all users of the machine, like /tmp itself: each may add a lock, nobody remove another's.
            folder.chmod(0o1777)
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | no_link)
        try:
            return _open_lock(directory, name, no_link)
        finally:
            os.close(directory)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DeviceUnavailable("leases-unusable", path=str(folder), reason=reason) from error


def _open_lock(directory: int, name: str, no_link: int) -> int:
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | no_link, 0o666, dir_fd=directory)
    except PermissionError:
        # Another user's file: one that we may only read can still be locked.
        return os.open(name, os.O_RDONLY | no_link, dir_fd=directory)
    with suppress(OSError):
        os.fchmod(descriptor, 0o666)  # whatever our umask is, other users must be able to lock it
    return descriptor


def _describe(descriptor: int, purpose: str) -> None:
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "purpose": purpose}).encode(), 0)


def _holder(descriptor: int) -> str:
    with suppress(OSError, ValueError, TypeError, KeyError):
        document = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {int(document['pid'])} ({document['purpose']})"
    return "another process"
