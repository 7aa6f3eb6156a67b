"""One journey in a real browser through the real server: open, prompt, image, find it in the Explorer."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

PROJECT_DIR = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 60
# Loading torch and generating 4 steps take seconds; a loaded continuous-integration machine takes its time.
IMAGE_TIMEOUT_MS = 240_000
PAGE_TIMEOUT_MS = 30_000
MAX_WEB_PROCESS_MIB = 400
HEAVY = ("libtorch", "/torch/", "/diffusers/", "/transformers/")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, psutil.Process]]:
    """The app as `streamlit run` starts it, on a free port; the folders are the test's own (see conftest)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "server.log"
    command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.headless=true"]
    command += [f"--server.port={port}", "--server.address=127.0.0.1"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=PROJECT_DIR, env=os.environ, stdout=output, stderr=output)
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}", psutil.Process(process.pid)
        assert "Traceback" not in log.read_text(encoding="utf-8", errors="replace"), log.read_text()
    finally:
        _end(process)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of an English reader; errors of the page's own scripts fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, locale="en-US")
    opened = context.new_page()
    opened.set_default_timeout(PAGE_TIMEOUT_MS)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []


@pytest.mark.browser
@pytest.mark.timeout(400)
def test_from_prompt_to_image_to_explorer(server: tuple[str, psutil.Process], page: Any) -> None:
    address, web_process = server
    page.goto(address)
    page.get_by_role("heading", name="BERT pretraining").wait_for()
    page.get_by_text("batch 8 against 1").first.wait_for()

    page.get_by_role("link", name="Playground").first.click()
    prompt = page.get_by_label("Prompt", exact=True)
    prompt.fill("a blue star on a white background")
    steps = page.get_by_label("Steps", exact=True)
    steps.fill("4")
    steps.press("Tab")
    page.get_by_role("button", name="Generate", exact=True).click()

    # Another reader sees what goes on, or its result where the machine was fast.
    image = page.get_by_role("img", name="Generated image 1: a blue star on a white background")
    image.first.wait_for(timeout=IMAGE_TIMEOUT_MS)
    # The image is on the page a moment before the rest of its card.
    page.get_by_text("Denoising and VAE", exact=True).first.wait_for()
    page.get_by_text("Not comparable").first.wait_for()

    page.reload()
    page.get_by_role("heading", name="Gallery").wait_for()
    image.first.wait_for()

    page.get_by_role("link", name="Open in the Explorer").click()
    page.get_by_text("Repeat it from a shell").wait_for()
    assert re.search(r"[?&]run=[0-9a-f-]{36}", page.url)
    page.get_by_role("button", name="All runs").click()
    page.get_by_text("1 run. Select it to see it in full.").wait_for()

    _check_web_process(web_process)


def _check_web_process(process: psutil.Process) -> None:
    """No torch in it, and small; the generation worker is a child of its own and may be both."""
    loaded = {item.path for item in process.memory_maps()} if hasattr(process, "memory_maps") else set()
    assert not [path for path in loaded if any(part in path for part in HEAVY)]
    assert process.memory_info().rss < MAX_WEB_PROCESS_MIB * 2**20, f"{process.memory_info().rss / 2**20:.0f} MiB"


def _wait_until_healthy(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    pytest.fail(f"the app did not start within {START_TIMEOUT_S} s: {log.read_text()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the server and its generation worker, which lives in a session of its own."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
