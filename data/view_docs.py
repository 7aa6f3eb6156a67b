"""What the views of views.sql hold, column by column, and questions to start from; the database has it as comments."""

from collections.abc import Mapping
from dataclasses import dataclass

from runners.messages import N_


@dataclass(frozen=True, kw_only=True)
class View:
    """One view."""

    about: str
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A question that works on any database."""

    title: str
    sql: str


_RUN = N_("Id of the run")
_CREATED = N_("When it was made (UTC)")
_WORKLOAD = N_("Task: text-to-image, bert-pretraining, …")
_MODEL = N_("Canonical model")
_DEVICE = N_("Device, as its driver calls it")

VIEWS: Mapping[str, View] = {
    "results": View(
        about=N_("One row for each metric of each run that ended well, with its conditions."),
        columns={
            "run_id": _RUN,
            "created_utc": _CREATED,
            "origin": N_("measured, or imported from …"),
            "workload": _WORKLOAD,
            "model": _MODEL,
            "weights": N_("real, architecture or bundled"),
            "device_kind": N_("hpu, cuda, rocm, xpu, mps, cpu"),
            "device_name": _DEVICE,
            "devices": N_("Number of devices"),
            "batch_size_per_device": N_("Samples per device and step"),
            "precision": N_("fp32, bf16, …"),
            "width_px": N_("Image width in pixels"),
            "height_px": N_("Image height in pixels"),
            "sequence_length": N_("Tokens in a sequence"),
            "steps": N_("Denoising or training steps"),
            "software": N_("Main library and version"),
            "timed_region": N_("What was timed"),
            "metric": N_("Name of the metric, such as s_per_image"),
            "value": N_("Its value"),
            "unit": N_("Its unit"),
            "interval_low": N_("Lower end of the 95 % interval"),
            "interval_high": N_("Upper end of the 95 % interval"),
            "n": N_("Number of samples"),
            "higher_is_better": N_("Whether more is better"),
            "grade": N_("A to D: how far the measurement can be relied on; empty for imported runs"),
            "is_headline": N_("Whether this is the one metric that the run is about"),
        },
    ),
    "samples": View(
        about=N_("One row for each sample of each series; millions where there are many runs, so filter."),
        columns={
            "run_id": _RUN,
            "workload": _WORKLOAD,
            "device_name": _DEVICE,
            "series": N_("Name of the series, such as end_to_end_s"),
            "unit": N_("Unit of the value"),
            "phase": N_("warm-up or measured"),
            "sample": N_("Number of the sample, from 1"),
            "value": N_("The sample"),
        },
    ),
    "losses": View(
        about=N_("Loss curves: one row for each logged loss, with the step at which it was."),
        columns={
            "run_id": _RUN,
            "workload": _WORKLOAD,
            "model": _MODEL,
            "device_name": _DEVICE,
            "step": N_("Training step; the number of the entry where steps were not logged"),
            "loss": N_("Loss"),
        },
    ),
    "stage_times": View(
        about=N_("Where the time of a batch of images goes: text encoder, denoising, VAE."),
        columns={
            "run_id": _RUN,
            "workload": _WORKLOAD,
            "model": _MODEL,
            "device_name": _DEVICE,
            "stage": N_("text_encoder_s, denoising_s or vae_s"),
            "median_s": N_("Median time in seconds"),
            "n": N_("Number of samples"),
        },
    ),
    "failures": View(
        about=N_("Runs that did not end well, and why."),
        columns={
            "run_id": _RUN,
            "created_utc": _CREATED,
            "workload": _WORKLOAD,
            "model": _MODEL,
            "device_name": _DEVICE,
            "status": N_("failed, cancelled, timeout or lost"),
            "error_type": N_("Kind of error"),
            "error_message": N_("What happened"),
        },
    ),
    "packages": View(
        about=N_("Versions of libraries: one row for each package of each run."),
        columns={
            "run_id": _RUN,
            "created_utc": _CREATED,
            "device_name": _DEVICE,
            "package": N_("Name of the package"),
            "version": N_("Its version; empty where it was not installed"),
        },
    ),
}

EXAMPLES: tuple[Example, ...] = (
    Example(
        title=N_("The best result of each device"),
        sql="""SELECT workload, metric, device_name,
    CASE WHEN bool_and(higher_is_better) THEN max(value) ELSE min(value) END AS best,
    any_value(unit) AS unit, count(*) AS runs
FROM results
WHERE is_headline
GROUP BY workload, metric, device_name
ORDER BY workload, metric, best""",
    ),
    Example(
        title=N_("How speed grows with the batch size"),
        sql="""SELECT batch_size_per_device, device_name, precision, median(value) AS images_per_s, count(*) AS runs
FROM results
WHERE metric = 'images_per_s'
GROUP BY ALL
ORDER BY device_name, precision, batch_size_per_device""",
    ),
    Example(
        title=N_("How much a series scatters"),
        sql="""SELECT run_id, device_name, series, count(*) AS n, median(value) AS median,
    quantile_cont(value, 0.95) AS p95, stddev(value) / avg(value) AS relative_deviation
FROM samples
WHERE phase = 'measured' AND unit = 's'
GROUP BY ALL
HAVING count(*) > 1
ORDER BY relative_deviation DESC
LIMIT 50""",
    ),
    Example(
        title=N_("Loss curves"),
        sql="SELECT step, loss, device_name, run_id FROM losses ORDER BY run_id, step LIMIT 5000",
    ),
    Example(
        title=N_("Where the time goes"),
        sql="""SELECT stage, device_name, median(median_s) AS median_s, count(*) AS runs
FROM stage_times
GROUP BY stage, device_name
ORDER BY device_name, stage""",
    ),
    Example(
        title=N_("What fails, and how often"),
        sql="""SELECT workload, status, error_type, count(*) AS runs, max(created_utc) AS last
FROM failures
GROUP BY ALL
ORDER BY runs DESC""",
    ),
    Example(
        title=N_("Runs for each version of a library"),
        sql="""SELECT package, version, count(*) AS runs
FROM packages
WHERE version IS NOT NULL
GROUP BY package, version
ORDER BY package, runs DESC""",
    ),
    Example(
        title=N_("Runs of each day"),
        sql="""SELECT date_trunc('day', created_utc) AS day, count(*) AS runs
FROM runs
WHERE NOT deleted
GROUP BY day
ORDER BY day""",
    ),
)
