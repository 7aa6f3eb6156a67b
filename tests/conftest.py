"""What every test gets: folders of its own, no network, and a browser where there is one."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Set before anything imports these libraries, since they read them once. A test never reaches a hub, and never sees
# the models that the developer happens to have.
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# Names under which systems install Chromium or Chrome.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS_CHROME = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")

# Chromium for tests: no window, no sandbox (it needs rights that root in a container lacks), and nothing that calls
# home in the background, where a closed network would turn each call into a wait.
BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session", autouse=True)
def _no_models_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("huggingface")))
        yield


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results and device locks of a test meet neither the developer's nor another test's.

    The environment is the seam because child processes inherit it: dispatcher, worker and runs are children.
    """
    monkeypatch.setenv("LIKEFORLIKE_VAR", str(tmp_path / "var"))
    monkeypatch.setenv("LIKEFORLIKE_LEASES", str(tmp_path / "leases"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what this machine cannot run, and says why."""
    if item.get_closest_marker("cuda") and not _torch_has("cuda"):
        pytest.skip("needs an NVIDIA or AMD GPU and a torch build for it")
    if item.get_closest_marker("hpu") and not _torch_has("hpu"):
        pytest.skip("needs a Gaudi with its software")


def _torch_has(device: str) -> bool:
    """Whether torch sees such a device; asks torch only where the machine could have one."""
    if device == "hpu" and not (shutil.which("hl-smi") or Path("/dev/accel/accel0").exists()):
        return False
    if device == "cuda" and not (shutil.which("nvidia-smi") or Path("/dev/kfd").exists()):
        return False
    import torch

    backend = getattr(torch, device, None)
    return backend is not None and bool(backend.is_available())


def find_browser() -> Path | None:
    """Chromium or Chrome: the one named, the system's, or the one that Playwright has downloaded."""
    named = os.environ.get("LIKEFORLIKE_BROWSER")
    if named:
        return Path(named)
    for name in BROWSERS:
        if found := shutil.which(name):
            return Path(found)
    if MACOS_CHROME.exists():
        return MACOS_CHROME
    caches = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ms-playwright"
    found_in_cache = [path for path in caches.glob("chromium-*/chrome-*/*") if path.name in ("chrome", "Chromium.app")]
    if found_in_cache:
        newest = max(found_in_cache)
        return newest / "Contents/MacOS/Chromium" if newest.suffix == ".app" else newest
    return None


@pytest.fixture(scope="session")
def browser_path() -> Path:
    """The browser's executable. Without one the test is skipped, and where CI=true it fails."""
    path = find_browser()
    if path is not None:
        return path
    reason = "no Chromium or Chrome: `make test` says how to install one"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def browser(browser_path: Path) -> Iterator[Any]:
    """A Playwright browser (sync API), closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(browser_path), args=list(BROWSER_FLAGS))
        yield running
        running.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says aloud that the browser test did not run: a skip in a long list is easily missed."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("no Chromium or Chrome" in str(report.longrepr) for report in skipped):
        terminalreporter.section("THE BROWSER TEST DID NOT RUN", sep="*", yellow=True, bold=True)
        terminalreporter.line("No Chromium or Chrome was found; the journey through the app is not tested.")
