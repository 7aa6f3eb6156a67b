"""`python -m data export`: runs as a bundle, a table, a report or Markdown."""

import argparse
import json
import sys
from pathlib import Path

from data.exports.formats import SUFFIXES, write
from data.exports.selection import choose

OK = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments, besides those that all commands share."""
    parser.add_argument("runs", metavar="ID", nargs="*", help="these runs; without any, all that are not deleted")
    parser.add_argument("--to", metavar="FILE", type=Path, required=True, help=f"ends with {', '.join(SUFFIXES)}")
    parser.add_argument("--workload", help="only runs of this workload")
    parser.add_argument("--device", help="only runs of the device with this name")
    parser.add_argument("--status", help="only runs that ended so: ok, failed, …")


def run(options: argparse.Namespace) -> int:
    """Exports; the exit code.

    Raises:
        ExportError: Nothing matches, or the file cannot be written.
        RecordError: A named run is missing or cannot be read.
    """
    runs = choose(
        options.runs_dir, options.runs, workload=options.workload, device=options.device, status=options.status
    )
    write(runs, options.to, options.runs_dir)
    if options.json:
        print(json.dumps({"file": str(options.to), "runs": len(runs)}))  # noqa: T201 - a command line
    else:
        print(f"{len(runs)} runs, {options.to.stat().st_size} bytes: {options.to}", file=sys.stderr)  # noqa: T201
    return OK
