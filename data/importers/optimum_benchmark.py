"""optimum-benchmark: `benchmark.json` holds a configuration and a report, `benchmark_report.json` the report alone.

Every measured stage has its raw latencies, from which the numbers here are derived anew. Known faults that are looked
for: `gpu_vram_mb` filled with bytes, memory beyond what any machine has, and `per_step`, in which 0.6.0 repeats the
steps of earlier images.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from data.importers.draft import MAX_SAMPLES, Draft, ImportRefused, finite, metric, model_name, present, text, whole
from data.importers.privacy import clean, clean_values
from data.importers.reading import Source, json_document
from runners.records import Metric, Phase, Series
from runners.stats import rate_metrics

STAGES = ("load_model", "load", "first_call", "call", "forward", "prefill", "decode", "per_token", "generate", "train")
_DONE = ("call", "train", "forward", "generate")
"""Stages that are the work itself, of which a report has one or two."""
MAX_MEMORY_MB = 10_000_000
_MEMORY = ("max_ram", "max_global_vram", "max_process_vram", "max_reserved", "max_allocated")
_PRECISION = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_VERSIONS = ("optimum_benchmark", "transformers", "diffusers", "accelerate", "optimum", "timm", "peft")
_KINDS = {"cuda": "cuda", "cpu": "cpu", "mps": "mps", "xla": "xla"}


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether this is a benchmark, or a report alone."""
    report = document.get("report") if "config" in document else document
    return isinstance(report, dict) and any(
        isinstance(stage := report.get(name), dict) and "latency" in stage for name in STAGES
    )


def read(source: Source) -> list[Draft]:
    """One run.

    Raises:
        ImportRefused: The work was not timed, or a value is none that can be.
    """
    document = json_document(source)
    whole_file = "config" in document
    report = document["report"] if whole_file else document
    configuration = document["config"] if whole_file else {}
    if not isinstance(configuration, dict):
        raise ImportRefused("import-odd", file=source.name, what="config")
    backend, scenario, environment = (_part(configuration, name) for name in ("backend", "scenario", "environment"))
    images = backend.get("task") == "text-to-image"
    work = next((name for name in _DONE if _values(source, report, name)), None)
    if work is None:
        raise ImportRefused("import-no-numbers", file=source.name)
    return [
        Draft(
            title=clean(text(configuration.get("name")) or ""),
            workload="text-to-image" if images else None,
            conditions=_conditions(backend, scenario, environment, images),
            **_device(backend, environment),
            metrics=_metrics(source, report, work, scenario, images),
            series=tuple(_series(source, report, images)),
            phases=tuple(_phases(source, report)),
            environment=_environment(backend, environment),
            details=_details(backend, scenario),
            warnings=tuple(_warnings(source, report, environment)),
        )
    ]


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, dict) else {}


