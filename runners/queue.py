"""The queue of runs, as the app and the command line use it: all of it is files, so any process sees the same.

A run that `submit` has accepted ends in exactly one record, whoever is killed meanwhile. The dispatcher
(`runners.dispatcher`) carries the runs out, one after the other; whatever needs it starts it when it is not there.
"""

import fcntl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from runners.errors import RunnersError, SpecError
from runners.launch import child_environment
from runners.messages import MESSAGES
from runners.models import absolute_weights, check_weights
from runners.paths import PROJECT_DIR
from runners.preflight_training import refuse_at_once
from runners.queue_files import BENCHMARK, LIVE, MAX_POSITION, POSITION_STEP, Entry, QueueFiles
from runners.records import write_json_atomically
from runners.registry import make_spec, preset_fields
from runners.rundir import RunDir, create_run, find_run, list_runs
from runners.specs import TextToImageSpec, TrainingSpec

DISPATCHER_START_S = 15.0


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """One look at the queue."""

    current: str | None = None
    """The run that goes on now."""
    waiting: tuple[str, ...] = ()
    """Runs that wait, in order."""
    paused: bool = False
    """Whether benchmarks are held back; images are not."""
    worker: str = "stopped"
    """stopped, starting, loading, idle or generating."""
    last_error: RunnersError | None = None
    """Why the generation worker stopped last time, until an image succeeds again."""


