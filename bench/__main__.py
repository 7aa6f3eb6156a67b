"""`python -m bench [NAME …]`: each ratio is measured interleaved, and printed with its 95 % interval.

Times of one machine on one day are noise; the ratio of two things measured in turn is not. A ratio above its limit
makes the exit status 1. The last line of stdout is one JSON document.
"""

import json
import sys
from collections.abc import Callable

from bench.compare_page import compare_page
from bench.pages import first_page
from bench.ratios import Limits, Ratio
from bench.worker import preview_cost, warm_generation, worker_start

BENCHES: dict[str, Callable[[], Ratio | Limits]] = {
    "first-page": first_page,
    "warm-generation": warm_generation,
    "worker-start": worker_start,
    "preview-cost": preview_cost,
    "compare-page": compare_page,
}


def main(names: list[str]) -> int:
    """Runs the named benches, or all."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"No bench named {', '.join(unknown)}. Benches: {', '.join(BENCHES)}.", file=sys.stderr)
        return 2
    results = {}
    for name in names or BENCHES:
        ratio = BENCHES[name]()
        results[name] = ratio.as_json()
        print(f"{name}: {ratio}", file=sys.stderr, flush=True)
    print(json.dumps(results))
    return 0 if all(result["within_limit"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