def _values(source: Source, report: Mapping[str, Any], stage: str) -> tuple[float, ...]:
    """The latencies of a stage, in s."""
    latency = _part(_part(report, stage), "latency")
    values = latency.get("values")
    if not values:
        return ()
    if latency.get("unit") != "s":
        raise ImportRefused(
            "import-unit", file=source.name, what=f"{stage}.latency", unit=str(latency.get("unit"))[:40]
        )
    if not isinstance(values, list) or len(values) > MAX_SAMPLES:
        raise ImportRefused("import-odd", file=source.name, what=f"{stage}.latency.values")
    numbers = [finite(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if number is None or not 0 < number < 1e7:
            raise ImportRefused("import-implausible", file=source.name, what=f"{stage}.latency", value=str(value)[:40])
    count = whole(latency.get("count"))
    if count is not None and count != len(values):
        raise ImportRefused("import-cut-short", file=source.name, missing=f"{stage}.latency.values[{len(values)}]")
    return tuple(number for number in numbers if number is not None)


def _conditions(
    backend: Mapping[str, Any], scenario: Mapping[str, Any], environment: Mapping[str, Any], images: bool
) -> dict[str, Any]:
    shapes, call = _part(scenario, "input_shapes"), _part(scenario, "call_kwargs")
    training = _part(scenario, "training_arguments")
    dtype = _PRECISION.get(str(backend.get("torch_dtype")))
    mixed = _PRECISION.get(str(backend.get("autocast_dtype"))) if backend.get("autocast_enabled") is True else None
    warmup = whole(scenario.get("warmup_runs")) if scenario.get("name") == "inference" else None
    model = text(backend.get("model"))
    tf32 = backend.get("allow_tf32")
    library = "diffusers" if images else "transformers"
    version = text(environment.get(f"{library}_version"))
    batch = whole(training.get("per_device_train_batch_size")) or whole(shapes.get("batch_size"))
    return {
        "model": model_name(model) if model else None,
        "weights": "architecture" if backend.get("no_weights") is True else None,
        "batch_size_per_device": batch if not images else _images_per_call(scenario),
        "sequence_length": whole(shapes.get("sequence_length"))
        or whole(_part(scenario, "dataset_shapes").get("sequence_length")),
        "width_px": whole(call.get("width")),
        "height_px": whole(call.get("height")),
        "steps": whole(call.get("num_inference_steps")) or whole(scenario.get("max_steps")),
        "guidance": finite(call.get("guidance_scale")),
        "precision": f"{mixed}-mixed" if mixed else dtype,
        "tf32": tf32 if isinstance(tf32, bool) else None,
        "timed_region": "end-to-end" if images else None,
        "warmup_rule": "none" if warmup == 0 else f"first-{warmup}-batches-dropped" if warmup and warmup > 1 else None,
        "mode": {True: "compile", False: "eager"}.get(backend.get("torch_compile")),  # type: ignore[arg-type]
        "software": f"{library} {version}" if version else None,
    }


def _images_per_call(scenario: Mapping[str, Any]) -> int | None:
    prompts = whole(_part(scenario, "input_shapes").get("batch_size"))
    each = whole(_part(scenario, "call_kwargs").get("num_images_per_prompt")) or 1
    return prompts * each if prompts else None


def _device(backend: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    device = (text(backend.get("device")) or "").split(":")[0]
    if device == "cpu":
        return {"device_name": text(environment.get("cpu")), "device_kind": "cpu"}
    gpus = environment.get("gpu")
    names = {name for name in gpus if isinstance(name, str)} if isinstance(gpus, list) else {gpus}
    only = text(names.pop()) if len(names) == 1 else None
    kind = "rocm" if device == "cuda" and only and "AMD" in only.upper() else _KINDS.get(device)
    memory = _vram_bytes(environment)
    return {"device_name": only, "device_kind": kind, "device_memory_bytes": memory if only else None}


def _vram_bytes(environment: Mapping[str, Any]) -> int | None:
    """`gpu_vram_mb` in bytes, of which it holds bytes in every file seen; over all devices, so only for one."""
    value, count = finite(environment.get("gpu_vram_mb")), whole(environment.get("gpu_count"))
    if not value or count != 1:
        return None
    return round(value if value > MAX_MEMORY_MB else value * 1e6)


def _metrics(
    source: Source, report: Mapping[str, Any], work: str, scenario: Mapping[str, Any], images: bool
) -> tuple[Metric, ...]:
    values = _values(source, report, work)
    batch = _images_per_call(scenario) if images else None
    found = rate_metrics("image", "images/s", values, batch, "end-to-end") if batch else []
    throughput = _part(_part(report, work), "throughput")
    unit = text(throughput.get("unit"))
    stated = finite(throughput.get("value"))
    if found and unit == "images/s" and stated and abs(found[-1].value / stated - 1) > 0.02:
        raise ImportRefused("import-rates-disagree", file=source.name, samples=found[-1].value, steps=stated)
    if not found and unit in ("images/s", "samples/s", "tokens/s", "steps/s"):
        name = unit.replace("/s", "_per_s")
        found += present(metric(name, stated, unit, better="higher", n=len(values)))
    if work == "call":
        mean = metric("batch_latency_s", math.fsum(values) / len(values), "s", better="lower", n=len(values))
        found += present(mean)
    memory = _part(_part(report, work), "memory")
    return (*found, *present(*(_memory(memory, name) for name in _MEMORY)))


def _memory(memory: Mapping[str, Any], name: str) -> Metric | None:
    value = finite(memory.get(name))
    if value is None or memory.get("unit") != "MB" or not 0 <= value <= MAX_MEMORY_MB:
        return None
    return metric(f"{name.replace('max_', 'peak_')}_bytes", round(value * 1e6), "B", better="lower")


def _series(source: Source, report: Mapping[str, Any], images: bool) -> Iterator[Series]:
    for stage in ("call", "forward", "prefill", "decode", "per_token", "generate", "per_step", "train", "warmup"):
        values = _values(source, report, stage)
        if not values or (stage == "per_step" and _repeats(values)):
            continue
        names = {
            "call": "end_to_end_s" if images else "call_s",
            "per_step": "step_s",
            "train": "step_s",
            "warmup": "step_s",
        }
        phase = "warm-up" if stage == "warmup" else "stage-pass" if stage == "per_step" else "measured"
        yield Series(name=names.get(stage, f"{stage}_s"), unit="s", phase=phase, values=values)


def _repeats(values: tuple[float, ...]) -> bool:
    """No clock gives the same nanosecond twice in a short list of steps."""
    return len(set(values)) < len(values)


def _phases(source: Source, report: Mapping[str, Any]) -> Iterator[Phase]:
    names = {"load_model": "load", "load": "load", "first_call": "first-call", "call": "measured", "train": "measured"}
    for stage, name in names.items():
        if values := _values(source, report, stage):
            yield Phase(name=name, duration_s=math.fsum(values))


def _environment(backend: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    packages = {name: version for name in _VERSIONS if (version := text(environment.get(f"{name}_version")))}
    if backend.get("name") == "pytorch" and (version := text(backend.get("version"))):
        packages["torch"] = version
    ram = finite(environment.get("cpu_ram_mb"))
    facts = {
        "os": text(environment.get("platform")),
        "python": text(environment.get("python_version")),
        "machine": text(environment.get("machine")),
        "cpu": text(environment.get("cpu")),
        "cores": whole(environment.get("cpu_count")),
        "memory_bytes": round(ram * 1e6) if ram and 0 < ram < MAX_MEMORY_MB * 10 else None,
        "packages": packages,
    }
    return clean_values({name: value for name, value in facts.items() if value})


def _details(backend: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, Any]:
    facts = {
        "backend": text(backend.get("name")),
        "task": text(backend.get("task")),
        "scenario": text(scenario.get("name")),
        "seed": whole(backend.get("seed")),
    }
    return clean_values({name: value for name, value in facts.items() if value is not None})


def _warnings(source: Source, report: Mapping[str, Any], environment: Mapping[str, Any]) -> Iterator[str]:
    if any(
        (finite(_part(_part(report, stage), "memory").get(name)) or 0) > MAX_MEMORY_MB
        for stage in report
        for name in _MEMORY
    ):
        yield "import-memory-impossible"
    if (finite(environment.get("gpu_vram_mb")) or 0) > MAX_MEMORY_MB:
        yield "import-bytes-called-mb"
    if _repeats(_values(source, report, "per_step")):
        yield "import-repeated-steps"
