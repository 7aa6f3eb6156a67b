"""Command and snippet make the very same pixels, each in a fresh process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from runners.queue import RunQueue, wait_for_record
from runners.records import Record
from runners.reproduce import python_snippet, shell_command
from runners.rundir import RunDir, list_runs

PROJECT = Path(__file__).resolve().parent.parent
TRICKY = 'a "red" fish\'s $HOME `id` \\n;\n-- on 🐱 a {blue} %s background!'


def make(tmp_path: Path, **fields: object) -> tuple[RunDir, Record]:
    queue = RunQueue(tmp_path / "runs")
    run_dir = queue.submit("text-to-image", {"prompt": TRICKY, "steps": 2, **fields}, source="benchmarks")
    wait_for_record(queue, run_dir)
    record = run_dir.record()
    assert record.status == "ok", record.error
    return run_dir, record


def same_pixels(first: Path, second: Path) -> bool:
    with Image.open(first) as a, Image.open(second) as b:
        return a.size == b.size and ImageChops.difference(a.convert("RGB"), b.convert("RGB")).getbbox() is None


def test_the_command_makes_the_same_images(tmp_path: Path) -> None:
    run_dir, record = make(tmp_path, images=2, batch_size=2, seed=5, negative_prompt="-x --set", scheduler="DPM++ 2M")
    command = shell_command(record).replace("python", sys.executable, 1)
    again = tmp_path / "again"
    # Through a shell, as a person pastes it.
    finished = subprocess.run(
        ["sh", "-c", f"{command} --runs-dir {again}"], cwd=PROJECT, capture_output=True, text=True, timeout=200
    )
    assert finished.returncode == 0, finished.stderr
    [other] = list_runs(again)
    assert other.record().spec == record.spec
    for name in ("000.png", "001.png"):
        assert same_pixels(run_dir.images_dir / name, other.images_dir / name)
    assert not same_pixels(run_dir.images_dir / "000.png", run_dir.images_dir / "001.png")


@pytest.mark.parametrize("scheduler", ["DDIM", "PNDM", "Euler", "DPM++ 2M"])
def test_the_snippet_makes_the_same_image(tmp_path: Path, scheduler: str) -> None:
    fields = {"images": 4, "batch_size": 2, "seed": 11, "negative_prompt": 'no "circles"', "scheduler": scheduler}
    run_dir, record = make(tmp_path, **fields)
    snippet = python_snippet(record, 3)
    assert snippet is not None
    assert "runners" not in snippet, "it needs nothing of this project"
    snippet = snippet.replace("'data/models/bundled'", repr(str(PROJECT / "data/models/bundled")))
    (tmp_path / "snippet.py").write_text(snippet, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": ""}
    finished = subprocess.run(
        [sys.executable, "snippet.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
    )
    assert finished.returncode == 0, finished.stderr
    assert same_pixels(run_dir.images_dir / "003.png", tmp_path / "image.png")


def test_there_is_no_snippet_where_it_would_make_another_image(tmp_path: Path) -> None:
    _, record = make(tmp_path)
    import dataclasses

    random_weights = dataclasses.replace(record, spec={**record.spec, "weights": "architecture"})
    assert python_snippet(random_weights) is None
    gaudi = dataclasses.replace(record, device=dataclasses.replace(record.device, kind="hpu"))
    assert python_snippet(gaudi) is None
