"""The comparability table as data: what a difference in one field means for each kind of metric.

It follows what makes published numbers incomparable in practice; `data.comparability` applies it and holds no severity
of its own except for values that are missing and tasks that differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from data.measurements import Kind

Level = Literal["like-for-like", "caveats", "not-comparable"]
Severity = Literal["forbid", "caveat-strong", "caveat", "note"]

LEVELS: tuple[Level, ...] = ("like-for-like", "caveats", "not-comparable")
SEVERITIES: tuple[Severity, ...] = ("forbid", "caveat-strong", "caveat", "note")

IMAGES = frozenset({"text-to-image"})
TRAINING = frozenset({"bert-pretraining", "t5-finetuning"})
T5 = frozenset({"t5-finetuning"})
SPEED_KINDS: tuple[Kind, ...] = ("throughput", "step-rate", "latency", "time-to-train", "time-to-similar-loss")


def _speeds(
    severity: Severity, *, latency: Severity | None = None, quality: Severity | None = None
) -> dict[Kind, Severity]:
    """The same severity for every kind of speed; latency may differ from it, and quality is no speed."""
    severities: dict[Kind, Severity] = dict.fromkeys(SPEED_KINDS, severity)
    if latency is not None:
        severities["latency"] = latency
    if quality is not None:
        severities["quality"] = quality
    return severities


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One line of the table: what a difference in one field means for each kind of metric."""

    field: str
    """A field of `Conditions`, or `resolution` for width and height together."""
    severities: Mapping[Kind, Severity]
    """A kind that is not listed does not care about this field."""
    workloads: frozenset[str] | None = None
    """Where the field applies; None for every workload."""
    stated_only: bool = False
    """Whether a value that is not published is passed over (fields that few sources state and that matter little)."""
    message_id: str = "differs-field"


RULES: tuple[Rule, ...] = (
    Rule(field="model", severities=_speeds("forbid", quality="forbid"), message_id="differs-model"),
    Rule(field="weights", severities={"quality": "forbid"}),
    Rule(
        field="resolution",
        severities=_speeds("forbid", quality="forbid"),
        workloads=IMAGES,
        message_id="differs-resolution",
    ),
    Rule(
        field="sequence_length",
        severities=_speeds("forbid", quality="forbid"),
        workloads=TRAINING,
        message_id="differs-sequence",
    ),
    Rule(
        field="target_length",
        severities=_speeds("forbid", quality="forbid"),
        workloads=T5,
        message_id="differs-sequence",
    ),
    # An image costs as much as its steps, whereas the speed of training does not depend on how long it went on.
    Rule(
        field="steps",
        severities={"throughput": "forbid", "latency": "forbid", "quality": "forbid"},
        workloads=IMAGES,
        message_id="differs-steps",
    ),
    Rule(
        field="steps",
        severities={"throughput": "note", "latency": "note"},
        workloads=TRAINING,
        stated_only=True,
        message_id="differs-steps",
    ),
    Rule(
        field="steps",
        severities={"time-to-train": "forbid", "quality": "forbid"},
        workloads=TRAINING,
        message_id="differs-steps",
    ),
    Rule(
        field="steps",
        severities={"time-to-similar-loss": "caveat-strong"},
        workloads=TRAINING,
        message_id="differs-steps-similar-loss",
    ),
    Rule(field="epochs", severities={"time-to-train": "forbid"}, workloads=TRAINING, stated_only=True),
    Rule(
        field="batch_size_per_device",
        severities={
            "throughput": "caveat-strong",
            "time-to-train": "caveat-strong",
            "time-to-similar-loss": "caveat-strong",
        },
        message_id="differs-batch",
    ),
    Rule(field="batch_size_per_device", severities={"latency": "forbid"}, message_id="differs-batch-latency"),
    # A step of eight images does eight times the work of a step of one, so the rates say nothing about each other.
    Rule(field="batch_size_per_device", severities={"step-rate": "forbid"}, message_id="differs-batch-step"),
    Rule(field="devices", severities=_speeds("caveat"), message_id="differs-devices"),
    Rule(field="precision", severities=_speeds("caveat", quality="caveat"), message_id="differs-precision"),
    Rule(field="tf32", severities=_speeds("caveat", quality="note")),
    Rule(field="timed_region", severities=_speeds("caveat"), message_id="differs-timed-region"),
    Rule(field="warmup_rule", severities=_speeds("caveat")),
    Rule(field="guidance", severities=_speeds("caveat-strong"), workloads=IMAGES, message_id="differs-guidance"),
    Rule(field="scheduler", severities=_speeds("note"), workloads=IMAGES),
    Rule(field="gradient_checkpointing", severities=_speeds("caveat"), workloads=T5),
    Rule(
        field="gradient_checkpointing",
        severities=_speeds("caveat"),
        workloads=frozenset({"bert-pretraining"}),
        stated_only=True,
    ),
    Rule(field="optimizer", severities=_speeds("note"), workloads=TRAINING, stated_only=True),
    Rule(field="mode", severities=_speeds("note"), stated_only=True),
    Rule(field="software", severities=_speeds("note"), stated_only=True),
    Rule(field="software_year", severities=_speeds("note"), message_id="differs-year"),
)

FLAG_EFFECTS: Mapping[str, tuple[Severity, str | None]] = {
    "flag-provenance-a100-sd": ("caveat", None),
    "flag-not-remeasured": ("note", None),
    "flag-reciprocal-throughput": ("note", None),
    "flag-total-over-devices": ("note", None),
    "flag-total-inferred": ("note", None),
    "flag-time-to-similar-loss": ("caveat", None),
    # Says more than "TF32 is not published", so it stands in for that finding.
    "flag-tf32-not-stated": ("caveat", "tf32"),
    "flag-padding-unknown": ("caveat", None),
    "flag-does-not-fit": ("note", None),
    "flag-printed-ratio": ("note", None),
    "flag-recomputes-otherwise": ("caveat", None),
    "flag-mixes-fewer-samples": ("caveat", None),
    "flag-unequal-batch": ("caveat", None),
    "flag-other-model-claim": ("caveat", None),
    "flag-rounded-headline": ("caveat", None),
    "flag-baseline-differs": ("note", None),
    "flag-superseded": ("caveat", None),
    "flag-two-batch-sizes": ("note", None),
    "flag-same-value-as-a100": ("note", None),
    "flag-unit-coincidence": ("note", None),
    "flag-copied-placeholder": ("forbid", None),
    "flag-threshold": ("caveat", None),
    "flag-time-to-target": ("caveat", None),
    "flag-vendor-measured": ("caveat", None),
    "flag-variable-length": ("caveat-strong", None),
    "flag-doubtful-throughput": ("caveat-strong", None),
    "flag-synthetic-data": ("caveat", None),
    "flag-crowd-sourced": ("caveat-strong", None),
    "flag-secondary-source": ("caveat", None),
}
"""Flag of a reference row -> its severity in a verdict, and the field whose "not published" it replaces."""
