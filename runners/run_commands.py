"""What `python -m runners run`, `sweep` and `calibrate` do: put runs into the queue, wait, and print their records."""

import argparse
import dataclasses
import json
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from runners import environment
from runners.calibrate import WORKLOAD as CALIBRATION
from runners.errors import DeviceBusy
from runners.execute import all_refusals
from runners.lease import holder_of, lease_name
from runners.paths import runs_dir
from runners.progress import read_progress
from runners.queue import RunQueue, wait_for_record
from runners.records import Record, new_run_id, record_to_json
from runners.registry import workload
from runners.rundir import RunDir
from runners.spec_fields import parse_assignments
from runners.stats import between_runs
from runners.sweep import sweep as sweep_sizes
from runners.sweep import throughput

EXIT_BY_STATUS = {"ok": 0, "failed": 1, "lost": 1, "timeout": 124, "cancelled": 130}
MAX_PRINTED_BYTES = 1_000_000


def run(options: argparse.Namespace) -> int:
    """`run`: once, or several times in fresh processes."""
    folder: Path = options.runs_dir or runs_dir()
    asked = Asked(options.workload, parse_assignments(options.assignments), options.preset, options.timeout_s)
    if options.no_wait:
        _refuse_to_wait(RunQueue(folder), str(asked.fields.get("device") or "auto"), asked.workload)
    return _repeat(RunQueue(folder), asked, options.repeat)


def calibrate(options: argparse.Namespace) -> int:
    """`calibrate`: one run of that workload."""
    fields: dict[str, Any] = {"device": options.device}
    if options.seconds is not None:
        fields["seconds"] = options.seconds
    return _repeat(RunQueue(options.runs_dir or runs_dir()), Asked(CALIBRATION, fields), 1)


def sweep(options: argparse.Namespace) -> int:
    """`sweep`: at doubling batch sizes, each a run of its own."""
    folder: Path = options.runs_dir or runs_dir()
    queue, interrupts = RunQueue(folder), Interrupts()
    fields = parse_assignments(options.assignments)

    def carry_out(changed: Mapping[str, Any], group_id: str, place: int) -> Record:
        # Complete fields, so no preset: its name would claim what a changed batch size is not.
        asked = Asked(options.workload, changed, None, options.timeout_s)
        return _run_once(queue, asked, interrupts, group_id, place)[1]

    sizes: list[dict[str, Any]] = []
    for size, record, refusal in sweep_sizes(
        folder, options.workload, fields, options.preset, options.largest, carry_out
    ):
        rate = throughput(record) if record else None
        ended = record.status if record else "refused"
        sizes.append({"batch_size": size, "status": ended, "per_s": rate, "run_id": record.run_id if record else None})
        why = str(refusal) if refusal else record.error.message if record and record.error else ""
        tell(" ".join(filter(None, (f"batch size {size}: {ended}", f"{rate:.4g} per second" if rate else "", why))))
        if interrupts.asked:
            break
    interrupts.ignore()
    print_json({"sweep": sizes})
    if interrupts.asked:
        return EXIT_BY_STATUS["cancelled"]
    return 0 if any(item["status"] == "ok" for item in sizes) else 1


@dataclass(frozen=True)
class Asked:
    """What shall be run."""

    workload: str
    fields: Mapping[str, Any]
    preset: str | None = None
    timeout_s: float | None = None


def _repeat(queue: RunQueue, asked: Asked, count: int) -> int:
    """Runs it so often, prints every record, and where there are several the spread of their rates."""
    interrupts = Interrupts()
    group_id = new_run_id() if count > 1 else None
    rates: list[float] = []
    status = 0
    for repeat in range(count):
        run_dir, record = _run_once(queue, asked, interrupts, group_id, repeat)
        status = max(status, EXIT_BY_STATUS[record.status])
        if (rate := throughput(record)) is not None:
            rates.append(rate)
        if repeat == count - 1 or interrupts.asked:
            interrupts.ignore()
        _print_record(run_dir, record)
        if interrupts.asked:
            status = max(status, EXIT_BY_STATUS["cancelled"])
            break
    if count > 1:
        print_json({"group_id": group_id, "repeats": dataclasses.asdict(between_runs(rates)) if rates else None})
    return status


