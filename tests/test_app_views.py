"""Each page, empty and full, driven through Streamlit's AppTest on real run folders and the real store."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from runners.paths import runs_dir
from runners.records import (
    Artifact,
    Audit,
    Conditions,
    DeviceInfo,
    ErrorInfo,
    Metric,
    Phase,
    Record,
    Series,
)
from runners.rundir import RunDir, create_run, sha256_of, utc_now
from runners.specs import TextToImageSpec
from runners.stats import rate_metrics

ENTRY = Path(__file__).resolve().parent.parent / "streamlit_app.py"
PLAYGROUND, EXPLORER = "app/views/playground.py", "app/views/explorer.py"
DEVICE = DeviceInfo(kind="cuda", name="NVIDIA H200", memory_bytes=150_000_000_000)

LIKE_THE_ARTICLE = Conditions(
    workload="text-to-image",
    model="stable-diffusion-1",
    weights="architecture",
    width_px=512,
    height_px=512,
    steps=50,
    scheduler="DDIM",
    guidance=7.5,
    batch_size_per_device=8,
    devices=1,
    precision="bf16",
    warmup_rule="first-2-batches-dropped",
    software="diffusers 0.42.1, torch 2.13.0",
    software_year=2026,
)


def make_image_run(prompt: str, *, conditions: Conditions = LIKE_THE_ARTICLE, batches: int = 7) -> RunDir:
    """A run with one image and a record as the text-to-image workload leaves it; the seconds are made up."""
    run = create_run(runs_dir(), "text-to-image", {"prompt": prompt, "seed": 7}, source="playground")
    run.images_dir.mkdir()
    path = run.images_dir / "000.png"
    Image.new("RGB", (64, 64), "firebrick").save(path)
    seconds = [3.9 + 0.02 * number for number in range(batches)]
    size = conditions.batch_size_per_device or 1
    spec = dataclasses.asdict(TextToImageSpec(prompt=prompt, seed=7, steps=conditions.steps, batch_size=size))
    finish(
        run,
        "ok",
        spec=spec,
        conditions=conditions,
        metrics=(
            *rate_metrics("image", "images/s", seconds, size, "denoise+vae"),
            *rate_metrics("image", "images/s", [value + 0.4 for value in seconds], size, "end-to-end"),
        ),
        series=(
            Series(name="denoise_vae_s", unit="s", phase="measured", values=tuple(seconds)),
            Series(name="denoising_s", unit="s", phase="measured", values=tuple(value - 0.5 for value in seconds)),
            Series(name="vae_s", unit="s", phase="measured", values=(0.5,) * batches),
        ),
        artifacts=(Artifact(path="images/000.png", kind="image", sha256=sha256_of(path)),),
        details={"seeds": [7], "safety_checker": False},
    )
    return run


def make_failed_run(status: str, message_id: str, **params: object) -> RunDir:
    """A run that did not end well."""
    run = create_run(runs_dir(), "synthetic", {"steps": 20}, source="cli")
    error = ErrorInfo(
        type="WorkloadFailed",
        message_id=message_id,
        params=params,
        message="in English",
        log_tail="line one of the log\nline two",
    )
    finish(run, status, spec={"steps": 20}, conditions=Conditions(workload="synthetic"), error=error)
    return run


def finish(run: RunDir, status: Any, **values: Any) -> None:
    request = run.request()
    run.write_record(
        Record(
            run_id=run.run_id,
            workload=request.workload,
            status=status,
            device=DEVICE,
            environment={"os": "Linux", "packages": {"torch": "2.13.0"}},
            created_utc=request.created_utc,
            finished_utc=utc_now(),
            phases=(Phase(name="load", duration_s=1.25),),
            audit=Audit(sync_policy="after every batch", warnings=("too-few-samples",)),
            **values,
        )
    )
