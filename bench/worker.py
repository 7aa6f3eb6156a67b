"""The generation worker against the same work done directly."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from bench.ratios import Ratio, interleaved
from runners.launch import child_environment
from runners.paths import BUNDLED_MODEL_DIR, PROJECT_DIR
from runners.progress import read_progress
from runners.queue import RunQueue
from runners.queue_files import QueueFiles
from runners.rundir import RunDir
from runners.specs import DEFAULT_GUIDANCE, DEFAULT_STEPS

PROMPT = "a small red fish on a blue background"


def warm_generation() -> Ratio:
    """A warm image through the worker, from `submit` to its record, over the pipeline called directly."""
    for name, value in child_environment().items():
        # The direct call runs in this process, so it must find the settings that the worker's process is given.
        os.environ.setdefault(name, value)
    import torch
    from diffusers import StableDiffusionPipeline

    pipe = StableDiffusionPipeline.from_pretrained(
        BUNDLED_MODEL_DIR, torch_dtype=torch.float32, safety_checker=None, requires_safety_checker=False
    )
    pipe.set_progress_bar_config(disable=True)
    with tempfile.TemporaryDirectory() as folder:
        queue = RunQueue(Path(folder) / "runs")
        watching = queue.watch()

        def through_the_worker() -> float:
            started_s = time.perf_counter()
            run_dir = queue.submit("text-to-image", {"prompt": PROMPT}, source="playground")
            while not run_dir.has_record():
                # Looking more often would take time from the two cores that are being measured.
                time.sleep(0.01)
            return time.perf_counter() - started_s

        def directly() -> float:
            started_s = time.perf_counter()
            pipe(
                PROMPT,
                num_inference_steps=DEFAULT_STEPS,
                guidance_scale=DEFAULT_GUIDANCE,
                generator=torch.Generator("cpu").manual_seed(0),
            )
            return time.perf_counter() - started_s

        names = ("through the worker", "direct call")
        try:
            return interleaved(through_the_worker, directly, pairs=20, names=names, limit=1.05)
        finally:
            _close(queue, watching)


def worker_start() -> Ratio:
    """Starting the worker with the bundled model loaded, over the import of StableDiffusionPipeline alone."""

    def start() -> float:
        with tempfile.TemporaryDirectory() as folder:
            started_s = time.perf_counter()
            queue = RunQueue(Path(folder) / "runs")
            watching = queue.watch()
            fields = {"prompt": PROMPT, "steps": 1, "previews": False}
            _wait_until_loaded(queue.submit("text-to-image", fields, source="playground"))
            seconds = time.perf_counter() - started_s
            _close(queue, watching)
            return seconds

    def plain_import() -> float:
        started_s = time.perf_counter()
        command = [sys.executable, "-c", "from diffusers import StableDiffusionPipeline"]
        subprocess.run(command, cwd=PROJECT_DIR, env=child_environment(), check=True, stderr=subprocess.DEVNULL)
        return time.perf_counter() - started_s

    names = ("worker with model", "import of the pipeline class")
    return interleaved(start, plain_import, pairs=6, names=names, limit=1.3)


def preview_cost() -> Ratio:
    """A warm image with previews over the same without, both through the worker."""
    with tempfile.TemporaryDirectory() as folder:
        queue = RunQueue(Path(folder) / "runs")
        watching = queue.watch()

        def generate(*, previews: bool) -> float:
            started_s = time.perf_counter()
            fields = {"prompt": PROMPT, "previews": previews}
            run_dir = queue.submit("text-to-image", fields, source="playground")
            while not run_dir.has_record():
                time.sleep(0.01)
            return time.perf_counter() - started_s

        try:
            names = ("with previews", "without")
            return interleaved(
                lambda: generate(previews=True), lambda: generate(previews=False), pairs=20, names=names, limit=1.1
            )
        finally:
            _close(queue, watching)


def _wait_until_loaded(run_dir: RunDir) -> None:
    while read_progress(run_dir).status not in ("running", "done"):
        time.sleep(0.005)


def _close(queue: RunQueue, watching: IO[str]) -> None:
    watching.close()
    queue.shut_down()
    while QueueFiles(queue.runs_dir).dispatcher_runs():
        time.sleep(0.02)