def _run_once(
    queue: RunQueue, asked: Asked, interrupts: "Interrupts", group_id: str | None, repeat: int
) -> tuple[RunDir, Record]:
    """Submits one run, waits for its record, and raises what it was refused with."""
    run_dir = queue.submit(
        asked.workload,
        asked.fields,
        preset=asked.preset,
        source="cli",
        timeout_s=asked.timeout_s,
        group_id=group_id,
        repeat=repeat,
    )
    progress_line = _ProgressLine(queue, run_dir)

    def watch() -> None:
        progress_line()
        if interrupts.asked and not run_dir.cancel_asked():
            queue.cancel(run_dir.run_id)

    wait_for_record(queue, run_dir, watch)
    record = run_dir.record()
    refused = record.error is not None and record.error.type in {kind.__name__ for kind in all_refusals()}
    if refused and record.error is not None:
        # Nothing was run and whoever asked is told now, so there is nothing to keep.
        shutil.rmtree(run_dir.path, ignore_errors=True)
        raise next(kind for kind in all_refusals() if kind.__name__ == record.error.type)(
            record.error.message_id, **record.error.params
        )
    tell("")
    return run_dir, record


def _refuse_to_wait(queue: RunQueue, wanted: str, workload_name: str) -> None:
    """For `--no-wait`.

    Raises:
        DeviceBusy: Runs are before this one, or another process has the device.
    """
    state = queue.state()
    before = len(state.waiting) + (state.current is not None)
    if before:
        raise DeviceBusy("queue-busy", count=before)
    if wanted == "auto":
        wanted = environment.likely_device().kind if workload(workload_name).needs_torch else "none"
    holder = holder_of(lease_name(wanted))
    if holder is not None:
        raise DeviceBusy("device-busy", device=lease_name(wanted), holder=holder)


class _ProgressLine:
    """Shows progress on stderr, where a person looks at it, at most twice a second."""

    def __init__(self, queue: RunQueue, run_dir: RunDir) -> None:
        self._queue = queue
        self._run_dir = run_dir
        self._calls = 0

    def __call__(self) -> None:
        self._calls += 1
        if not sys.stderr.isatty() or self._calls % 10:
            return
        now = read_progress(self._run_dir)
        if now.status == "queued":
            before = self._queue.position(self._run_dir.run_id)
            text = now.holder or (f"{before} before this one" if before else "starting")
            text = f"waiting: {text}" if before or now.holder else text
        else:
            left = "" if now.seconds_left is None else f", {now.seconds_left:.0f} s left"
            text = f"{now.phase or now.status} {now.step}/{now.steps}{left}"
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


class Interrupts:
    """Remembers Ctrl-C and its relatives. An exception from a handler could strike while a record is written."""

    def __init__(self) -> None:
        self.asked = False
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, self._ask)

    def ignore(self) -> None:
        """The record is written: a late signal must not change the exit status while Python shuts down."""
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True


def _print_record(run_dir: RunDir, record: Record) -> None:
    document = record_to_json(record)
    if record.error is not None:
        tell(record.error.message)
    text = json.dumps(document, ensure_ascii=False)
    if len(text.encode()) > MAX_PRINTED_BYTES:
        summary = {key: document[key] for key in ("schema_version", "run_id", "workload", "status", "metrics", "error")}
        text = json.dumps({**summary, "record_path": str(run_dir.record_path)}, ensure_ascii=False)
    tell(f"Run folder: {run_dir.path}")
    print_line(text)


def print_json(document: Any) -> None:
    """One line of stdout."""
    print_line(json.dumps(document, ensure_ascii=False))


def print_line(text: str) -> None:
    """To stdout, at once: a pipe would keep it back."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """To stderr."""
    sys.stderr.write(text + "\n")
