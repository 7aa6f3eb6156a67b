"""Fetching a model from a hub: a small hub on this machine, the real client library, the bundled model as the file."""

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runners.launch import child_environment
from runners.paths import BUNDLED_MODEL_DIR
from runners.rundir import RunDir, list_runs

PROJECT = Path(__file__).resolve().parent.parent
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = "somebody/small-model"


class Hub(ThreadingHTTPServer):
    """Answers as huggingface.co does for one repository."""

    daemon_threads = True

    def __init__(self, folder: Path, seconds_per_chunk: float) -> None:
        self.files = {
            str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
        }
        self.seconds_per_chunk = seconds_per_chunk
        self.fetched: list[str] = []
        super().__init__(("127.0.0.1", 0), Answer)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._file(with_body=False)

    def do_GET(self) -> None:
        if not self.server.files:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
        elif "/tree/" in self.path:
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in self.server.files.items()
            ]
            self._send(json.dumps(tree).encode(), {"Content-Type": "application/json"})
        elif self.path.startswith("/api/models/"):
            files = [{"rfilename": name, "size": len(data)} for name, data in self.server.files.items()]
            self._send(json.dumps({"id": MODEL, "sha": COMMIT, "siblings": files}).encode(), {})
        else:
            self._file(with_body=True)

    def _file(self, *, with_body: bool) -> None:
        name = self.path.split("?")[0].partition(f"/resolve/{COMMIT}/")[2]
        data = self.server.files.get(name)
        if data is None:
            self.send_error(404)
            return
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if with_body:
            self.server.fetched.append(name)
        self._send(data, headers, with_body=with_body)

    def _send(self, data: bytes, headers: dict[str, str], *, with_body: bool = True) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        for begin in range(0, len(data), 64_000) if with_body else ():
            self.wfile.write(data[begin : begin + 64_000])
            time.sleep(self.server.seconds_per_chunk)


@pytest.fixture
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    """A hub that also offers a pickle and a large file that nobody asked for."""
    served = tmp_path / "served"
    served.mkdir()
    for path in BUNDLED_MODEL_DIR.rglob("*"):
        if path.is_file():
            target = served / path.relative_to(BUNDLED_MODEL_DIR)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (served / "unet" / "diffusion_pytorch_model.bin").write_bytes(b"a pickle")
    (served / "v1-full.safetensors").write_bytes(b"0" * 100)
    server = Hub(served, getattr(request, "param", 0.0))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def start(hub: Hub, tmp_path: Path) -> "subprocess.Popen[str]":
    environment = {
        **child_environment(),
        "HF_ENDPOINT": hub.address,
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_XET": "1",
    }
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        environment.pop(name, None)
    command = [
        "run",
        "text-to-image",
        "--set",
        f"weights={MODEL}",
        "--set",
        "steps=1",
        "--runs-dir",
        str(tmp_path / "runs"),
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "runners", *command],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def downloading(runs_dir: Path) -> RunDir:
    for _ in range(1200):
        for run_dir in list_runs(runs_dir):
            if (run_dir.latest_event("progress") or {}).get("phase") == "download":
                return run_dir
        time.sleep(0.05)
    raise AssertionError("no download began")


def test_a_hub_model_is_fetched_with_progress_and_only_what_is_needed(hub: Hub, tmp_path: Path) -> None:
    process = start(hub, tmp_path)
    out, errors = process.communicate(timeout=110)
    assert process.returncode == 0, errors
    record = json.loads(out.splitlines()[-1])
    assert (record["conditions"]["model"], record["conditions"]["weights"]) == ("custom", "real")
    events = [
        event for event in RunDir(tmp_path / "runs" / record["run_id"]).events() if event.get("phase") == "download"
    ]
    assert events[-1]["step"] == events[-1]["steps"] > 1_000_000
    assert not [name for name in hub.fetched if name.endswith(".bin") or ("/" not in name and "safetensors" in name)]


@pytest.mark.parametrize("hub", [0.5], indirect=True)
def test_a_download_can_be_cancelled_and_goes_on_later(hub: Hub, tmp_path: Path) -> None:
    process = start(hub, tmp_path)
    run_dir = downloading(tmp_path / "runs")
    run_dir.ask_to_cancel()
    begun_s = time.monotonic()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - begun_s < 15
    assert run_dir.record().status == "cancelled"
    hub.seconds_per_chunk = 0.0
    again = start(hub, tmp_path)
    _, errors = again.communicate(timeout=110)
    assert again.returncode == 0, errors
    once = [name for name in set(hub.fetched) if hub.fetched.count(name) == 1]
    assert once, "what was whole is not fetched again"


def test_a_model_that_the_hub_does_not_have(hub: Hub, tmp_path: Path) -> None:
    hub.files.clear()
    process = start(hub, tmp_path)
    out, errors = process.communicate(timeout=110)
    assert process.returncode == 1
    record = json.loads(out.splitlines()[-1])
    assert record["error"]["type"] == "WeightsError"
    assert record["error"]["message_id"] == "hub-unreachable"
    assert "\n" not in record["error"]["message"]
    assert MODEL in errors
