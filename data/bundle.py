"""Bundles: runs with all their files in one zip, which another LikeForLike opens and merges.

likeforlike-bundle.json   version, and the SHA-256 and size of every other file
runs/<run_id>/…           the run folder's files: record, specification, events, log, annotations, images

A bundle comes from anywhere. So names are matched against what a run folder holds before anything is opened, no byte
beyond the stated size is unpacked, every checksum is compared, and nothing takes its place before all of it is right.
"""

import hashlib
import json
import os
import re
import secrets
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from data.importers.draft import MAX_RUNS, ImportRefused
from data.importers.reading import Source
from runners.errors import RecordError
from runners.records import MAX_RECORD_BYTES, Record, record_from_json, record_to_json
from runners.rundir import RunDir, find_run

MANIFEST = "likeforlike-bundle.json"
VERSION = 1
MAX_FILES = 200_000
MAX_TOTAL_BYTES = 4 * 2**30
MAX_MANIFEST_BYTES = 64 * 2**20
MAX_RATIO = 200
"""Unpacked bytes for each packed one; records and logs reach 30."""
SMALL_BYTES = 2**20
"""Below this the ratio means nothing: an empty log packs well."""
CHUNK_BYTES = 2**20
_RUN_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILES = r"(?:record|spec|annotations)\.json|events\.jsonl|log\.txt"
_MADE = r"(?:images|series|tensorboard)(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,120}){1,3}"
NAME = re.compile(rf"runs/({_RUN_ID})/({_FILES}|{_MADE})")
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    IndexError,
    OverflowError,
    struct.error,
)
"""What zipfile says of damaged, encrypted or oddly packed files."""


@dataclass(frozen=True)
class BundledRun:
    """One run of a bundle."""

    run_id: str
    record: Record


