"""The CSV files of the diffusers benchmarks, in both their layouts; neither names the card that was used.

The old one times a whole pipeline call. The new one times one forward pass of a model, plain and compiled; its cells
may read "0.493 (0.503)", the new value and the previous one. Memory that they call GB is in GiB (1024^3).
"""

import re
from collections.abc import Iterator, Mapping

from data.importers.draft import MAX_RUNS, Draft, ImportRefused, metric, model_name, present, whole
from data.importers.privacy import clean
from data.importers.reading import Source, cell_number, csv_rows

GIB = 2**30
_NEW_OLD = re.compile(r"([-+.\deE]+)\s*\([-+.\deEnaN]+\)")
_MODES = (("plain", "eager"), ("compile", "compile"))


def is_ours(start: str) -> bool:
    """Whether the header is one of the two."""
    names = {name.strip() for name in start.partition("\n")[0].split(",")}
    return {"pipeline_cls", "ckpt_id", "time (secs)"} <= names or {"scenario", "model_cls", "time_plain_s"} <= names


def read(source: Source) -> list[Draft]:
    """One run for each time in each row.

    Raises:
        ImportRefused: A row is cut short, a time is impossible, or there are too many.
    """
    drafts: list[Draft] = []
    for line, row in csv_rows(source):
        drafts += _pipeline(source, line, row) if "pipeline_cls" in row else _forward(source, line, row)
        if len(drafts) > MAX_RUNS:
            raise ImportRefused("import-too-many-runs", file=source.name, count=f"> {MAX_RUNS}", maximum=MAX_RUNS)
    if not drafts:
        raise ImportRefused("import-no-numbers", file=source.name)
    return drafts


def _pipeline(source: Source, line: int, row: Mapping[str, str]) -> Iterator[Draft]:
    seconds = _seconds(source, line, row, "time (secs)")
    batch = whole(cell_number(row.get("batch_size")))
    if seconds is None:
        return
    compiled = {"true": "compile", "false": "eager"}.get(row.get("run_compile", "").lower())
    offload = {"true": True, "false": False}.get(row.get("model_cpu_offload", "").lower())
    images = "Text2Image" in row["pipeline_cls"] or row["pipeline_cls"] == "StableDiffusionPipeline"
    yield Draft(
        title=clean(f"{row['pipeline_cls']}, {row['ckpt_id']}"),
        workload="text-to-image" if images else "other",
        conditions={
            "model": model_name(row["ckpt_id"]) if row["ckpt_id"] else None,
            "batch_size_per_device": batch,
            "steps": whole(cell_number(row.get("num_inference_steps"))),
            "mode": compiled,
            "timed_region": "end-to-end",
        },
        metrics=present(
            metric("s_per_image", seconds / batch, "s/image", better="lower", region="end-to-end") if batch else None,
            metric("images_per_s", batch / seconds, "images/s", better="higher", region="end-to-end")
            if batch
            else None,
            metric("batch_latency_s", seconds, "s", better="lower", region="end-to-end"),
            metric("peak_memory_bytes", _gib(row.get("memory (gbs)")), "B", better="lower"),
        ),
        details={"github_sha": clean(row.get("github_sha", "")), "model_cpu_offload": offload},
        warnings=_broken(row, "memory (gbs)"),
    )


def _forward(source: Source, line: int, row: Mapping[str, str]) -> Iterator[Draft]:
    for column, mode in _MODES:
        seconds = _seconds(source, line, row, f"time_{column}_s")
        if seconds is None:
            continue  # compilation is switched off for some models, and the cell is empty
        yield Draft(
            title=clean(f"{row['scenario']}, {mode}"),
            workload="other",
            conditions={"model": clean(row["scenario"]), "mode": mode, "batch_size_per_device": None},
            metrics=present(
                metric("s_per_forward", seconds, "s", better="lower"),
                metric("peak_memory_bytes", _gib(row.get(f"mem_{column}_GB")), "B", better="lower"),
            ),
            details={key: clean(row.get(key, "")) for key in ("model_cls", "num_params_B", "flops_G", "github_sha")},
            warnings=_broken(row, f"mem_{column}_GB"),
        )


def _seconds(source: Source, line: int, row: Mapping[str, str], name: str) -> float | None:
    number = _number(row.get(name))
    if number is not None and not 0 < number < 1e6:
        raise ImportRefused("import-cell", file=source.name, line=line, what=name, value=str(row.get(name))[:40])
    return number


def _number(cell: str | None) -> float | None:
    match = _NEW_OLD.fullmatch(cell or "")
    return cell_number(match[1] if match else cell)


def _gib(cell: str | None) -> int | None:
    number = _number(cell)
    return round(number * GIB) if number is not None and 0 <= number < 10_000 else None


def _broken(row: Mapping[str, str], name: str) -> tuple[str, ...]:
    """One published file has `:.3f`, a format without its number, in its memory cells."""
    return ("import-cell-left-out",) if row.get(name) and _gib(row.get(name)) is None else ()
