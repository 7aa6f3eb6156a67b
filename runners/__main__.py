"""The command line: `python -m runners list|env|run|sweep|calibrate|queue`.

The last line of stdout is one JSON document (with --json, and always for all but `list` and `env`); everything else
goes to stderr. `run` puts its run into the same queue as the app, waits for its end, and cancels it on Ctrl-C; so does
`sweep`, at doubling batch sizes, and given again it goes on where it stopped; so does `calibrate`.

Exit status: 0 ok, 1 failed (recorded), 2 bad specification, 3 device busy, 4 does not fit, 124 time limit (recorded),
130 cancelled (recorded).
"""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from runners import environment, queue_commands, run_commands
from runners.errors import DeviceBusy, DoesNotFit, RunnersError, SpecError
from runners.paths import runs_dir
from runners.queue import RunQueue
from runners.registry import listing
from runners.run_commands import print_json, print_line, tell
from runners.specs import DEVICES


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
        tell(str(error))
        print_json({"error": {"type": type(error).__name__, "message_id": error.message_id, "message": str(error)}})
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
    run_command.set_defaults(command=run_commands.run)

    sweep_command = commands.add_parser("sweep", help="run at doubling batch sizes until memory ends or speed falls")
    _add_what_to_run(sweep_command)
    sweep_command.add_argument("--largest", type=_count, metavar="N", default=65_536, help="no batch size above N")
    sweep_command.set_defaults(command=run_commands.sweep)

    calibrate_command = commands.add_parser("calibrate", help="measure what the device does at most, for some seconds")
    calibrate_command.add_argument("--device", choices=DEVICES, default="auto", help="which one (default: auto)")
    calibrate_command.add_argument("--seconds", type=_seconds, metavar="N", help="time for each size")
    calibrate_command.add_argument("--runs-dir", type=Path, metavar="DIR", help="where run folders go")
    calibrate_command.set_defaults(command=run_commands.calibrate)

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
        print_json(workloads)
        return 0
    for item in workloads:
        print_line(f"{item['name']}: {item['summary']}")
        for name, preset in item["presets"].items():
            print_line(f"  --preset {name}: {preset['title']}")
        for field in item["fields"]:
            unit = f" {field['unit']}" if field["unit"] else ""
            default = "auto" if field["default"] is None else field["default"]
            print_line(f"  --set {field['name']}={default}{unit}  {field['help']}")
    return 0


def _env(options: argparse.Namespace) -> int:
    described = environment.describe()
    described["probe"] = environment.probe() if options.probe else environment.cached_probe()
    if options.json:
        print_json(described)
        return 0
    for key, value in described.items():
        print_line(f"{key}: {value}")
    return 0


def _queue(options: argparse.Namespace) -> int:
    document = queue_commands.carry_out(
        RunQueue(options.runs_dir or runs_dir()), options.action, options.run_id, options.places
    )
    print_json(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
