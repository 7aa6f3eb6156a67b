"""Ten thousand finished runs in a folder, for the benches of pages: real records, with made-up times."""

import json
import random
from pathlib import Path

from runners.records import (
    Audit,
    Conditions,
    DeviceInfo,
    Phase,
    Record,
    Series,
    new_run_id,
    record_to_json,
)
from runners.rundir import utc_now
from runners.stats import rate_metrics

WORKLOADS = ("text-to-image", "bert-pretraining", "t5-finetuning", "synthetic")


def make_runs(runs_dir: Path, count: int, *, seed: int = 0, samples: int = 20) -> None:
    """Writes `count` run folders with a specification and a record each.

    Args:
        runs_dir: Where they go.
        count: How many.
        seed: Of the made-up values.
        samples: Timed steps of each run.
    """
    rng = random.Random(seed)
    for number in range(count):
        record = _record(rng, WORKLOADS[number % len(WORKLOADS)], samples)
        folder = runs_dir / record.run_id
        folder.mkdir(parents=True)
        spec = {"run_id": record.run_id, "workload": record.workload, "fields": record.spec, "created_utc": utc_now()}
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        (folder / "record.json").write_text(json.dumps(record_to_json(record)), encoding="utf-8")


def _record(rng: random.Random, workload: str, samples: int) -> Record:
    batch_size = rng.choice((1, 2, 4, 8, 16, 32))
    images = workload == "text-to-image"
    conditions = Conditions(
        workload=workload,
        model={"text-to-image": "stable-diffusion-1", "bert-pretraining": "bert-base"}.get(workload, "t5-3b"),
        weights="architecture",
        width_px=512 if images else None,
        height_px=512 if images else None,
        steps=50 if images else None,
        sequence_length=None if images else 512,
        batch_size_per_device=batch_size,
        devices=1,
        precision=rng.choice(("fp32", "bf16", "fp16")),
        timed_region="denoise+vae" if images else "training-steps",
    )
    seconds = [rng.uniform(0.9, 1.1) * batch_size for _ in range(samples)]
    noun, unit = ("image", "images/s") if images else ("sample", "samples/s")
    metrics = rate_metrics(noun, unit, seconds, batch_size, conditions.timed_region)
    now = utc_now()
    return Record(
        run_id=new_run_id(),
        workload=workload,
        status="ok",
        spec={"batch_size": batch_size, "seed": rng.randrange(1000)},
        conditions=conditions,
        device=DeviceInfo(kind="cuda", name=rng.choice(("NVIDIA H100", "NVIDIA A100", "NVIDIA L40S"))),
        environment={"packages": {"torch": "2.13.0"}},
        created_utc=now,
        started_utc=now,
        finished_utc=now,
        phases=(Phase(name="measured", duration_s=sum(seconds)),),
        series=(Series(name="step_s", unit="s", phase="measured", values=tuple(seconds)),),
        metrics=tuple(metrics),
        audit=Audit(sync_policy="after every batch"),
    )
