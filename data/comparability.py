"""Two measurements -> a verdict: like for like, with caveats, or not comparable, and the fields that differ.

The only place where a ratio arises, so that nobody can show a speed-up without its verdict. The table of severities is
data (`data.rules`); the rules come from what makes published numbers incomparable in practice: the article "Habana
Gaudi2 vs Nvidia A100 80GB" itself compares a batch of 8 with a batch of 1.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from data.measurements import Kind, Measurement, measurements_of
from data.rules import FLAG_EFFECTS, LEVELS, RULES, SEVERITIES, Level, Rule, Severity
from runners.plausibility import PREFIX as IMPOSSIBLE

__all__ = [
    "FLAG_EFFECTS",
    "RULES",
    "Finding",
    "Measurement",
    "Rule",
    "Verdict",
    "compare",
    "measurements_of",
]

LEAST_VALUE, MOST_VALUE = 1e-15, 1e15
"""Beyond these, and for zero, NaN and infinity, a value is no speed and its ratio no finite number."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One reason why two numbers are not simply equal in kind."""

    field: str
    severity: Severity
    value_a: object = None
    value_b: object = None
    message_id: str
    params: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What may be said of a against b."""

    id_a: str
    id_b: str
    level: Level
    findings: tuple[Finding, ...]
    """Heaviest first."""
    ratio: float | None
    """How many times as fast a is as b: above 1, a is the faster, whether the metric is a rate or a time.

    Per device for rates, as it is for times. None where the comparison is forbidden, a value is missing, or the metric
    is not a speed.
    """
    interval: tuple[float, float] | None = None
    """95 % interval of the ratio, from those of the two values; None where neither has one. Published values have none
    and count as exact, so the true interval is wider."""
    message_id: str
    params: Mapping[str, Any]

    @property
    def weight(self) -> tuple[int, ...]:
        """How much stands against it: the level, then the number of findings of each severity. Less is better."""
        counts = [sum(finding.severity == severity for finding in self.findings) for severity in SEVERITIES]
        return (LEVELS.index(self.level), *counts)

    @property
    def heaviest(self) -> Finding | None:
        """The finding that decides: it forbids the comparison or weighs strongly; None where there is none such."""
        return next((item for item in self.findings if item.severity in ("forbid", "caveat-strong")), None)

    @property
    def differs(self) -> tuple[str, ...]:
        """The fields that differ or are not known to agree, heaviest first."""
        return tuple(dict.fromkeys(item.field for item in self.findings if item.severity != "note"))

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON types."""
        return {
            "a": self.id_a,
            "b": self.id_b,
            "verdict": self.level,
            "ratio": self.ratio,
            "interval": self.interval,
            "differs": self.differs,
            "message_id": self.message_id,
            "params": dict(self.params),
            "findings": [asdict(finding) for finding in self.findings],
        }


def compare(a: Measurement, b: Measurement) -> Verdict:
    """The verdict on two measurements; pure and symmetric (levels equal, ratios reciprocal).

    Args:
        a: The measurement that is judged.
        b: The baseline.
    """
    kind = _kind(a, b)
    findings = [*_value_findings(a), *_value_findings(b)]
    if a.conditions.workload != b.conditions.workload:
        workloads = (a.conditions.workload, b.conditions.workload)
        findings.append(_differs("workload", "forbid", "differs-workload", a, b, workloads))
    elif kind is None:
        findings.append(_metric_finding(a, b))
    elif a.conditions.workload == "other":
        findings.append(Finding(field="workload", severity="forbid", message_id="task-other", params={}))
    else:
        findings += [*_warning_findings(a), *_warning_findings(b), *_flag_findings(a, b)]
        findings += _assumed_findings(a, b, kind)
        findings += _condition_findings(a, b, kind)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    level = _level(findings)
    ratio = None if level == "not-comparable" or kind in (None, "quality") else _speed(a, kind) / _speed(b, kind)
    return Verdict(
        id_a=a.id,
        id_b=b.id,
        level=level,
        findings=tuple(findings),
        ratio=ratio,
        interval=_ratio_interval(a, b, ratio),
        message_id="verdict-no-ratio" if level != "not-comparable" and ratio is None else f"verdict-{level}",
        params={"label_a": a.label, "label_b": b.label, "ratio": ratio},
    )


