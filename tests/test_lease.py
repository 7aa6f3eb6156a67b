"""Leases: one owner per device, whatever becomes of it, and a holder that hears when others wait."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runners.errors import Cancelled, DeviceBusy, DeviceUnavailable
from runners.lease import holder_of, take

PROJECT = Path(__file__).resolve().parent.parent


def test_leases_exclude_one_another_by_device(tmp_path: Path) -> None:
    with take("cuda-0", "first", tmp_path), take("cuda-1", "other device", tmp_path):
        with pytest.raises(DeviceBusy, match="first"), take("cuda-0", "second", tmp_path):
            pass
        with take("none-0", "needs no device", tmp_path), take("none-0", "nor does this", tmp_path):
            pass
    with take("cuda-0", "again", tmp_path):
        pass


def test_a_lease_dies_with_its_holder(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time; from runners.lease import take\n"
        "with take('hpu-0', 'to be killed', pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(DeviceBusy, match=f"process {holder.pid} "), take("hpu-0", "mine", tmp_path):
        pass
    holder.kill()
    holder.wait()
    with take("hpu-0", "mine", tmp_path):
        pass


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    (tmp_path / "cpu-0.lock").symlink_to(target)
    with pytest.raises(DeviceUnavailable, match="LIKEFORLIKE_LEASES"), take("cpu-0", "x", tmp_path):
        pass
    assert target.read_text() == "keep me"


def test_a_lease_folder_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (tmp_path / "leases").symlink_to(victim)
    with pytest.raises(DeviceUnavailable), take("cpu-0", "x", tmp_path / "leases"):
        pass
    assert victim.stat().st_mode & 0o777 == 0o700
    assert list(victim.iterdir()) == []


def test_who_waits_is_heard_and_gets_the_device(tmp_path: Path) -> None:
    held = take("cpu-0", "an idle worker", tmp_path)
    assert not held.wanted()
    heard: list[str] = []
    taken: list[float] = []

    def wait() -> None:
        with take("cpu-0", "a benchmark", tmp_path, waiting=heard.append):
            taken.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    deadline_s = time.monotonic() + 10
    while not held.wanted():
        assert time.monotonic() < deadline_s, "nobody was heard"
        time.sleep(0.01)
    assert not taken
    held.release()
    thread.join(10)
    assert taken
    assert "an idle worker" in heard[0]
    with take("cpu-0", "afterwards", tmp_path) as again:
        assert not again.wanted(), "who has the device waits for it no more"


def test_waiting_ends_when_the_caller_says_so(tmp_path: Path) -> None:
    def give_up(_holder: str) -> None:
        raise Cancelled

    with take("cpu-0", "first", tmp_path) as held:
        with pytest.raises(Cancelled):
            take("cpu-0", "second", tmp_path, waiting=give_up)
        assert not held.wanted()


def test_looking_takes_nothing(tmp_path: Path) -> None:
    assert holder_of("cpu-0", tmp_path) is None
    with take("cpu-0", "a run", tmp_path):
        assert "a run" in str(holder_of("cpu-0", tmp_path))
    assert holder_of("cpu-0", tmp_path) is None
    assert holder_of("none-0", tmp_path) is None
