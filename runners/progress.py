"""How far a run is, read from its folder, so that any tab, shell or later process sees the same."""

import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from runners.rundir import RunDir


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One look at a run."""

    status: Literal["queued", "loading", "running", "done"]
    phase: str = ""
    """download, load, denoise, measured; empty while queued."""
    step: int = 0
    steps: int = 0
    """0 where the number of steps (or bytes, while downloading) is not known."""
    batch: int = 0
    batches: int = 1
    images: int = 0
    elapsed_s: float = 0.0
    seconds_left: float | None = None
    """None until two steps have been seen."""
    preview_path: Path | None = None
    holder: str | None = None
    """While queued: which other process has the device that the run waits for."""

    @property
    def fraction(self) -> float:
        """Part of the current phase that is done, 0 to 1, over all batches."""
        if not self.steps:
            return 0.0
        return min(1.0, (self.batch + self.step / self.steps) / max(1, self.batches))


def read_progress(run_dir: RunDir) -> Progress:
    """Reads the newest events of a run."""
    if run_dir.has_record():
        return Progress(status="done")
    started: dict[str, Any] | None = None
    holder: str | None = None
    steps: list[dict[str, Any]] = []
    for event in run_dir.events():
        if not _is_whole(event):
            continue
        if event.get("kind") == "started":
            started = event
        elif event.get("kind") == "waiting":
            holder = str(event.get("holder"))
        elif event.get("kind") == "progress":
            steps.append(event)
    if started is None:
        return Progress(status="queued", holder=holder)
    elapsed_s = (datetime.now(UTC) - _time(started)).total_seconds()
    if not steps:
        return Progress(status="loading", phase="load", elapsed_s=elapsed_s)
    last = steps[-1]
    loading = last["phase"] in ("download", "load")
    return Progress(
        status="loading" if loading else "running",
        phase=last["phase"],
        step=last["step"],
        steps=last["steps"],
        batch=last.get("batch", 0),
        batches=last.get("batches", 1),
        images=last.get("images", 0),
        elapsed_s=elapsed_s,
        seconds_left=_seconds_left(steps),
        preview_path=run_dir.preview_path if run_dir.preview_path.exists() else None,
    )


@dataclass(frozen=True, kw_only=True)
class Curve:
    """What a run has told of its steps so far, one value per told step."""

    step: tuple[int, ...]
    """Counted over all batches."""
    steps_per_s: tuple[float | None, ...]
    """Pace since the told step before; None for the first, and where no time had passed."""
    loss: tuple[float | None, ...]
    """None where the workload has none."""


def read_curve(run_dir: RunDir, points: int = 300) -> Curve:
    """The steps of the phase that goes on, at most the newest `points` of them."""
    events = [event for event in run_dir.events() if event.get("kind") == "progress" and _is_whole(event)]
    same = [event for event in events if event["phase"] == events[-1]["phase"] and event["steps"]][-points:]
    positions = [event.get("batch", 0) * event["steps"] + event["step"] for event in same]
    paces: list[float | None] = [None]
    for before, after, earlier, position in zip(same, same[1:], positions, positions[1:], strict=False):
        seconds = (_time(after) - _time(before)).total_seconds()
        paces.append((position - earlier) / seconds if seconds > 0 and position > earlier else None)
    losses = [event.get("loss") for event in same]
    return Curve(
        step=tuple(positions),
        steps_per_s=tuple(paces[: len(positions)]),
        loss=tuple(float(loss) if isinstance(loss, int | float) else None for loss in losses),
    )


def _is_whole(event: dict[str, Any]) -> bool:
    """Whether an event has what is read here; a damaged line, or one of another version, is passed over."""
    numbers = [event.get(name, 0) for name in ("step", "steps", "batch", "batches", "images")]
    if not all(isinstance(number, int) and 0 <= number < 2**63 for number in numbers):
        return False
    if event.get("kind") == "progress" and not (
        isinstance(event.get("phase"), str) and {"step", "steps"} <= set(event)
    ):
        return False
    try:
        return _time(event).tzinfo is not None
    except (KeyError, TypeError, ValueError):
        return False


def _seconds_left(events: list[dict[str, Any]]) -> float | None:
    """From the median pace of the current phase: robust against a slow first step and against pauses."""
    last = events[-1]
    same = [event for event in events if event["phase"] == last["phase"] and event["steps"]]
    positions = [event.get("batch", 0) * event["steps"] + event["step"] for event in same]
    paces = [
        (_time(after) - _time(before)).total_seconds() / (position - earlier)
        for before, after, earlier, position in zip(same, same[1:], positions, positions[1:], strict=False)
        if position > earlier
    ]
    if not paces:
        return None
    remaining: int = last["steps"] * last.get("batches", 1) - positions[-1]
    return float(statistics.median(paces) * remaining)


def _time(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["t"])
