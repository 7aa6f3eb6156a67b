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
        Seconds of the processor for a first run in a new session and for a changed baseline, with their limits. The
        script is one thread, so on an idle machine the clock says the same; on a busy one only this is about it.
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
    seconds = {"first run of the script": statistics.median(first), "another baseline": statistics.median(changed)}
    return Limits(seconds, dict(zip(seconds, (FIRST_LIMIT_S, BASELINE_LIMIT_S), strict=True)))


def _seconds(action: Any) -> float:
    began_s = time.process_time()
    action()
    return time.process_time() - began_s
