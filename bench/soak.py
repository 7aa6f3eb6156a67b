"""`python -m bench.soak --runs 300 --kills 100`: does anything get lost when processes are killed at random?

Synthetic runs are queued while random processes of ours are killed with SIGKILL at random moments: the dispatcher,
runs, the app (its real pages in a process of their own, with the database open). At the end

- every run that was accepted has exactly one record,
- no result that was complete at any moment is gone or changed,
- the database that grew through all of it equals one that is rebuilt from the folders,
- no process of ours is left, and no lock is held.

The last line of stdout is one JSON document; the exit status is 1 when any of it does not hold.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from data.record_rows import TABLES
from data.store import Store, open_copy
from runners.lease import holder_of
from runners.paths import PROJECT_DIR
from runners.queue import RunQueue
from runners.queue_files import QueueFiles
from runners.rundir import RunDir, list_runs

LIMIT_S = 1800
SETTLE_S = 20
KINDS = ("runners.dispatcher", "runners.child", "bench.soak_app")


class Soak:
    """One soak in a folder of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Nothing is started yet."""
        self.rng = random.Random(seed)
        self.environment = {
            **os.environ,
            "LIKEFORLIKE_VAR": str(folder),
            "LIKEFORLIKE_LEASES": str(folder / "leases"),
        }
        os.environ.update(self.environment)
        self.folder = folder
        self.queue = RunQueue(folder / "runs")
        self.files = QueueFiles(folder / "runs")
        self.accepted: list[RunDir] = []
        self.complete: dict[str, bytes] = {}
        self.killed: Counter[str] = Counter()
        self.app: subprocess.Popen[bytes] | None = None
        self.problems: list[str] = []

    def run(self, runs: int, kills: int) -> None:
        """Queues and kills, then waits until every run has ended."""
        deadline_s = time.monotonic() + LIMIT_S
        while not self._all_ended() or len(self.accepted) < runs:
            self._keep_app()
            if len(self.accepted) < runs and len(self.files.entries()) < 20:
                fields = {"steps": self.rng.randint(1, 60), "step_ms": 5.0, "device": self.rng.choice(["auto", "cpu"])}
                self.accepted.append(self.queue.submit("synthetic", fields))
            self.queue.ensure_dispatcher()
            # Spread over the whole of it, however fast the machine is.
            if sum(self.killed.values()) * runs < len(self._ended()) * kills:
                time.sleep(self.rng.uniform(0, 0.3))
                self._kill_one()
            time.sleep(0.02)
            if time.monotonic() > deadline_s:
                self.problems.append(f"not ended after {LIMIT_S} s")
                return

    def check(self) -> None:
        """Adds to `problems` whatever does not hold."""
        if self.app is not None:
            self.app.kill()
            self.app.wait()
        self._check_records()
        self._check_database()
        deadline_s = time.monotonic() + SETTLE_S
        while (left := self._processes()) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        self.problems += [f"process {item.pid} is left: {item.cmdline()}" for item in left]
        held = holder_of("cpu-0")
        self.problems += [f"cpu-0 is held by {held}"] if held else []
        self.problems += [f"{run.run_id} is held as alive" for run in self.accepted if run.is_alive()]
        self.problems += [f"{entry.run_id} still waits" for entry in self.files.entries()]

    def _check_records(self) -> None:
        folders = {run.run_id for run in list_runs(self.queue.runs_dir)}
        accepted = {run.run_id for run in self.accepted}
        self.problems += [f"{run_id} was not asked for" for run_id in folders - accepted]
        for run in self.accepted:
            if not run.record_path.exists():
                self.problems.append(f"{run.run_id} has no record")
                continue
            record = run.record()
            told = sum(event.get("kind") == "started" for event in run.events())
            if told > 1:
                self.problems.append(f"{run.run_id} was begun {told} times")
            if record.status == "ok" and len(record.series[0].values) != record.spec["steps"]:
                self.problems.append(f"{run.run_id} is ok and lacks samples")
            if self.complete.get(run.run_id, run.record_path.read_bytes()) != run.record_path.read_bytes():
                self.problems.append(f"the record of {run.run_id} has changed")

    def _check_database(self) -> None:
        grown, rebuilt = self.folder / "likeforlike.duckdb", self.folder / "rebuilt.duckdb"
        tables = []
        for path in (grown, rebuilt):
            with Store(path, self.queue.runs_dir) as store:
                store.ingest()
                store.snapshot(path.with_suffix(".copy"))
            connection = open_copy(path.with_suffix(".copy"), memory_mib=512, threads=1)
            tables.append({name: _rows(connection, name) for name in TABLES})
            connection.close()
        self.problems += [
            f"table {name} differs from a rebuild" for name in TABLES if tables[0][name] != tables[1][name]
        ]

    def _ended(self) -> list[RunDir]:
        for run in self.accepted:
            if run.run_id not in self.complete and run.has_record():
                self.complete[run.run_id] = run.record_path.read_bytes()
        return [run for run in self.accepted if run.run_id in self.complete]

    def _all_ended(self) -> bool:
        return len(self._ended()) == len(self.accepted)

    def _keep_app(self) -> None:
        if self.app is not None and self.app.poll() is None:
            return
        if self.app is not None and self.app.returncode != -signal.SIGKILL:
            self.problems.append(f"the app ended by itself with {self.app.returncode}")
        with (self.folder / "app.log").open("ab") as log:
            command = [sys.executable, "-m", "bench.soak_app"]
            self.app = subprocess.Popen(command, cwd=PROJECT_DIR, env=self.environment, stdout=log, stderr=log)

    def _kill_one(self) -> None:
        by_kind: dict[str, list[psutil.Process]] = {}
        with contextlib.suppress(psutil.Error):
            for process in [*self._processes(), *([psutil.Process(self.app.pid)] if self.app else [])]:
                by_kind.setdefault(process.cmdline()[2], []).append(process)
        with contextlib.suppress(psutil.Error):
            # The kind first: the app is always there, a run only for half a second.
            kind = self.rng.choice([*KINDS])
            for victim in by_kind.get(kind, [])[:1]:
                victim.kill()
                self.killed[kind] += 1

    def _processes(self) -> list[psutil.Process]:
        """The dispatcher and runs of this soak: their command line names its folder."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if words[1:2] == ["-m"] and any(word.startswith(str(self.folder)) for word in words):
                    found.append(process)
        return found


def _rows(connection: Any, table: str) -> list[Any]:
    return sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr)


def main(arguments: list[str] | None = None) -> int:
    """Runs one soak; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="likeforlike-soak-") as folder:
        soak = Soak(Path(folder).resolve(), options.seed)
        began_s = time.monotonic()
        soak.run(options.runs, options.kills)
        soak.check()
        if soak.problems:
            sys.stderr.write((Path(folder) / "app.log").read_text(encoding="utf-8", errors="replace")[-4000:])
    statuses = Counter(json.loads(record)["status"] for record in soak.complete.values())
    result = {
        "runs": len(soak.accepted),
        "killed": dict(soak.killed),
        "statuses": dict(statuses),
        "seconds": round(time.monotonic() - began_s),
        "problems": soak.problems,
    }
    print(json.dumps(result))
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
