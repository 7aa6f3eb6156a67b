"""Our Gaudi path through the real optimum-habana 1.21.2, only `habana_frameworks` made up; see tests/gaudi_contract.py.

Needs an interpreter with the Gaudi set of libraries: `make gaudi-test` sets one up and runs these.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from runners.execute import execute
from runners.paths import PROJECT_DIR
from runners.rundir import create_run

pytestmark = pytest.mark.gaudi
FIELDS = {
    "prompt": "a red circle on a white background",
    "precision": "fp32",
    "steps": 5,
    "images": 6,
    "batch_size": 2,
    "warmup_batches": 1,
    "seed": 3,
}


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("LIKEFORLIKE_GAUDI_PYTHON")
    if not found:
        pytest.skip(
            "LIKEFORLIKE_GAUDI_PYTHON names no interpreter with the Gaudi set of libraries; see `make gaudi-test`"
        )
    return found


@pytest.fixture(scope="module")
def seen(python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    runs_dir = tmp_path_factory.mktemp("gaudi") / "runs"
    done = subprocess.run(
        [python, "-m", "tests.gaudi_contract", str(runs_dir), json.dumps({**FIELDS, "device": "hpu"})],
        cwd=PROJECT_DIR,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert document["record"]["status"] == "ok", document["record"]["error"]
    return document


def test_the_pipeline_is_made_for_a_gaudi_with_graphs(seen: dict[str, Any]) -> None:
    assert seen["made"] == [{"use_habana": True, "use_hpu_graphs": True}]


def test_each_batch_is_one_call_of_its_own_size_with_known_arguments(seen: dict[str, Any]) -> None:
    """Padded dummy images count in optimum-habana's throughput, so a call never holds an incomplete batch."""
    calls = seen["called"]
    assert len(calls) >= 3
    assert {call["batch_size"] for call in calls} == {2}
    assert all(call["unknown"] == [] for call in calls)
    assert all(call["throughput"] > 0 for call in calls)


def test_the_record_says_what_ran(seen: dict[str, Any]) -> None:
    record = seen["record"]
    assert (record["device"]["kind"], record["device"]["name"]) == ("hpu", "GAUDI2")
    assert record["device"]["memory_bytes"] == 96 * 2**30
    assert record["conditions"]["software"].startswith("optimum-habana 1.21.2, diffusers 0.35.1")
    assert record["conditions"]["warmup_rule"] == "first-batch-dropped"
    measured = {item["name"]: item for item in record["series"] if item["phase"] == "measured"}
    assert len(measured["denoise_vae_s"]["values"]) == 2
    assert record["details"]["peak_memory_bytes"] == 2 * 2**30


def test_the_published_clock_is_inside_end_to_end(seen: dict[str, Any]) -> None:
    measured = {item["name"]: item["values"] for item in seen["record"]["series"] if item["phase"] == "measured"}
    for inner, outer in zip(measured["denoise_vae_s"], measured["end_to_end_s"], strict=True):
        assert 0 < inner <= outer


def test_the_images_are_those_of_the_cpu(seen: dict[str, Any], tmp_path: Path) -> None:
    """Same seed, same starting noise, other libraries and another scheduler class: the same pictures."""
    here = create_run(tmp_path / "runs", "text-to-image", {**FIELDS, "device": "cpu", "previews": False})
    record = execute(here)
    assert record.details["latents_sha256"] == seen["record"]["details"]["latents_sha256"]
    for number in range(6):
        name = f"images/{number:03d}.png"
        ours, theirs = (np.asarray(Image.open(folder / name), float) for folder in (here.path, Path(seen["folder"])))
        assert np.abs(ours - theirs).mean() < 1.0, name
