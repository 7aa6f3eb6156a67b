"""A small soak: the real one is `make soak`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


@pytest.mark.timeout(300)
def test_nothing_is_lost_when_processes_are_killed() -> None:
    command = [sys.executable, "-m", "bench.soak", "--runs", "25", "--kills", "10"]
    finished = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=280)
    result = json.loads(finished.stdout.splitlines()[-1])
    assert finished.returncode == 0, (result, finished.stderr)
    assert result["problems"] == []
    assert result["runs"] == sum(result["statuses"].values()) == 25
    assert sum(result["killed"].values()) >= 5
