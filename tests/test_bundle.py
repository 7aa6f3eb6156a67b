"""Bundles: out, deleted, in again, equal; and every way in which one can be wrong or hostile."""

import hashlib
import json
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from data import bundle
from data.importers.keep import FileResult, store
from data.importers.plan import make_plan
from data.importers.reading import Source
from data.messages import render
from data.store import Store
from runners.records import Artifact, Conditions, DeviceInfo, Metric, Record, Series
from runners.rundir import RunDir, create_run, list_runs, sha256_of


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def make_run(runs_dir: Path, value: float = 2.5) -> RunDir:
    run = create_run(runs_dir, "text-to-image", {"prompt": "A red circle"})
    run.images_dir.mkdir()
    image = run.images_dir / "000.png"
    Image.new("RGB", (8, 8), (200, 0, 0)).save(image)
    run.append_event("progress", step=1)
    run.log_path.write_text("it ran\n")
    run.annotate(note="kept", tags=["a", "b"])
    record = Record(
        run_id=run.run_id,
        workload="text-to-image",
        status="ok",
        spec={"prompt": "A red circle"},
        conditions=Conditions(workload="text-to-image", model="stable-diffusion-1", width_px=512, height_px=512),
        device=DeviceInfo(kind="cpu", name="A processor"),
        environment={"python": "3.11", "packages": {"torch": "2.13.0"}},
        created_utc="2026-11-30T12:00:00.000Z",
        finished_utc="2026-11-30T12:00:02.000Z",
        series=(Series(name="loss", unit="", phase="measured", values=(2.4, float("nan"), 2.6)),),
        metrics=(Metric(name="s_per_image", value=value, unit="s/image", n=3, higher_is_better=False),),
        artifacts=(Artifact(path="images/000.png", kind="image", sha256=sha256_of(image)),),
    )
    run.write_record(record)
    return run


def take_in(path: Path, runs_dir: Path) -> FileResult:
    [plan] = make_plan([Source(path, path.name)], {}, runs_dir)
    return store(plan, runs_dir)


def contents(runs_dir: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(runs_dir)): path.read_bytes() for path in sorted(runs_dir.rglob("*")) if path.is_file()
    }


def exported(runs_dir: Path, tmp_path: Path, count: int = 2) -> Path:
    runs = [make_run(runs_dir, value=number + 1) for number in range(count)]
    target = tmp_path / "out.zip"
    assert bundle.write([run.run_id for run in runs], runs_dir, target) == count
    return target


def test_out_deleted_in_again_equal(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path)
    (list_runs(runs_dir)[0].path / "cancel").touch()  # not a result
    before = {name: data for name, data in contents(runs_dir).items() if not name.endswith("cancel")}
    with Store(tmp_path / "a.duckdb", runs_dir) as index:
        rows = index.runs().to_dict("records")
    shutil.rmtree(runs_dir)
    result = take_in(target, runs_dir)
    assert result.problem is None and len(result.added) == 2
    assert contents(runs_dir) == before
    with Store(tmp_path / "b.duckdb", runs_dir) as index:
        assert repr(index.runs().to_dict("records")) == repr(rows) and index.problems() == []


def test_the_same_runs_make_the_same_bytes(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path)
    ids = [run.run_id for run in list_runs(runs_dir)]
    bundle.write(reversed(ids), runs_dir, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == target.read_bytes()


def test_merging_adds_only_what_is_not_there(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path)
    gone, kept = list_runs(runs_dir)
    kept.annotate(note="my own")
    shutil.rmtree(gone.path)
    result = take_in(target, runs_dir)
    assert (result.added, result.duplicates) == ((gone.run_id,), (kept.run_id,))
    assert kept.annotations()["note"] == "my own"
    gone.annotate(deleted=True, note="why")
    result = take_in(target, runs_dir)
    assert result.restored == (gone.run_id,)
    assert gone.annotations() == {"note": "why", "tags": ["a", "b"], "deleted": False}


def test_another_content_under_a_known_id_is_refused_whole(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path)
    first, second = list_runs(runs_dir)
    shutil.rmtree(first.path)
    document = json.loads(second.record_path.read_text())
    document["metrics"][0]["value"] = 77.0
    second.record_path.write_text(json.dumps(document))
    result = take_in(target, runs_dir)
    assert result.problem is not None and result.problem[0] == "bundle-conflict"
    assert result.problem[1]["run_id"] == second.run_id
    assert [run.run_id for run in list_runs(runs_dir)] == [second.run_id]


def test_links_and_odd_files_are_not_exported(runs_dir: Path, tmp_path: Path) -> None:
    run = make_run(runs_dir)
    (tmp_path / "secret.txt").write_text("secret")
    (run.images_dir / "link.png").symlink_to(tmp_path / "secret.txt")
    (run.path / "images2").symlink_to(tmp_path)
    (run.path / "core").write_text("x")
    bundle.write([run.run_id], runs_dir, tmp_path / "out.zip")
    names = zipfile.ZipFile(tmp_path / "out.zip").namelist()
    assert {name.rsplit("/", 1)[-1] for name in names} == {
        "annotations.json", "events.jsonl", "000.png", "log.txt", "record.json", "spec.json", bundle.MANIFEST,
    }  # fmt: skip


# Hostile and damaged bundles. Each change gets the good bundle's files, and says what is written instead.

Files = dict[str, bytes]


def rewrite(source: Path, target: Path, change: Callable[[Files], None] | None = None, fix: bool = True) -> None:
    """The bundle anew with changed files; with `fix`, the manifest's checksums are those of the changed files."""
    with zipfile.ZipFile(source) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    if change:
        change(files)
    if fix and bundle.MANIFEST in files:
        listed = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in files.items()
            if name != bundle.MANIFEST
        }
        files[bundle.MANIFEST] = json.dumps({"version": 1, "files": listed}).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def record_name(files: Files) -> str:
    return next(name for name in files if name.endswith("record.json"))


