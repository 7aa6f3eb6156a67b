"""`python -m data import`: result files of other programs, and bundles, become run folders."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from data.importers.keep import FileResult, store
from data.importers.plan import FilePlan, RunPlan, make_plan
from data.importers.reading import Source
from data.messages import render
from runners.plausibility import remarks
from runners.spec_fields import parse_assignments

OK, REFUSED = 0, 1
SHOWN_RUNS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments, besides those that all commands share."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument(
        "--set", metavar="FIELD=VALUE", action="append", default=[], help="what the files do not say; may be repeated"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be stored, and store nothing")


def run(options: argparse.Namespace) -> int:
    """Imports, or shows what it would do; the exit code.

    Raises:
        ImportRefused: An answer is none that can be given.
        SpecError: An answer is not of the form field=value.
    """
    sources = [Source(path, path.name) for path in options.files]
    plans = make_plan(sources, parse_assignments(options.set), options.runs_dir)
    if options.dry_run:
        results = [FileResult(name=plan.source.name, format=plan.format, problem=plan.problem) for plan in plans]
    else:
        results = [store(plan, options.runs_dir) for plan in plans]
    for plan, result in zip(plans, results, strict=True):
        _say(plan, result, dry_run=options.dry_run)
    if options.json:
        files = [_document(plan, result) for plan, result in zip(plans, results, strict=True)]
        print(json.dumps({"dry_run": options.dry_run, "files": files}, default=str))  # noqa: T201 - a command line
    return REFUSED if any(result.problem for result in results) else OK


def _say(plan: FilePlan, result: FileResult, *, dry_run: bool) -> None:
    if result.problem:
        _print(render(*result.problem))
        return
    if plan.companion_of:
        _print(f"{result.name}: {plan.format}, for {plan.companion_of}")
        return
    if dry_run:
        _print(f"{result.name}: {plan.format}, {len(plan.runs)} runs")
    else:
        added, restored, here = len(result.added), len(result.restored), len(result.duplicates)
        _print(f"{result.name}: {plan.format}, {added} added, {restored} restored, {here} already here")
    for item in plan.runs[:SHOWN_RUNS]:
        _print(f"  {_line(item)}")
    if len(plan.runs) > SHOWN_RUNS:
        _print(f"  and {len(plan.runs) - SHOWN_RUNS} more")
    found = {name: params for item in plan.runs for name, params in remarks(item.record).items()}
    for name, params in found.items():
        _print(f"  note: {render(name, params)}")
    if plan.asked:
        _print(f"  needed, with --set: {', '.join(plan.asked)}")
    if plan.useful and any(item.state == "new" for item in plan.runs):
        _print(f"  not in the file, and useful: {', '.join(plan.useful)}")


def _line(item: RunPlan) -> str:
    record = item.record
    first = record.metrics[0] if record.metrics else None
    number = f"{first.name} {first.value:g} {first.unit}".rstrip() if first else "-"
    return f"{item.state:9} {item.run_id}  {item.title or record.workload}  {record.device.name}  {number}"


def _document(plan: FilePlan, result: FileResult) -> dict[str, Any]:
    problem = {"message_id": result.problem[0], "params": result.problem[1]} if result.problem else None
    return {
        "file": result.name,
        "format": plan.format,
        "problem": problem,
        "added": result.added,
        "restored": result.restored,
        "duplicates": result.duplicates,
        "asked": plan.asked,
        "useful": plan.useful,
        "runs": [{"run_id": item.run_id, "title": item.title, "state": item.state} for item in plan.runs],
    }


def _print(text: str) -> None:
    """For people: names of files may hold bytes that are no text."""
    print(text.encode("utf-8", "replace").decode(), file=sys.stderr)  # noqa: T201 - a command line