def write(run_ids: Iterable[str], runs_dir: Path, target: Path) -> int:
    """Writes a bundle of finished runs; the same runs always make the same bytes.

    Args:
        run_ids: The runs.
        runs_dir: Where their folders are.
        target: The zip file; replaced where it exists.

    Returns:
        The number of runs.

    Raises:
        RecordError: There is no such run, or its record cannot be read.
        OSError: The file cannot be written.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    manifest: dict[str, Any] = {"version": VERSION, "files": {}}
    count = 0
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            for run_id in sorted(set(run_ids)):
                run = find_run(runs_dir, run_id)
                run.record()
                for path in _run_files(run):
                    name = f"runs/{run.run_id}/{path.relative_to(run.path).as_posix()}"
                    manifest["files"][name] = _add(archive, name, path)
                count += 1
            archive.writestr(_entry(MANIFEST), json.dumps(manifest, indent=1))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def read(source: Source) -> list[BundledRun]:
    """Checks every file of a bundle and reads its records; writes nothing.

    Raises:
        ImportRefused: It is damaged, unsafe, of a later version, or a checksum does not fit; the message says which.
    """
    with _opened(source) as (archive, manifest):
        runs = []
        for info in _entries(source, archive, manifest):
            match = NAME.fullmatch(info.filename)
            is_record = match is not None and match[2] == "record.json"
            if is_record and info.file_size > MAX_RECORD_BYTES:
                raise ImportRefused("bundle-too-large", file=source.name, entry=info.filename)
            data = (
                b"".join(_verified(source, archive, info, manifest))
                if is_record
                else _drained(_verified(source, archive, info, manifest))
            )
            if match is not None and is_record:
                runs.append(BundledRun(match[1], _record(source, info.filename, match[1], data)))
        _complete(source, archive, {run.run_id for run in runs})
    if not runs:
        raise ImportRefused("bundle-empty", file=source.name)
    return runs


def extract(source: Source, folder: Path, run_ids: set[str]) -> None:
    """Unpacks some runs of a bundle into a folder, checking again what is written.

    Raises:
        ImportRefused: As `read`.
        OSError: The folder cannot be written.
    """
    with _opened(source) as (archive, manifest):
        for info in _entries(source, archive, manifest):
            match = NAME.fullmatch(info.filename)
            if match is None or match[1] not in run_ids:
                continue
            path = folder / match[1] / match[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                for chunk in _verified(source, archive, info, manifest):
                    file.write(chunk)


def same_record(run: RunDir, record: Record) -> bool:
    """Whether a run folder holds exactly that record."""
    try:
        return record_to_json(run.record()) == record_to_json(record)
    except RecordError:
        return False


def _run_files(run: RunDir) -> list[Path]:
    """What belongs into a bundle: regular files under the names of a run folder; never a link."""
    found = []
    for folder, names, files in os.walk(run.path):
        names[:] = [name for name in names if not (Path(folder) / name).is_symlink()]
        for name in files:
            path = Path(folder) / name
            inside = f"runs/{run.run_id}/{path.relative_to(run.path).as_posix()}"
            if NAME.fullmatch(inside) and stat.S_ISREG(path.lstat().st_mode):
                found.append(path)
    return sorted(found)


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)  # dated 1980: the time of packing would make equal bundles differ
    info.compress_type = zipfile.ZIP_STORED if name.endswith((".png", ".parquet")) else zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> dict[str, Any]:
    digest, size_bytes = hashlib.sha256(), 0
    with path.open("rb") as file, archive.open(_entry(name), "w", force_zip64=True) as packed:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size_bytes += len(chunk)
            packed.write(chunk)
    return {"sha256": digest.hexdigest(), "bytes": size_bytes}


@contextmanager
def _opened(source: Source) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    with _damage_named(source):
        archive = zipfile.ZipFile(source.path)
    with archive:
        with _damage_named(source):
            manifest = _manifest(source, archive)
        yield archive, manifest


@contextmanager
def _damage_named(source: Source) -> Iterator[None]:
    """Nothing but reading the zip may happen inside: an OSError there is a damaged offset."""
    try:
        yield
    except (*_DAMAGE, OSError) as error:
        reason = str(error) or type(error).__name__
        raise ImportRefused("bundle-damaged", file=source.name, reason=reason[:300]) from error


def _manifest(source: Source, archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        info = archive.getinfo(MANIFEST)
    except KeyError:
        raise ImportRefused("bundle-foreign", file=source.name, manifest=MANIFEST) from None
    if info.file_size > MAX_MANIFEST_BYTES:
        raise ImportRefused("bundle-too-large", file=source.name, entry=MANIFEST)
    with archive.open(info) as file:
        document: Any = json.loads(file.read(MAX_MANIFEST_BYTES))
    version = document.get("version") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ImportRefused("bundle-foreign", file=source.name, manifest=MANIFEST)
    if version > VERSION:
        raise ImportRefused("bundle-from-future", file=source.name, version=version, supported=VERSION)
    if not isinstance(document.get("files"), dict):
        raise ImportRefused("bundle-foreign", file=source.name, manifest=MANIFEST)
    return {"files": document["files"]}


def _entries(source: Source, archive: zipfile.ZipFile, manifest: dict[str, Any]) -> list[zipfile.ZipInfo]:
    """The files besides the manifest, after a look at all their names and sizes."""
    found, seen, total = [], set(), 0
    for info in archive.infolist():
        if info.filename == MANIFEST:
            if MANIFEST in seen:
                raise ImportRefused("bundle-unsafe", file=source.name, entry=MANIFEST)
            seen.add(MANIFEST)
            continue
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not NAME.fullmatch(info.filename) or info.filename in seen or kind not in (0, stat.S_IFREG):
            raise ImportRefused("bundle-unsafe", file=source.name, entry=info.filename[:200])
        seen.add(info.filename)
        total += info.file_size
        bomb = info.file_size > SMALL_BYTES and info.file_size > MAX_RATIO * max(1, info.compress_size)
        if bomb or total > MAX_TOTAL_BYTES or len(seen) > MAX_FILES:
            raise ImportRefused("bundle-too-large", file=source.name, entry=info.filename)
        found.append(info)
    missing = sorted(set(manifest["files"]) - seen)
    if missing:
        raise ImportRefused("bundle-incomplete", file=source.name, entry=str(missing[0])[:200])
    return found


def _verified(
    source: Source, archive: zipfile.ZipFile, info: zipfile.ZipInfo, manifest: dict[str, Any]
) -> Iterator[bytes]:
    """The bytes of a file, piece by piece; ends with an error where they are not those that the manifest states."""
    stated = manifest["files"].get(info.filename)
    if not isinstance(stated, dict):
        raise ImportRefused("bundle-checksum", file=source.name, entry=info.filename)
    digest, size_bytes = hashlib.sha256(), 0
    with _damage_named(source):
        file = archive.open(info)
    with file:
        while chunk := _piece(source, file):
            size_bytes += len(chunk)
            if size_bytes > info.file_size:
                raise ImportRefused("bundle-too-large", file=source.name, entry=info.filename)
            digest.update(chunk)
            yield chunk
    if digest.hexdigest() != stated.get("sha256") or size_bytes != stated.get("bytes"):
        raise ImportRefused("bundle-checksum", file=source.name, entry=info.filename)


def _piece(source: Source, file: IO[bytes]) -> bytes:
    with _damage_named(source):
        return file.read(CHUNK_BYTES)


def _drained(chunks: Iterator[bytes]) -> bytes:
    for _ in chunks:
        pass
    return b""


def _record(source: Source, name: str, run_id: str, data: bytes) -> Record:
    try:
        record = record_from_json(json.loads(data), name)
    except (ValueError, RecursionError) as error:
        raise ImportRefused("bundle-record", file=source.name, entry=name, reason=str(error)[:300]) from error
    except RecordError as error:
        raise ImportRefused("bundle-record", file=source.name, entry=name, reason=str(error)[:300]) from error
    if record.run_id != run_id:
        raise ImportRefused("bundle-record", file=source.name, entry=name, reason=f"run_id {record.run_id!r:.60}")
    return record


def _complete(source: Source, archive: zipfile.ZipFile, run_ids: set[str]) -> None:
    """Every folder has a record, and there are not more than anybody looks through."""
    for name in archive.namelist():
        match = NAME.fullmatch(name)
        if match is not None and match[1] not in run_ids:
            raise ImportRefused("bundle-incomplete", file=source.name, entry=f"runs/{match[1]}/record.json")
    if len(run_ids) > MAX_RUNS * 10:
        raise ImportRefused("import-too-many-runs", file=source.name, count=len(run_ids), maximum=MAX_RUNS * 10)
