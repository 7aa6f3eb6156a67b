"""The command line: `python -m runners list|env|run|sweep|calibrate|queue`.

The last line of stdout is one JSON document (with --json, and always for all but `list` and `env`); everything else
goes to stderr. `run` puts its run into the same queue as the app, waits for its end, and cancels it on Ctrl-C; so does
`sweep`, at doubling batch sizes, and given again it goes on where it stopped; so does `calibrate`.

Exit status: 0 ok, 1 failed (recorded), 2 bad specification, 3 device busy, 4 does not fit, 124 time limit (recorded),
130 cancelled (recorded).
"""

import argparse
import dataclasses
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from runners import environment, queue_commands
from runners.calibrate import WORKLOAD
from runners.errors import DeviceBusy, DoesNotFit, RunnersError, SpecError
from runners.execute import all_refusals
from runners.lease import holder_of, lease_name
from runners.paths import runs_dir
from runners.progress import read_progress
from runners.queue import RunQueue, wait_for_record
from runners.records import Record, new_run_id, record_to_json
from runners.registry import listing, workload
from runners.rundir import RunDir
from runners.specs import DEVICES, parse_assignments
from runners.stats import between_runs
from runners.sweep import sweep, throughput

EXIT_BY_STATUS = {"ok": 0, "failed": 1, "lost": 1, "timeout": 124, "cancelled": 130}
MAX_PRINTED_BYTES = 1_000_000


def main(arguments: list[str] | None = None) -> int:
    """Parses and carries out one command; returns the exit status."""
    try:
        options = _parser().parse_args(arguments)
        status: int = options.command(options)
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except RunnersError as error:
        _tell(str(error))
        _print_json({"error": {"type": type(error).__name__, "message_id": error.message_id, "message": str(error)}})
        return 3 if isinstance(error, DeviceBusy) else 4 if isinstance(error, DoesNotFit) else 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m runners", description="Run workloads on the local accelerator.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    list_command = commands.add_parser("list", help="workloads, presets and fields")
    list_command.add_argument("--json", action="store_true", help="as one JSON document")
    list_command.set_defaults(command=_list)

    env_command = commands.add_parser("env", help="this machine and its software")
    env_command.add_argument("--json", action="store_true", help="as one JSON document")
    env_command.add_argument("--probe", action="store_true", help="ask torch, in a child process, and keep the answer")
    env_command.set_defaults(command=_env)

    run_command = commands.add_parser("run", help="run a workload and print its record")
    _add_what_to_run(run_command)
    run_command.add_argument("--no-wait", action="store_true", help="end with status 3 rather than wait in line")
    run_command.add_argument(
        "--repeat", type=_count, metavar="N", default=1, help="run N times, each in a fresh process; show their spread"
    )
    run_command.set_defaults(command=_run)

    sweep_command = commands.add_parser("sweep", help="run at doubling batch sizes until memory ends or speed falls")
    _add_what_to_run(sweep_command)
    sweep_command.add_argument("--largest", type=_count, metavar="N", default=65_536, help="no batch size above N")
    sweep_command.set_defaults(command=_sweep)

    calibrate_command = commands.add_parser("calibrate", help="measure what the device does at most, for some seconds")
    calibrate_command.add_argument("--device", choices=DEVICES, default="auto", help="which one (default: auto)")
    calibrate_command.add_argument("--seconds", type=_seconds, metavar="N", help="time for each size")
    calibrate_command.add_argument("--runs-dir", type=Path, metavar="DIR", help="where run folders go")
    calibrate_command.set_defaults(command=_calibrate)

    queue_command = commands.add_parser("queue", help="look at the queue, and change it")
    queue_command.add_argument("action", choices=queue_commands.ACTIONS, help="what to do; `list` shows the queue")
    queue_command.add_argument("run_id", nargs="?", metavar="RUN", help="for cancel, remove, retry and move")
    queue_command.add_argument("--places", type=int, default=-1, help="for move: up (negative) or down (default: -1)")
    queue_command.add_argument("--runs-dir", type=Path, metavar="DIR", help="where run folders are (default: var/runs)")
    queue_command.set_defaults(command=_queue)
    return parser


def _add_what_to_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("workload", metavar="WORKLOAD", help="see `list`")
    command.add_argument("--preset", metavar="NAME", help="named field values; see `list`")
    command.add_argument(
        "--set", metavar="FIELD=VALUE", action="append", default=[], dest="assignments", help="set one field"
    )
    command.add_argument("--runs-dir", type=Path, metavar="DIR", help="where run folders go (default: var/runs)")
    command.add_argument("--timeout-s", type=_seconds, metavar="N", help="stop each run after N seconds")


