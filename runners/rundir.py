"""The run folder: everything about one run, as files that any process may read while it goes on.

<runs_dir>/<run_id>/
    spec.json          workload, preset, fields, when and from where it was asked for
    events.jsonl       progress, samples, phases; one JSON object a line, appended
    log.txt            what the run's process printed
    preview.png        the newest preview, replaced as it goes (absent where there is none)
    images/000.png     results
    record.json        written once, at the end, atomically
    annotations.json   what people add: note, tags, favourite, deleted
    cancel             its presence asks the run to stop
    alive              locked by the process that carries the run out
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from runners.errors import RecordError, SpecError
from runners.records import Record, new_run_id, read_record, record_to_json, write_json_atomically
from runners.reserve import give_up_reserve, is_disk_full

MAX_SPEC_BYTES = 1_000_000
MAX_LOG_TAIL_BYTES = 4_000
_UUID_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def utc_now() -> str:
    """The time as ISO 8601 in UTC with milliseconds and a trailing Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `spec.json` holds: what was asked for, before anything was resolved against a device."""

    run_id: str
    workload: str
    fields: dict[str, Any]
    preset: str | None = None
    created_utc: str
    source: str = "cli"
    """cli, playground, benchmarks."""
    group_id: str | None = None
    repeat: int = 0
    timeout_s: float | None = None


class RunDir:
    """One run's folder. Holds no open files; cheap to make."""

    def __init__(self, path: Path) -> None:
        """Takes the folder; nothing is read yet."""
        self.path = path

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def log_path(self) -> Path:
        """Where the run's process prints to."""
        return self.path / "log.txt"

    @property
    def preview_path(self) -> Path:
        """The newest preview."""
        return self.path / "preview.png"

    @property
    def images_dir(self) -> Path:
        """Where result images go."""
        return self.path / "images"

    @property
    def record_path(self) -> Path:
        """The final record."""
        return self.path / "record.json"

    def request(self) -> Request:
        """What was asked for.

        Raises:
            SpecError: `spec.json` is missing, too large, cut short or not a request.
        """
        path = self.path / "spec.json"
        try:
            if not path.is_file():
                # A named pipe would be waited for without end.
                raise FileNotFoundError("it is missing or not a file")
            size_bytes = path.stat().st_size
            if size_bytes > MAX_SPEC_BYTES:
                raise SpecError("spec-too-large", path=str(path), size_bytes=size_bytes, maximum_bytes=MAX_SPEC_BYTES)
            document = json.loads(path.read_text(encoding="utf-8"))
            request = Request(**document)
            if not isinstance(request.fields, dict) or not isinstance(request.workload, str):
                raise TypeError("fields or workload is of another type")
            return request
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise SpecError("spec-unreadable", path=str(path), reason=str(error)) from error

    def append_event(self, kind: str, **values: object) -> None:
        """Appends one line to `events.jsonl`; readers see whole lines, since one write call makes each."""
        line = json.dumps({"t": utc_now(), "kind": kind, **values}, ensure_ascii=False)
        try:
            with (self.path / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as problem:
            # Without its progress the run can go on; its result may find room again.
            if not is_disk_full(problem):
                raise

    def events(self) -> Iterator[dict[str, Any]]:
        """The events so far; a last line that is still being written is left out."""
        path = self.path / "events.jsonl"
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        except OSError:
            return
        for line in text.splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event

    def latest_event(self, kind: str) -> dict[str, Any] | None:
        """The last event of that kind, or None."""
        latest = None
        for event in self.events():
            if event.get("kind") == kind:
                latest = event
        return latest

    def log_tail(self) -> str:
        """The end of what the process printed, at most 4,000 bytes."""
        try:
            with self.log_path.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - MAX_LOG_TAIL_BYTES))
                return file.read().decode("utf-8", errors="replace")
        except OSError:
            return ""

    def has_record(self) -> bool:
        """Whether the run has ended."""
        return self.record_path.exists()

    def record(self) -> Record:
        """The final record.

        Raises:
            RecordError: It is missing or cannot be read.
        """
        return read_record(self.record_path)

    def write_record(self, record: Record) -> None:
        """Writes the final record; a run has exactly one, so a second call changes nothing.

        Raises:
            OSError: It cannot be written, not even into the disk space that is set aside for it.
        """
        if self.has_record():
            return
        document = record_to_json(record)
        try:
            write_json_atomically(self.record_path, document)
        except OSError as problem:
            if not give_up_reserve(self.path.parent, problem):
                raise
            write_json_atomically(self.record_path, document)

    def ask_to_cancel(self) -> None:
        """Asks the run to stop at its next step."""
        (self.path / "cancel").touch()

    def cancel_asked(self) -> bool:
        """Whether somebody asked the run to stop."""
        return (self.path / "cancel").exists()

    def hold(self) -> IO[str]:
        """Marks the run as alive until the returned file is closed, by a lock that the kernel frees at any death.

        Whoever keeps the run waiting holds it, and so does the process that carries it out; the lock is shared.
        """
        file = (self.path / "alive").open("a")
        fcntl.flock(file, fcntl.LOCK_SH)
        return file

    def age_s(self) -> float:
        """Seconds since the folder's request was written."""
        return time.time() - (self.path / "spec.json").stat().st_mtime

    def is_alive(self) -> bool:
        """Whether a process carries the run out or keeps it waiting; a reused process id deceives nobody."""
        try:
            with (self.path / "alive").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    def annotations(self) -> dict[str, Any]:
        """What people added: note, tags, favourite, deleted. Empty when there is nothing, or it cannot be read."""
        try:
            document = json.loads((self.path / "annotations.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def annotate(self, **changes: object) -> None:
        """Changes some annotations and keeps the others."""
        write_json_atomically(self.path / "annotations.json", {**self.annotations(), **changes})


def create_run(
    runs_dir: Path,
    workload: str,
    fields: dict[str, Any],
    *,
    preset: str | None = None,
    source: str = "cli",
    timeout_s: float | None = None,
    group_id: str | None = None,
    repeat: int = 0,
    announce: Callable[[str], object] = lambda _run_id: None,
) -> RunDir:
    """Makes a run folder with its `spec.json`; it appears whole, under its final name, or not at all.

    Args:
        runs_dir: Where run folders live; made if it is missing.
        workload: The workload's name.
        fields: The specification's fields, as JSON types.
        preset: The preset they came from, for the record.
        source: Who asked: cli, playground or benchmarks.
        timeout_s: When to stop the run, in seconds; None for never.
        group_id: What several runs have in common, such as a sweep.
        repeat: Which repetition of the same specification, from 0.
        announce: Called with the run's id just before the folder appears.

    Raises:
        SpecError: The folder cannot be written.
    """
    run_id = new_run_id()
    path, hidden = runs_dir / run_id, runs_dir / f".new-{run_id}"
    request = Request(
        run_id=run_id,
        workload=workload,
        fields=fields,
        preset=preset,
        created_utc=utc_now(),
        source=source,
        timeout_s=timeout_s,
        group_id=group_id,
        repeat=repeat,
    )
    try:
        hidden.mkdir(parents=True)
        write_json_atomically(hidden / "spec.json", asdict(request))
        announce(run_id)
        hidden.rename(path)
    except (OSError, ValueError) as error:
        # ValueError: a null byte in the path, or text that the file system cannot encode.
        with suppress(OSError, ValueError):
            shutil.rmtree(hidden)
        raise SpecError(
            "runs-dir-unwritable", path=str(runs_dir), reason=getattr(error, "strerror", None) or str(error)
        ) from error
    return RunDir(path)


def find_run(runs_dir: Path, run_id: str) -> RunDir:
    """The folder of one run.

    Raises:
        RecordError: The id is not a UUID (so that no text becomes a path), or there is no such folder.
    """
    try:
        name = str(UUID(run_id))
    except ValueError:
        raise RecordError("run-folder-missing", path=run_id) from None
    path = runs_dir / name
    if path.is_symlink() or not path.is_dir():
        raise RecordError("run-folder-missing", path=str(path))
    return RunDir(path)


def list_runs(runs_dir: Path) -> list[RunDir]:
    """All run folders, oldest first; anything whose name is not a UUID, and any symbolic link, is left out."""
    try:
        with os.scandir(runs_dir) as entries:
            names = sorted(entry.name for entry in entries if is_run_folder(entry))
    except (OSError, ValueError):
        return []
    return [RunDir(runs_dir / name) for name in names]


def has_runs(runs_dir: Path) -> bool:
    """Whether there is any run folder."""
    try:
        with os.scandir(runs_dir) as entries:
            return any(is_run_folder(entry) for entry in entries)
    except (OSError, ValueError):
        return False


def is_run_folder(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry of the folder of runs is one: named by a UUID, a folder, and no link to one."""
    return _UUID_NAME.fullmatch(entry.name) is not None and entry.is_dir(follow_symlinks=False)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