def added(name: str, data: bytes = b"x") -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[name.format(run=record_name(files).split("/")[1])] = data

    return change


def changed(part: str, data: bytes | Callable[[bytes], bytes]) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        name = next(name for name in files if name.endswith(part))
        files[name] = data(files[name]) if callable(data) else data

    return change


def removed(part: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        del files[next(name for name in files if name.endswith(part))]

    return change


@pytest.mark.parametrize(
    ("change", "fix", "message_id"),
    [
        (added("/etc/passwd"), True, "bundle-unsafe"),
        (added("../outside"), True, "bundle-unsafe"),
        (added("runs/../../outside"), True, "bundle-unsafe"),
        (added("runs/{run}/../../../outside"), True, "bundle-unsafe"),
        (added("runs/{run}/images/../../../../outside.png"), True, "bundle-unsafe"),
        (added("runs\\{run}\\record.json"), True, "bundle-unsafe"),
        (added("C:/outside"), True, "bundle-unsafe"),
        (added("runs/{run}/alive"), True, "bundle-unsafe"),
        (added("runs/{run}/cancel"), True, "bundle-unsafe"),
        (added("runs/{run}/images/.hidden"), True, "bundle-unsafe"),
        (added("runs/{run}/images/a/b/c/d/e"), True, "bundle-unsafe"),
        (added("runs/not-a-uuid/record.json"), True, "bundle-unsafe"),
        (added("runs/{run}/images/"), True, "bundle-unsafe"),
        (added("runs/00000000-0000-0000-0000-000000000000/log.txt"), True, "bundle-incomplete"),
        (added("runs/{run}/images/more.png"), False, "bundle-checksum"),
        (changed("log.txt", b"something else"), False, "bundle-checksum"),
        (changed("000.png", lambda data: data[:-1]), False, "bundle-checksum"),
        (removed("log.txt"), False, "bundle-incomplete"),
        (removed("record.json"), True, "bundle-incomplete"),
        (removed(bundle.MANIFEST), False, "bundle-foreign"),
        (changed(bundle.MANIFEST, b'{"version": 2, "files": {}}'), False, "bundle-from-future"),
        (changed(bundle.MANIFEST, b'{"version": true, "files": {}}'), False, "bundle-foreign"),
        (changed(bundle.MANIFEST, b'{"version": 1}'), False, "bundle-foreign"),
        (changed(bundle.MANIFEST, b"[]"), False, "bundle-foreign"),
        (changed(bundle.MANIFEST, b"{"), False, "bundle-damaged"),
        (changed(bundle.MANIFEST, b"[" * 100_000), False, "bundle-damaged"),
        (changed("record.json", b"{}"), True, "bundle-record"),
        (changed("record.json", b"[" * 100_000), True, "bundle-record"),
        (changed("record.json", lambda data: data.replace(b'_version": 1', b'_version": 9')), True, "bundle-record"),
        (changed("record.json", lambda data: data.replace(b"text-to-image", b"\xff\xfe")), True, "bundle-record"),
        (changed("log.txt", bytes(50_000_000)), True, "bundle-too-large"),
    ],
)  # fmt: skip
def test_bad_bundles_are_refused_whole(
    runs_dir: Path, tmp_path: Path, change: Callable[[Files], None], fix: bool, message_id: str
) -> None:
    target = exported(runs_dir, tmp_path)
    shutil.rmtree(runs_dir)
    rewrite(target, tmp_path / "bad.zip", change, fix)
    result = take_in(tmp_path / "bad.zip", runs_dir)
    assert result.problem is not None and result.problem[0] == message_id, result.problem
    assert "{" not in render(*result.problem) or message_id == "bundle-damaged"
    assert not runs_dir.exists() or contents(runs_dir) == {}
    assert not (tmp_path / "outside").exists()


def test_a_record_of_another_run_is_refused(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path)

    def swap(files: Files) -> None:
        names = [name for name in files if name.endswith("record.json")]
        files[names[0]], files[names[1]] = files[names[1]], files[names[0]]

    rewrite(target, tmp_path / "bad.zip", swap)
    assert take_in(tmp_path / "bad.zip", tmp_path / "other").problem[0] == "bundle-record"  # type: ignore[index]


def test_symbolic_links_in_a_bundle_are_refused(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path, count=1)
    run_id = list_runs(runs_dir)[0].run_id
    for mode in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR):
        bad = tmp_path / "bad.zip"
        shutil.copy(target, bad)
        with zipfile.ZipFile(bad, "a") as archive:
            info = zipfile.ZipInfo(f"runs/{run_id}/images/link.png")
            info.external_attr = (mode | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
        assert take_in(bad, tmp_path / "other").problem[0] == "bundle-unsafe"  # type: ignore[index]


def test_a_name_that_stands_twice_is_refused(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path, count=1)
    run_id = list_runs(runs_dir)[0].run_id
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(target, "a") as archive:
        archive.writestr(f"runs/{run_id}/log.txt", "twice")
    assert take_in(target, tmp_path / "other").problem[0] == "bundle-unsafe"  # type: ignore[index]


def test_a_size_that_lies_is_found_while_unpacking(runs_dir: Path, tmp_path: Path) -> None:
    """A bomb that states a small size: not one byte beyond it is taken."""
    target = exported(runs_dir, tmp_path, count=1)
    rewrite(target, tmp_path / "big.zip", changed("log.txt", b"0123456789" * 3000))
    data = (tmp_path / "big.zip").read_bytes()
    lying = data.replace((30_000).to_bytes(4, "little"), (300).to_bytes(4, "little"))
    assert lying != data
    (tmp_path / "bad.zip").write_bytes(lying)
    result = take_in(tmp_path / "bad.zip", tmp_path / "other")
    assert result.problem is not None and result.problem[0] in ("bundle-damaged", "bundle-checksum", "bundle-too-large")


def test_too_many_files_and_bytes(runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = exported(runs_dir, tmp_path)
    monkeypatch.setattr(bundle, "MAX_FILES", 5)
    assert take_in(target, tmp_path / "other").problem[0] == "bundle-too-large"  # type: ignore[index]
    monkeypatch.undo()
    monkeypatch.setattr(bundle, "MAX_TOTAL_BYTES", 100)
    assert take_in(target, tmp_path / "other").problem[0] == "bundle-too-large"  # type: ignore[index]


def test_an_encrypted_or_foreign_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("document.xml", "x")
    assert take_in(tmp_path / "x.zip", tmp_path / "other").problem[0] == "bundle-foreign"  # type: ignore[index]
    with zipfile.ZipFile(tmp_path / "y.zip", "w"):
        pass
    assert take_in(tmp_path / "y.zip", tmp_path / "other").problem[0] == "bundle-foreign"  # type: ignore[index]


def test_an_interrupted_export_leaves_the_old_file(runs_dir: Path, tmp_path: Path) -> None:
    target = exported(runs_dir, tmp_path)
    before = target.read_bytes()
    list_runs(runs_dir)[0].record_path.write_text("{")
    from runners.errors import RecordError

    with pytest.raises(RecordError):
        bundle.write([run.run_id for run in list_runs(runs_dir)], runs_dir, target)
    assert target.read_bytes() == before and [path.name for path in tmp_path.glob(".*.tmp")] == []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_bundles_never_leave_half(tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / "made"
    if not source.exists():
        exported(source, tmp_path, count=1)
    content = bytearray((tmp_path / "out.zip").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] ^= data.draw(st.integers(1, 255))
        else:
            del content[at : at + data.draw(st.integers(1, 200))]
        if not content:
            return
    bad, target = tmp_path / "bad.zip", tmp_path / "target"
    bad.write_bytes(bytes(content))
    shutil.rmtree(target, ignore_errors=True)
    result = take_in(bad, target)
    if result.problem is None:
        assert contents(target) == contents(source)  # only bytes that mean nothing were changed
    else:
        assert not target.exists() or list(target.iterdir()) == []


def test_the_command_round_trips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from data.__main__ import main

    runs_dir = tmp_path / "var" / "runs"
    run = make_run(runs_dir)
    before = contents(runs_dir)

    def call(*arguments: str) -> tuple[int, Any]:
        code = main([*arguments, "--json"])
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    code, document = call("export", "--to", str(tmp_path / "b.zip"))
    assert (code, document["runs"]) == (0, 1)
    shutil.rmtree(runs_dir)
    code, document = call("import", str(tmp_path / "b.zip"))
    assert code == 0 and document["files"][0]["added"] == [run.run_id] and contents(runs_dir) == before
    code, document = call("export", "--to", str(tmp_path / "b.docx"))
    assert (code, document["error"]["message_id"]) == (1, "export-format")
    code, document = call("export", "--status", "lost", "--to", str(tmp_path / "b.zip"))
    assert (code, document["error"]["message_id"]) == (1, "export-nothing")
    code, document = call("export", "--to", str(tmp_path / "missing" / "b.zip"))
    assert (code, document["error"]["message_id"]) == (1, "export-unwritable")