def _level(findings: Sequence[Finding]) -> Level:
    severities = {finding.severity for finding in findings}
    if "forbid" in severities:
        return "not-comparable"
    return "caveats" if severities & {"caveat-strong", "caveat"} else "like-for-like"


def _kind(a: Measurement, b: Measurement) -> Kind | None:
    """The column of the table that applies, or None when the two are not the same quantity."""
    if a.meaning is None or b.meaning is None or a.meaning.quantity != b.meaning.quantity:
        return None
    if a.meaning.kind == b.meaning.kind:
        return a.meaning.kind
    # A time to train against a time to similar loss: the stricter column, so that the steps must agree.
    return "time-to-train"


def _speed(item: Measurement, kind: Kind | None) -> float:
    """The value as "more is faster"; rates per device, since that is how unequal device counts are compared."""
    assert item.value is not None and item.meaning is not None  # noqa: S101 - `_value_findings` forbids otherwise
    speed = item.value if item.meaning.higher_is_better else 1 / item.value
    if kind in ("throughput", "step-rate") and item.scope == "total":
        speed /= item.conditions.devices or 1
    return speed


def _ratio_interval(a: Measurement, b: Measurement, ratio: float | None) -> tuple[float, float] | None:
    """The half widths of both, as shares of the values, add like independent errors (in quadrature, on a log scale)."""
    shares = [_share(item) for item in (a, b)]
    if ratio is None or all(share is None for share in shares):
        return None
    width = math.hypot(*(share or 0.0 for share in shares))
    return ratio / math.exp(width), ratio * math.exp(width)


def _share(item: Measurement) -> float | None:
    if item.interval is None or not LEAST_VALUE <= item.interval[0] <= item.interval[1] <= MOST_VALUE:
        return None
    return math.log(item.interval[1] / item.interval[0]) / 2


def _value_findings(item: Measurement) -> Iterator[Finding]:
    # As text: the value may be NaN, which JSON cannot carry.
    params = {"label": item.label, "value": f"{item.value}", "status": item.status}
    if item.status != "ok":
        yield Finding(field="status", severity="forbid", message_id="failed-run", params=params)
    if item.value is None:
        yield Finding(field="value", severity="forbid", message_id="value-not-available", params=params)
    elif not LEAST_VALUE <= item.value <= MOST_VALUE:
        yield Finding(field="value", severity="forbid", message_id="value-not-usable", params=params)
    if item.origin == "projected":
        yield Finding(field="origin", severity="caveat", message_id="projected", params=params)


def _metric_finding(a: Measurement, b: Measurement) -> Finding:
    if a.metric == b.metric:
        params = {"metric": a.metric}
        return Finding(field="metric", severity="forbid", message_id="not-a-speed", params=params)
    params = {"metric_a": a.metric, "metric_b": b.metric}
    return Finding(
        field="metric",
        severity="forbid",
        value_a=a.metric,
        value_b=b.metric,
        message_id="differs-metric",
        params=params,
    )


def _flag_findings(a: Measurement, b: Measurement) -> Iterator[Finding]:
    """Each flag once, even when it is on both sides."""
    for flag in dict.fromkeys((*a.flags, *b.flags)):
        severity, replaced = FLAG_EFFECTS[flag]
        yield Finding(field=replaced or "flag", severity=severity, message_id=flag, params={})


def _warning_findings(item: Measurement) -> Iterator[Finding]:
    for warning in item.warnings:
        if warning.startswith(IMPOSSIBLE):
            params = {"label": item.label}
            yield Finding(field="measurement", severity="forbid", message_id="impossible-numbers", params=params)
            continue
        yield Finding(field="measurement", severity="caveat", message_id=warning, params={"label": item.label})