class _Parser(argparse.ArgumentParser):
    """Ends a wrong call as every other refusal ends: a sentence on stderr, a JSON document on stdout."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise SpecError("usage", text=message)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"give a number of seconds above 0, not {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 100_000 or len(text) > 6:
        raise argparse.ArgumentTypeError(f"give a whole number from 1 to 100,000, not {text!r}")
    return int(text)


def _list(options: argparse.Namespace) -> int:
    workloads = listing()
    if options.json:
        _print_json(workloads)
        return 0
    for item in workloads:
        _print(f"{item['name']}: {item['summary']}")
        for name, preset in item["presets"].items():
            _print(f"  --preset {name}: {preset['title']}")
        for field in item["fields"]:
            unit = f" {field['unit']}" if field["unit"] else ""
            default = "auto" if field["default"] is None else field["default"]
            _print(f"  --set {field['name']}={default}{unit}  {field['help']}")
    return 0


def _env(options: argparse.Namespace) -> int:
    described = environment.describe()
    described["probe"] = environment.probe() if options.probe else environment.cached_probe()
    if options.json:
        _print_json(described)
        return 0
    for key, value in described.items():
        _print(f"{key}: {value}")
    return 0


def _run(options: argparse.Namespace) -> int:
    values = parse_assignments(options.assignments)
    folder: Path = options.runs_dir or runs_dir()
    queue = RunQueue(folder)
    if options.no_wait:
        _refuse_to_wait(queue, str(values.get("device") or "auto"), options.workload)
    interrupts = _Interrupts()
    group_id = new_run_id() if options.repeat > 1 else None
    rates: list[float] = []
    status = 0
    for repeat in range(options.repeat):
        run_dir, record = _run_once(queue, options, values, interrupts, group_id, repeat)
        status = max(status, EXIT_BY_STATUS[record.status])
        if (rate := throughput(record)) is not None:
            rates.append(rate)
        _print_record(run_dir, record)
        if record.status == "cancelled":
            break
    if options.repeat > 1 and rates:
        _print_json({"group_id": group_id, "repeats": dataclasses.asdict(between_runs(rates))})
    return status


def _calibrate(options: argparse.Namespace) -> int:
    fields = {"device": options.device, **({} if options.seconds is None else {"seconds": options.seconds})}
    assignments = [f"{name}={value}" for name, value in fields.items()]
    asked = {"workload": WORKLOAD, "preset": None, "assignments": assignments, "timeout_s": None}
    return _run(argparse.Namespace(**{**vars(options), **asked, "no_wait": False, "repeat": 1, "command": _run}))


def _sweep(options: argparse.Namespace) -> int:
    folder: Path = options.runs_dir or runs_dir()
    queue, interrupts = RunQueue(folder), _Interrupts()
    values = parse_assignments(options.assignments)

    def run(fields: Mapping[str, Any], group_id: str, place: int) -> Record:
        # The fields are complete, so the preset's name would only claim what a changed batch size is not.
        return _run_once(
            queue, argparse.Namespace(**{**vars(options), "preset": None}), fields, interrupts, group_id, place
        )[1]

    sizes = []
    for size, record in sweep(folder, options.workload, values, options.preset, options.largest, run):
        rate = throughput(record) if record else None
        ended = record.status if record else "does-not-fit"
        sizes.append({"batch_size": size, "status": ended, "per_s": rate, "run_id": record.run_id if record else None})
        _tell(f"batch size {size}: {ended}" + (f", {rate:.4g} per second" if rate else ""))
        if ended == "cancelled":
            break
    _print_json({"sweep": sizes})
    ok = any(item["status"] == "ok" for item in sizes)
    return 130 if sizes[-1]["status"] == "cancelled" else 0 if ok else 1


def _run_once(
    queue: RunQueue,
    options: argparse.Namespace,
    values: Mapping[str, Any],
    interrupts: "_Interrupts",
    group_id: str | None,
    repeat: int,
) -> tuple[RunDir, Record]:
    """Submits one run, waits for its record, and raises what it was refused with."""
    run_dir = queue.submit(
        options.workload,
        values,
        preset=options.preset,
        source="cli",
        timeout_s=options.timeout_s,
        group_id=group_id,
        repeat=repeat,
    )
    progress_line = _ProgressLine(queue, run_dir)

    def watch() -> None:
        progress_line()
        if interrupts.asked and not run_dir.cancel_asked():
            queue.cancel(run_dir.run_id)

    wait_for_record(queue, run_dir, watch)
    if options.command is _run and repeat == options.repeat - 1:
        interrupts.ignore()
    record = run_dir.record()
    refused = record.error is not None and record.error.type in {kind.__name__ for kind in all_refusals()}
    if refused and record.error is not None:
        # Nothing was run and whoever asked is told now, so there is nothing to keep.
        shutil.rmtree(run_dir.path, ignore_errors=True)
        raise next(kind for kind in all_refusals() if kind.__name__ == record.error.type)(
            record.error.message_id, **record.error.params
        )
    _tell("")
    return run_dir, record


def _queue(options: argparse.Namespace) -> int:
    document = queue_commands.carry_out(
        RunQueue(options.runs_dir or runs_dir()), options.action, options.run_id, options.places
    )
    _print_json(document)
    return 0


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


class _Interrupts:
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
        _tell(record.error.message)
    text = json.dumps(document, ensure_ascii=False)
    if len(text.encode()) > MAX_PRINTED_BYTES:
        summary = {key: document[key] for key in ("schema_version", "run_id", "workload", "status", "metrics", "error")}
        text = json.dumps({**summary, "record_path": str(run_dir.record_path)}, ensure_ascii=False)
    _tell(f"Run folder: {run_dir.path}")
    _print(text)


def _print_json(document: Any) -> None:
    _print(json.dumps(document, ensure_ascii=False))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
