"""What `python -m runners queue …` does."""

from typing import Any

from runners.errors import SpecError
from runners.progress import read_progress
from runners.queue import RunQueue
from runners.rundir import find_run

ACTIONS = ("list", "cancel", "remove", "retry", "move", "pause", "resume", "unload", "shut-down")
_OF_A_RUN = ("cancel", "remove", "retry", "move")


def carry_out(queue: RunQueue, action: str, run_id: str | None, places: int) -> dict[str, Any]:
    """Does one thing to the queue.

    Args:
        queue: The queue.
        action: One of `ACTIONS`.
        run_id: The run, for those actions that concern one.
        places: For "move": how many places up (negative) or down.

    Returns:
        The queue afterwards as plain JSON types; for "retry" with the new run's id.

    Raises:
        SpecError: The run's id is missing, or the run does not wait.
        RecordError: There is no such run.
    """
    document: dict[str, Any] = {}
    if action in _OF_A_RUN:
        if run_id is None:
            raise SpecError("usage", text=f"{action} needs the id of a run")
        if action == "move":
            queue.move(run_id, places)
        elif action == "retry":
            document["run_id"] = queue.retry(run_id).run_id
        else:
            {"cancel": queue.cancel, "remove": queue.remove}[action](run_id)
    elif action != "list":
        {"pause": queue.pause, "resume": queue.resume, "unload": queue.unload, "shut-down": queue.shut_down}[action]()
    return {**document, **_described(queue)}


def _described(queue: RunQueue) -> dict[str, Any]:
    state = queue.state()
    current: dict[str, Any] | None = None
    if state.current is not None:
        progress = read_progress(find_run(queue.runs_dir, state.current))
        current = {
            "run_id": state.current,
            "phase": progress.phase or progress.status,
            "step": progress.step,
            "steps": progress.steps,
            "seconds_left": progress.seconds_left,
        }
    return {
        "current": current,
        "waiting": list(state.waiting),
        "paused": state.paused,
        "worker": state.worker,
        "last_error": state.last_error.message if state.last_error else None,
    }