def _assumed_findings(a: Measurement, b: Measurement, kind: Kind) -> Iterator[Finding]:
    """One finding for all reconstructed fields of a side that a rule would have looked at.

    Where one source tells of both and the same value was reconstructed for both, whatever the true value is, it was
    the same: that is a note, not a caveat.
    """
    alike = []
    if a.source_id is not None and a.source_id == b.source_id:
        both = _assumed(a, kind).keys() & _assumed(b, kind).keys()
        alike = [name for name in _assumed(a, kind) if name in both and _value(a, name) == _value(b, name)]
    if alike:
        yield Finding(field="assumed", severity="note", message_id="assumed-alike", params={"fields": alike})
    for item in (a, b):
        fields = [name for name in _assumed(item, kind) if name not in alike]
        if fields:
            params = {"label": item.label, "fields": fields}
            yield Finding(field="assumed", severity="caveat", message_id="assumed", params=params)


def _assumed(item: Measurement, kind: Kind) -> dict[str, None]:
    """The reconstructed fields that a rule heavier than a note looks at, in the table's order."""
    assumed = {"resolution" if name in ("width_px", "height_px") else name for name in item.assumed_fields}
    matters = [rule for rule in _rules(kind, item.conditions.workload) if rule.severities[kind] != "note"]
    return dict.fromkeys(rule.field for rule in matters if rule.field in assumed)


def _rules(kind: Kind, workload: str) -> Iterator[Rule]:
    for rule in RULES:
        if kind in rule.severities and (rule.workloads is None or workload in rule.workloads):
            yield rule


def _condition_findings(a: Measurement, b: Measurement, kind: Kind) -> Iterator[Finding]:
    replaced = {FLAG_EFFECTS[flag][1] for flag in (*a.flags, *b.flags)}
    for rule in _rules(kind, a.conditions.workload):
        values = (_value(a, rule.field), _value(b, rule.field))
        if rule.field == "tf32" and not _tf32_matters(a, b):
            continue
        if None in values:
            if not rule.stated_only and rule.field not in replaced:
                yield _not_published(rule, kind, a, b, values)
        elif _canonical(rule.field, values[0]) != _canonical(rule.field, values[1]):
            yield _differs(rule.field, rule.severities[kind], _message_id(rule, kind), a, b, values)


def _not_published(rule: Rule, kind: Kind, a: Measurement, b: Measurement, values: tuple[object, object]) -> Finding:
    """Unknown is not equal: a caveat, or a note where even a difference would be one."""
    both = values == (None, None)
    return Finding(
        field=rule.field,
        severity="note" if rule.severities[kind] == "note" else "caveat",
        value_a=values[0],
        value_b=values[1],
        message_id="not-published-both" if both else "not-published",
        params={"field": rule.field, "label": a.label if values[0] is None else b.label},
    )


def _differs(
    name: str, severity: Severity, message_id: str, a: Measurement, b: Measurement, values: tuple[object, object]
) -> Finding:
    params = {"field": name, "label_a": a.label, "label_b": b.label, "value_a": values[0], "value_b": values[1]}
    return Finding(
        field=name, severity=severity, value_a=values[0], value_b=values[1], message_id=message_id, params=params
    )


def _message_id(rule: Rule, kind: Kind) -> str:
    if rule.field == "devices" and kind not in ("throughput", "step-rate"):
        return "differs-devices-unscaled"
    return rule.message_id


def _value(item: Measurement, name: str) -> object:
    """The value that a rule looks at; None where it is not published."""
    conditions = item.conditions
    if name == "resolution":
        if conditions.width_px is None or conditions.height_px is None:
            return None
        return f"{conditions.width_px}x{conditions.height_px}"
    if name == "guidance":
        # Only whether the negative prompt is computed too changes the work, not how strongly it counts.
        return None if conditions.guidance is None else "on" if conditions.guidance > 1 else "off"
    if name == "tf32" and conditions.tf32 is None and item.device_kind != "cuda":
        return False  # There is no TF32 outside NVIDIA devices: the question is answered.
    value: object = getattr(conditions, name)
    return value


def _tf32_matters(a: Measurement, b: Measurement) -> bool:
    return all(item.conditions.precision in (None, "fp32", "tf32") for item in (a, b))


def _canonical(name: str, value: object) -> object:
    """Software differs when a library or its major version does; other values differ when they are not equal."""
    if name != "software":
        return value
    return re.sub(r"(\d+)(\.\w+)*(\+\w+)?", r"\1", str(value))
