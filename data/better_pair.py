"""The fairer pair: where the catalogue can answer the same question with fewer or lighter reservations, it says so."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.comparability import Verdict, compare
from data.measurements import Measurement

HEAVY = 3
"""The parts of a verdict's weight that count here: level, what forbids, what weighs strongly."""


@dataclass(frozen=True, kw_only=True)
class BetterPair:
    """A pair that answers the same question with fewer or lighter reservations."""

    a: Measurement
    b: Measurement
    verdict: Verdict
    message_id: str
    """The sentence that names it, with what it gives instead."""
    params: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The pair as plain JSON types."""
        return {**self.verdict.to_json(), "sentence": {"message_id": self.message_id, "params": dict(self.params)}}


def better_pair(a: Measurement, b: Measurement, candidates: Iterable[Measurement]) -> BetterPair | None:
    """The best pair for the same question: same task, same quantity, same two devices.

    Better means: fewer findings that forbid or weigh strongly; a caveat less is not worth another pair. A measurement
    of our own stays as it is; only its counterpart is exchanged for another reference. Among pairs that weigh the
    same, the one that exchanges least of (a, b) wins, then the one that keeps the baseline, then the nearest in its
    conditions.

    Args:
        a: The measurement that is judged.
        b: The baseline.
        candidates: The catalogue's measurements.

    Returns:
        The pair, or None when none is better than (a, b).
    """
    pool = [item for item in candidates if item.conditions.workload == a.conditions.workload and item.value is not None]
    asked = compare(a, b)
    best: tuple[tuple[int, ...], Measurement, Measurement, Verdict] | None = None
    for left in _alternatives(a, pool):
        for right in _alternatives(b, pool):
            verdict = compare(left, right)
            if verdict.level == "not-comparable" or verdict.weight[:HEAVY] >= asked.weight[:HEAVY]:
                continue
            changes = [item for item in ((left, a), (right, b)) if item[0].id != item[1].id]
            near = (len(changes), right.id != b.id, sum(_distance(*pair) for pair in changes))
            rank = (*verdict.weight[:HEAVY], *near, *verdict.weight)
            if best is None or rank < best[0]:
                best = rank, left, right, verdict
    if best is None:
        return None
    _rank, left, right, verdict = best
    message_id, params = _sentence(a, b, left, right, asked, verdict)
    return BetterPair(a=left, b=right, verdict=verdict, message_id=message_id, params=params)


def _alternatives(item: Measurement, pool: Sequence[Measurement]) -> list[Measurement]:
    if item.origin != "published":
        return [item]
    return [
        other
        for other in pool
        if other.device_id == item.device_id and _quantity(other) is not None and _quantity(other) == _quantity(item)
    ]


def _quantity(item: Measurement) -> str | None:
    return item.meaning.quantity if item.meaning else None


def _distance(one: Measurement, other: Measurement) -> int:
    """In how many conditions two measurements of one device differ."""
    fields = dataclasses.fields(one.conditions)
    return sum(getattr(one.conditions, field.name) != getattr(other.conditions, field.name) for field in fields)


def _sentence(
    a: Measurement, b: Measurement, left: Measurement, right: Measurement, asked: Verdict, verdict: Verdict
) -> tuple[str, dict[str, Any]]:
    batch = left.conditions.batch_size_per_device
    params: dict[str, Any] = {
        "batch": batch,
        "ratio": verdict.ratio,
        "instead": asked.ratio,
        "a": left.id,
        "b": right.id,
    }
    if asked.ratio is None or verdict.ratio is None:
        return "better-pair-first", params
    evened = a.conditions.batch_size_per_device != b.conditions.batch_size_per_device and batch is not None
    if not evened or batch != right.conditions.batch_size_per_device:
        return "better-pair", params
    changed = [new for new, old in ((left, a), (right, b)) if new.id != old.id]
    if len(changed) > 1:
        return "better-both", {**params, "label_a": left.label, "label_b": right.label}
    [new] = changed
    params |= {"label": new.label, "value": f"{new.value:,.5g}", "unit": new.unit}
    if new.metric == "s_per_image":
        return "better-time-per-image", params
    return "better-rate" if new.meaning and new.meaning.higher_is_better else "better-time", params
