"""The app's first page against Streamlit's own demo, in a real browser."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.ratios import Ratio, interleaved
from runners.paths import PROJECT_DIR

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def first_page() -> Ratio:
    """From starting the server to the first full page, over the same for `streamlit hello`.

    The browser is started beforehand. "Full" is when Streamlit's own running mark is gone and the content that the
    page is for can be seen: our charts, the demo's welcome.
    """
    from playwright.sync_api import sync_playwright

    executable = os.environ.get("LIKEFORLIKE_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise SystemExit("The bench of the first page needs Chromium or Chrome.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        names = ("first page", "streamlit hello")
        result = interleaved(
            lambda: _seconds_to_page(browser, ["run", "streamlit_app.py"], ".js-plotly-plot .main-svg"),
            lambda: _seconds_to_page(browser, ["hello"], "h1"),
            pairs=6,
            names=names,
            limit=1.5,
        )
        browser.close()
    return result


def _seconds_to_page(browser: Any, arguments: list[str], content: str) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("wb") as log:
        started_s = time.perf_counter()
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamlit", *arguments),
                *("--server.port", str(port), "--server.headless", "true", "--server.address", "127.0.0.1"),
            ],
            cwd=PROJECT_DIR,
            env={**os.environ, "LIKEFORLIKE_VAR": folder},
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_healthy(port)
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector(content, state="visible", timeout=60_000)
            page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)
            seconds = time.perf_counter() - started_s
            page.close()
            return seconds
        finally:
            server.kill()
            server.wait()


def _wait_until_healthy(port: int) -> None:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.01)
    raise SystemExit("The server did not start within 60 s.")
