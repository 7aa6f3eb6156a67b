"""The command line of the data layer.

    python -m data ingest                      take new run folders into the database
    python -m data rebuild                     make the database anew from the run folders
    python -m data check                       validate the reference catalogue and every record
    python -m data query "SELECT ..."          one read-only SELECT; works while the app is open
    python -m data compare ID ID               the verdict on two runs or references
    python -m data import FILE...              result files of other programs, and bundles, become runs
    python -m data export [ID...] --to FILE    runs as .zip, .csv, .parquet, .json, .html or .md

stdout is for results only; with --json its last line is one JSON document. Diagnostics go to stderr. Exit codes: 0 ok,
1 problems found or refused, 2 bad usage.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data import export_command, import_command
from data.better_pair import better_pair
from data.catalogue import load_catalogue, read_catalogue
from data.errors import StoreError
from data.ingest import IngestReport, read_problems
from data.lookup import compare_ids
from data.messages import render
from data.query import database_copy, run_query
from data.store import Notice, Store
from runners.errors import RunnersError
from runners.paths import database_path, runs_dir

OK, PROBLEMS = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        if sys.stdout:  # None where it was closed from the start
            sys.stdout.flush()  # here, where a closed pipe is caught, and not while Python shuts down
    except (StoreError, RunnersError) as error:
        print(error, file=sys.stderr)
        if options.json:
            print(json.dumps({"error": {"message_id": error.message_id, "params": error.params}}, default=str))
        return PROBLEMS
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # there, whoever read has enough
            print(render("output-failed", {"reason": error.strerror or str(error)}), file=sys.stderr)
        # What is still buffered must go somewhere, or Python complains on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROBLEMS
    return code


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--runs-dir", type=Path, default=runs_dir(), help="run folders (default: %(default)s)")
    shared.add_argument("--db", type=Path, default=database_path(), help="database file (default: %(default)s)")
    shared.add_argument("--json", action="store_true", help="end stdout with one JSON document")
    parser = argparse.ArgumentParser(prog="python -m data", description="What LikeForLike remembers.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, parents=[shared], help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    add("ingest", _ingest, "Takes new and changed run folders into the database.")
    add("rebuild", _rebuild, "Makes the database anew from the run folders.")
    add("check", _check, "Validates the reference catalogue and every record.")
    add("query", _query, "Runs one SELECT on a read-only copy of the database.").add_argument("sql", metavar="SELECT")
    import_command.add_arguments(add("import", import_command.run, "Takes in results of other programs, and bundles."))
    export_command.add_arguments(add("export", export_command.run, "Hands out runs as a bundle, table or report."))
    compare = add("compare", _compare, "Gives the verdict on two runs or references, the second being the baseline.")
    compare.add_argument("a", metavar="ID")
    compare.add_argument("b", metavar="ID")
    compare.add_argument("--metric", help="compare this metric of a run; by default the one that fits best")
    return parser


def _ingest(options: argparse.Namespace) -> int:
    with Store(options.db, options.runs_dir) as store:
        report = store.ingest()
        _say_notices(store.notices)
        return _report(report, options.json)


def _rebuild(options: argparse.Namespace) -> int:
    with Store(options.db, options.runs_dir) as store:
        report = store.rebuild()
        _say_notices(store.notices)
        return _report(report, options.json)


def _say_notices(notices: tuple[Notice, ...]) -> None:
    for notice in notices:
        print(render(notice.message_id, notice.params), file=sys.stderr)


def _report(report: IngestReport, as_json: bool) -> int:
    for problem in report.problems:
        print(render(problem.message_id, problem.params), file=sys.stderr)
    if as_json:
        print(json.dumps(asdict(report)))
    else:
        print(
            f"added {report.added}, updated {report.updated}, removed {report.removed}, "
            f"unchanged {report.unchanged}, unfinished {report.unfinished}, unreadable {len(report.problems)} "
            f"({report.duration_s:.2f} s)"
        )
    return PROBLEMS if report.problems else OK


def _check(options: argparse.Namespace) -> int:
    catalogue, bad_rows = read_catalogue()
    records, unreadable = read_problems(options.runs_dir)
    texts = [str(row) for row in bad_rows] + [render(item.message_id, item.params) for item in unreadable]
    for text in texts:
        print(text, file=sys.stderr)
    if options.json:
        document = {
            "references": len(catalogue.references),
            "records": records,
            "bad_rows": [asdict(row) for row in bad_rows],
            "unreadable_records": [asdict(problem) for problem in unreadable],
        }
        print(json.dumps(document, default=str))
    else:
        print(f"{len(catalogue.references)} references, {records} records, {len(texts)} problems")
    return PROBLEMS if texts else OK


def _query(options: argparse.Namespace) -> int:
    with database_copy(options.db, options.runs_dir, _say_notices) as copy:
        result = run_query(options.sql, copy)
    if options.json:
        print(json.dumps(asdict(result)))
        return OK
    _print_table([list(result.columns), *([_cell(value) for value in row] for row in result.rows)])
    if result.truncated:
        print(f"Only the first {len(result.rows)} rows are shown.", file=sys.stderr)
    return OK


def _print_table(lines: list[list[str]]) -> None:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return " ".join(text.split()) if len(text) <= 80 else " ".join(text.split())[:79] + "…"


def _compare(options: argparse.Namespace) -> int:
    catalogue = load_catalogue()
    a, b, verdict = compare_ids(options.a, options.b, catalogue, options.runs_dir, options.metric)
    better = better_pair(a, b, catalogue.measurements)
    if options.json:
        document = {**verdict.to_json(), "better_pair": better.to_json() if better else None}
        print(json.dumps(document, default=str, allow_nan=False))
        return OK
    print(render(verdict.message_id, verdict.params))
    for finding in verdict.findings:
        print(f"  {finding.severity}: {render(finding.message_id, finding.params)}")
    if better:
        print(render(better.message_id, better.params))
        print(f"  {better.a.id} and {better.b.id}")
    return OK


if __name__ == "__main__":
    sys.exit(main())
