"""A run without a model: it sleeps, makes up a falling loss from its seed, and goes through everything else for real.

It is for dry runs of the whole path (queue, record, database, charts) and for tests. Nothing that it reports is a
measurement of a device, and no published number is ever compared with it.
"""

import math
import random
import time

from runners.errors import WorkloadFailed
from runners.execute import Outcome, RunContext
from runners.records import Audit, Conditions, Phase, Series
from runners.specs import SyntheticSpec
from runners.stats import MINIMUM_FOR_INTERVAL, rate_metrics


def run(spec: SyntheticSpec, context: RunContext) -> Outcome:
    """Sleeps `steps` times `step_ms`.

    Raises:
        Cancelled: Somebody asked the run to stop.
        WorkloadFailed: `fail_at_step` was reached.
    """
    generator = random.Random(spec.seed)
    seconds: list[float] = []
    losses: list[float] = []
    begun_s = time.perf_counter()
    for step in range(1, spec.steps + 1):
        context.check_cancelled()
        if step == spec.fail_at_step:
            raise WorkloadFailed("synthetic-failure", step=step)
        started_s = time.perf_counter()
        time.sleep(spec.step_ms / 1000)
        seconds.append(time.perf_counter() - started_s)
        losses.append(math.exp(-3 * step / spec.steps) + 0.05 * generator.random())
        context.progress("measured", step=step, steps=spec.steps)
    return Outcome(
        conditions=Conditions(
            workload="synthetic",
            model="synthetic",
            steps=spec.steps,
            batch_size_per_device=spec.batch_size,
            devices=1,
            warmup_rule="none",
        ),
        phases=(Phase(name="measured", duration_s=time.perf_counter() - begun_s),),
        series=(
            Series(name="step_s", unit="s", phase="measured", values=tuple(seconds)),
            Series(name="loss", unit="", phase="measured", values=tuple(losses)),
        ),
        metrics=tuple(rate_metrics("sample", "samples/s", seconds, spec.batch_size, None)),
        audit=Audit(
            sync_policy=context.device.sync_policy,
            warnings=("too-few-samples",) if len(seconds) < MINIMUM_FOR_INTERVAL else (),
        ),
    )
