"""Where things live on disk."""

import os
from pathlib import Path

PROJECT_DIR = Path(__file__).resolve().parent.parent
BUNDLED_MODEL_DIR = PROJECT_DIR / "data" / "models" / "bundled"


def var_dir() -> Path:
    """The folder of everything that is made while running; `LIKEFORLIKE_VAR` moves it."""
    return Path(os.environ.get("LIKEFORLIKE_VAR") or PROJECT_DIR / "var")


def runs_dir() -> Path:
    """Run folders."""
    return var_dir() / "runs"


def database_path() -> Path:
    """The DuckDB file; an index of the run folders, rebuilt from them at will."""
    return var_dir() / "likeforlike.duckdb"


def lease_dir() -> Path:
    """The per-machine folder of device locks, shared by all checkouts and users; `LIKEFORLIKE_LEASES` moves it.

    It is not below `var/`: two checkouts on one machine must meet at the same lock. Containers that share a device
    share it by mounting one folder and naming it in the variable.
    """
    chosen = os.environ.get("LIKEFORLIKE_LEASES")
    return Path(chosen) if chosen else Path("/tmp/likeforlike-leases")  # noqa: S108 - see above; the files hold nothing
