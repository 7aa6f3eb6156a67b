"""The Compare page's script with the whole catalogue and 10,000 runs: the first time, and with another baseline."""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.many_runs import make_runs
from bench.ratios import Limits
from runners.paths import PROJECT_DIR

RUNS, ROUNDS = 10_000, 8
FIRST_LIMIT_S, BASELINE_LIMIT_S = 0.4, 0.15


def compare_page() -> Limits:
    """Times the script in this process, as a browser's session runs it, with the database made beforehand.

    Returns:
        Median seconds by the clock of a first run in a new session and of a changed baseline, with their limits, and
        beside them the processor's seconds without one: on a busy machine the clock is the longer, and it is what a
        reader waits for.
    """
    from streamlit.testing.v1 import AppTest

    with tempfile.TemporaryDirectory() as folder:
        os.environ["LIKEFORLIKE_VAR"], os.environ["LIKEFORLIKE_LEASES"] = folder, folder + "/leases"
        make_runs(Path(folder) / "runs", RUNS)
        entry = str(PROJECT_DIR / "streamlit_app.py")
        AppTest.from_file(entry, default_timeout=300).run()  # the database is made, and modules are loaded
        first, changed = [], []
        for _ in range(ROUNDS):
            app = AppTest.from_file(entry, default_timeout=300)
            first.append(_seconds(app.run))
            for baseline in ("seed-bert-g1-bs32-throughput", "seed-bert-a100-bs64-throughput"):
                box = app.selectbox(key="bert-pretraining-baseline").set_value(baseline)
                changed.append(_seconds(box.run))
    names = ("first run of the script", "another baseline")
    seconds, limits_s = {}, dict(zip(names, (FIRST_LIMIT_S, BASELINE_LIMIT_S), strict=True))
    for name, spans in zip(names, (first, changed), strict=True):
        seconds[name] = statistics.median(clock_s for clock_s, _processor_s in spans)
        seconds[f"{name}, processor"] = statistics.median(processor_s for _clock_s, processor_s in spans)
    return Limits(seconds, limits_s)


def _seconds(action: Any) -> tuple[float, float]:
    """What it took by the clock, and of the processor."""
    began_s, processor_s = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - began_s, time.process_time() - processor_s