class RunQueue:
    """The queue of one folder of runs. Every method may be called from any thread and returns at once."""

    def __init__(self, runs_dir: Path) -> None:
        """Takes the folder of run folders; nothing is made or started yet."""
        self.runs_dir = runs_dir
        self._files = QueueFiles(runs_dir)

    def submit(
        self,
        workload: str,
        fields: Mapping[str, Any],
        *,
        preset: str | None = None,
        source: str = "cli",
        timeout_s: float | None = None,
        group_id: str | None = None,
        repeat: int = 0,
    ) -> RunDir:
        """Checks a specification, makes its run folder and puts it into the queue.

        Args:
            workload: The workload's name.
            fields: Values of its specification, as JSON types; they go before those of the preset.
            preset: Named values to start from.
            source: Who asks: cli, playground or benchmarks. Images of the playground are made by the generation
                worker and go before benchmarks that wait.
            timeout_s: When to stop the run, in seconds from the moment it has its device; None for never.
            group_id: What several runs have in common.
            repeat: Which repetition of the same specification.

        Raises:
            SpecError: A field is out of range, or the folder cannot be written.
            WeightsError: The weights folder is missing, not a pipeline, or unsafe.
            DoesNotFit: The machine's memory can never hold it.
        """
        # Preset and values are both stored resolved, so that the run can be repeated after a preset has changed.
        values = {**preset_fields(workload, preset), **fields}
        spec = make_spec(workload, values)
        if isinstance(spec, TextToImageSpec):
            check_weights(spec.weights)
            # The run's process has another working folder, so a relative path would name another model there.
            values["weights"] = absolute_weights(spec.weights)
        if isinstance(spec, TrainingSpec):
            refuse_at_once(spec)
            if spec.data != "synthetic":
                values["data"] = str(Path(spec.data).expanduser().absolute())
        self._make()
        priority = LIVE if source == "playground" else BENCHMARK
        run_dir = create_run(
            self.runs_dir,
            workload,
            values,
            preset=preset,
            source=source,
            timeout_s=timeout_s,
            group_id=group_id,
            repeat=repeat,
            announce=lambda run_id: self._files.add(run_id, priority),
        )
        self._call_dispatcher()
        return run_dir

    def state(self) -> QueueState:
        """What goes on and what waits."""
        status = self._status()
        current = status.get("current")
        waiting = tuple(entry.run_id for entry in self._waiting())
        return QueueState(
            current=current if isinstance(current, str) else None,
            waiting=waiting,
            paused=self.paused,
            worker=str(status.get("worker", "stopped")),
            last_error=_error(status.get("last_error")),
        )

    def position(self, run_id: str) -> int | None:
        """How many runs are before this one, the running one included; None where it does not wait."""
        state = self.state()
        if run_id not in state.waiting:
            return None
        return state.waiting.index(run_id) + (state.current is not None)

    def cancel(self, run_id: str) -> None:
        """Asks a run to stop: at its next step, by force after 3 seconds, or before it begins.

        Raises:
            RecordError: There is no such run.
        """
        run_dir = find_run(self.runs_dir, run_id)
        with self._writing():
            run_dir.ask_to_cancel()
        self._call_dispatcher()

    def remove(self, run_id: str) -> None:
        """Takes a waiting run out of the queue and out of sight; its folder and record stay.

        Raises:
            RecordError: There is no such run.
            SpecError: It does not wait any more; a run that goes on is cancelled instead.
        """
        run_dir = find_run(self.runs_dir, run_id)
        self._entry(run_id)
        with self._writing():
            run_dir.annotate(deleted=True)
        self.cancel(run_id)

    def retry(self, run_id: str) -> RunDir:
        """Puts the same specification into the queue again, as a new run.

        Raises:
            RecordError, SpecError, WeightsError: The old run cannot be read, or its specification is not usable now.
        """
        request = find_run(self.runs_dir, run_id).request()
        return self.submit(
            request.workload,
            request.fields,
            preset=request.preset,
            source=request.source,
            timeout_s=request.timeout_s,
            group_id=request.group_id,
            repeat=request.repeat,
        )

    def move(self, run_id: str, places: int) -> None:
        """Moves a waiting run up (negative) or down the line of its kind.

        Raises:
            SpecError: It does not wait any more.
        """
        entry = self._entry(run_id)
        line = [item for item in self._waiting() if item.priority == entry.priority]
        others = [item for item in line if item != entry]
        target = min(max(0, line.index(entry) + places), len(others))
        before = others[target - 1].position if target else 0
        after = others[target].position if target < len(others) else min(before + 2 * POSITION_STEP, MAX_POSITION)
        if after - before > 1:
            self._files.move(entry, (before + after) // 2)
            return
        # No room between the two: number the whole line anew.
        for number, item in enumerate([*others[:target], entry, *others[target:]], 1):
            self._files.move(item, number * POSITION_STEP)

    @property
    def paused(self) -> bool:
        """Whether waiting benchmarks are held back."""
        return (self._files.folder / "paused").exists()

    def pause(self) -> None:
        """Holds waiting benchmarks back; what goes on is finished, and images are still made."""
        self._make()
        with self._writing():
            (self._files.folder / "paused").touch()

    def resume(self) -> None:
        """Lets waiting benchmarks start again."""
        with self._writing():
            (self._files.folder / "paused").unlink(missing_ok=True)
        self._call_dispatcher()

    def load(self, fields: Mapping[str, Any]) -> None:
        """Has the generation worker load the model of these text-to-image fields, when nothing else goes on."""
        self._make()
        with self._writing():
            write_json_atomically(self._files.folder / "load.json", dict(fields))
        self._call_dispatcher()

    def unload(self) -> None:
        """Ends the idle generation worker, which frees its memory and its device."""
        self._order("unload")

    def shut_down(self) -> None:
        """Ends the dispatcher with everything it has started; the run that goes on is recorded as lost."""
        self._order("stop")

    def watch(self) -> IO[str]:
        """Tells the dispatcher that somebody is there, until the returned file is closed or the process ends.

        Without watchers the generation worker ends when the last image is made, instead of waiting for more.
        """
        self._make()
        with self._writing():
            file = (self._files.folder / "clients.lock").open("a")
        fcntl.flock(file, fcntl.LOCK_SH)
        return file

    def ensure_dispatcher(self) -> None:
        """Starts the dispatcher where runs wait, or one has no record and nobody carries it out."""
        if not self._files.dispatcher_runs() and (self._files.entries() or self._has_orphans()):
            self._start_dispatcher()

    def _order(self, name: str) -> None:
        if self._files.dispatcher_runs():
            with self._writing():
                (self._files.folder / name).touch()
            self._files.wake()

    def check_writable(self) -> None:
        """Tries to write where runs are kept, as an app does before it takes anybody's work.

        Raises:
            SpecError: The folder cannot be made or written; the message says why.
        """
        self._make()
        with self._writing(), tempfile.TemporaryFile(dir=self._files.folder):
            pass

    def _make(self) -> None:
        with self._writing():
            self._files.make()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            # ValueError: a null byte in the path, or text that the file system cannot encode.
            reason = getattr(error, "strerror", None) or str(error)
            raise SpecError("runs-dir-unwritable", path=str(self.runs_dir), reason=reason) from error

    def _status(self) -> dict[str, Any]:
        return self._files.status() if self._files.dispatcher_runs() else {}

    def _waiting(self) -> list[Entry]:
        current = self._status().get("current")
        return [entry for entry in self._files.entries() if entry.run_id != current]

    def _entry(self, run_id: str) -> Entry:
        for entry in self._waiting():
            if entry.run_id == run_id:
                return entry
        raise SpecError("not-waiting", run_id=run_id)

    def _has_orphans(self) -> bool:
        # The newest only: older ones were looked at when they were new.
        return any(not run.has_record() and not run.is_alive() for run in list_runs(self.runs_dir)[-50:])

    def _call_dispatcher(self) -> None:
        if self._files.dispatcher_runs():
            self._files.wake()
        else:
            self._start_dispatcher()

    def _start_dispatcher(self) -> None:
        # It leaves this process's family at once and the call returns; a second one finds the lock taken and ends.
        with (self._files.folder / "dispatcher.log").open("ab") as log, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [sys.executable, "-m", "runners.dispatcher", str(self.runs_dir.resolve())],
                cwd=PROJECT_DIR,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=DISPATCHER_START_S,
                check=False,
            )


def wait_for_record(queue: RunQueue, run_dir: RunDir, watch: Any = lambda: None) -> None:
    """Waits until a run has ended, and brings the dispatcher back whenever it has been killed.

    Args:
        queue: The queue that the run is in.
        run_dir: The run.
        watch: Called some 20 times a second.
    """
    looks = 0
    while not run_dir.has_record():
        watch()
        time.sleep(0.05)
        looks += 1
        if looks % 20 == 0:
            queue.ensure_dispatcher()


def _error(document: object) -> RunnersError | None:
    if not isinstance(document, dict) or document.get("message_id") not in MESSAGES:
        return None
    params = document.get("params")
    return RunnersError(str(document["message_id"]), **(params if isinstance(params, dict) else {}))
