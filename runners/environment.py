"""What this machine and its software are, without importing torch; a probe in a child process asks torch itself."""

import contextlib
import functools
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from runners.device.cpu import cpu_name, memory_limit_bytes, usable_cores
from runners.paths import PROJECT_DIR, var_dir
from runners.records import DeviceInfo, write_json_atomically

PACKAGES = ("torch", "diffusers", "transformers", "accelerate", "optimum-habana", "numpy", "streamlit", "duckdb")
VARIABLES = ("OMP_", "MKL_NUM_", "OPENBLAS_", "PT_HPU_", "PYTORCH_", "TORCH_", "CUDA_VISIBLE_", "HABANA_VISIBLE_")
"""Environment variables that change speed or precision; others may hold secrets and are never recorded."""
PROBE_TIMEOUT_S = 120


def describe() -> dict[str, Any]:
    """Operating system, processor, memory, package versions and the project's commit; takes milliseconds."""
    return {
        "os": platform.platform(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "memory_bytes": memory_limit_bytes(),
        "packages": dict(package_versions()),
        "commit": commit(),
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)},
    }


@functools.cache
def package_versions() -> dict[str, str | None]:
    """Installed versions by metadata, which imports nothing; None where a package is not installed.

    Asked once per process: each name costs milliseconds, and what a process has imported does not change any more.
    """
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def software(names: Iterable[str]) -> str:
    """Those of the packages that are installed, with their versions, for the conditions of a run."""
    versions = package_versions()
    return ", ".join(f"{name} {versions[name]}" for name in names if versions[name] is not None)


def commit() -> str | None:
    """The project's git commit, or None outside a checkout; read from files, since git may not be installed."""
    git = PROJECT_DIR / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="ascii").strip()
        if not head.startswith("ref: "):
            return head[:12]
        reference = head.removeprefix("ref: ")
        loose = git / reference
        if loose.exists():
            return loose.read_text(encoding="ascii").strip()[:12]
        for line in (git / "packed-refs").read_text(encoding="ascii").splitlines():
            if line.endswith(f" {reference}"):
                return line[:12]
    except (OSError, UnicodeDecodeError):
        return None
    return None


def likely_device() -> DeviceInfo:
    """The device that runs would use, guessed from drivers and device files; the probe knows for certain.

    The guess is only for showing: no lease, specification or record is built on it.
    """
    probed = cached_probe()
    if probed is not None:
        return DeviceInfo(**probed["device"])
    if importlib.util.find_spec("habana_frameworks") is not None and shutil.which("hl-smi"):
        return DeviceInfo(kind="hpu", name="Gaudi")
    if Path("/dev/nvidia0").exists() and shutil.which("nvidia-smi"):
        return DeviceInfo(kind="cuda", name="NVIDIA GPU")
    if Path("/dev/kfd").exists():
        return DeviceInfo(kind="rocm", name="AMD GPU")
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return DeviceInfo(kind="mps", name="Apple GPU")
    return DeviceInfo(kind="cpu", name=cpu_name(), memory_bytes=memory_limit_bytes(), cores=usable_cores())


def cached_probe() -> dict[str, Any] | None:
    """The last probe's answer, where it was made with the torch that is installed now."""
    try:
        document = json.loads(_probe_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.get("key") != _probe_key():
        return None
    with contextlib.suppress(TypeError, KeyError):
        DeviceInfo(**document["device"])
        return document
    return None


def probe() -> dict[str, Any]:
    """Asks torch which devices are here, in a child process, and caches the answer below `var/`.

    Returns:
        `device` (the one that "auto" chooses), `devices` (kind -> None, or why it is not usable), `key`; or `error`
        where the child failed.
    """
    command = [sys.executable, "-m", "runners.environment"]
    try:
        finished = subprocess.run(
            command, cwd=PROJECT_DIR, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"torch did not answer within {PROBE_TIMEOUT_S} s"}
    if finished.returncode != 0:
        return {"error": finished.stderr.strip()[-2000:]}
    document: dict[str, Any] = {**json.loads(finished.stdout.splitlines()[-1]), "key": _probe_key()}
    with contextlib.suppress(OSError):
        # A probe is worth nothing more than its answer: where var/ cannot be written it is asked again next time.
        _probe_path().parent.mkdir(parents=True, exist_ok=True)
        write_json_atomically(_probe_path(), document)
    return document


def _probe_path() -> Path:
    return var_dir() / "probe.json"


def _probe_key() -> str:
    visible = [os.environ.get(name, "") for name in ("CUDA_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES")]
    try:
        torch_version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch_version = "none"
    return "|".join([sys.executable, torch_version, *visible])


def _probe_in_this_process() -> dict[str, Any]:
    import dataclasses

    from runners.device import DETECTION_ORDER, backend, select

    reasons = {kind: backend(kind).unavailable_reason() for kind in DETECTION_ORDER}
    return {"device": dataclasses.asdict(select("auto").info()), "devices": reasons}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_probe_in_this_process()) + "\n")
