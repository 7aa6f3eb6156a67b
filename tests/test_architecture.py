"""The rules of who may import and do what, checked on what really happens.

import-linter and ruff read the source; this imports every light module in a process of its own and looks at what was
loaded, since only that shows what the web process would carry. Modules are found by walking the folders, so a new one
cannot be forgotten.
"""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT_DIR = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "data", "runners")
SETTINGS = tomllib.loads((PROJECT_DIR / "pyproject.toml").read_text(encoding="utf-8"))

# One list for ruff and for this test.
TORCH_FAMILY = set(SETTINGS["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"])

# What must not be loaded after importing all modules of a package.
FORBIDDEN = {
    "runners": TORCH_FAMILY | {"streamlit", "plotly", "duckdb", "data", "app"},
    "data": TORCH_FAMILY | {"streamlit", "plotly", "app"},
    "app": TORCH_FAMILY,
}

# Programs that train the bundled model: they define torch modules as classes, and nothing light imports them.
TRAINING = "runners.bundled_model"
TRAINING_MODULES = {
    f"{TRAINING}.{name.strip()}"
    for pattern, codes in SETTINGS["tool"]["ruff"]["lint"]["per-file-ignores"].items()
    if pattern.startswith("runners/bundled_model/") and "TID253" in codes
    for name in pattern.split("{")[1].split("}")[0].split(",")
}


def _sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((PROJECT_DIR / folder).rglob("*.py")):
            if "__pycache__" not in path.parts:
                yield path


def _shipped_sources() -> Iterator[Path]:
    yield from _sources(*PACKAGES, "bench")
    yield PROJECT_DIR / "streamlit_app.py"


def _module_name(path: Path) -> str:
    parts = path.relative_to(PROJECT_DIR).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _light_modules(package: str) -> list[str]:
    names = [_module_name(path) for path in _sources(package)]
    # Views are scripts that draw a page when imported; the tests of the views run them.
    return [name for name in names if not name.startswith("app.views.") and name not in TRAINING_MODULES]


IMPORT_EACH = """
import importlib, json, sys
names, forbidden = json.load(sys.stdin)
loaded = {}
for name in names:
    before = set(sys.modules)
    importlib.import_module(name)
    new = {module.split(".")[0] for module in set(sys.modules) - before} & set(forbidden)
    if new:
        loaded[name] = sorted(new)
json.dump(loaded, sys.stdout)
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_every_module_loads_nothing_heavy(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH],
        input=json.dumps([_light_modules(package), sorted(FORBIDDEN[package])]),
        capture_output=True,
        text=True,
        cwd=PROJECT_DIR,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}


def test_the_probe_sees_an_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH],
        input=json.dumps([["json", "duckdb"], ["duckdb"]]),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert json.loads(done.stdout) == {"duckdb": ["duckdb"]}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_code_is_a_package(package: str) -> None:
    """import-linter passes over a folder without __init__.py, and then finds nothing wrong in it."""
    missing = {path.parent for path in _sources(package) if not (path.parent / "__init__.py").exists()}
    assert missing == set()


def test_ruff_and_import_linter_know_the_same_heavy_libraries() -> None:
    contracts = SETTINGS["tool"]["importlinter"]["contracts"]
    forbidden = next(set(c["forbidden_modules"]) for c in contracts if "torch" in c.get("forbidden_modules", ()))
    assert forbidden == TORCH_FAMILY


def _imported(tree: ast.AST) -> set[str]:
    """Top-level names imported anywhere in a module, functions included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and _called(node) in ("importlib.import_module", "import_module", "__import__"):
            found |= {
                arg.value.split(".")[0]
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            }
    return found


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in _shipped_sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield f"{path.relative_to(PROJECT_DIR)}:{node.lineno}", node


def _has(node: ast.Call, name: str, value: object) -> bool:
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is value for k in node.keywords)


def _importers_of(*names: str) -> set[str]:
    return {
        str(path.relative_to(PROJECT_DIR))
        for path in _shipped_sources()
        if _imported(ast.parse(path.read_text(encoding="utf-8"))) & set(names)
    }


def test_only_the_store_opens_the_database() -> None:
    assert _importers_of("duckdb") <= {"data/store.py"}


def test_only_the_app_draws() -> None:
    assert {
        path
        for path in _importers_of("streamlit", "plotly")
        if not path.startswith(("app/", "streamlit_app", "bench/"))
    } == set()


def test_app_and_data_never_import_torch_even_in_functions() -> None:
    assert {path for path in _importers_of(*TORCH_FAMILY) if not path.startswith(("runners/", "bench/"))} == set()


def test_nothing_unpickles() -> None:
    assert _importers_of("pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib") == set()


def test_no_shell_sees_our_text() -> None:
    shells = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")
    assert [place for place, call in _calls() if _has(call, "shell", True) or _called(call) in shells] == []


def test_no_code_from_a_hub_runs() -> None:
    """`trust_remote_code=True`, as an argument or as an entry of a dictionary."""
    arguments = [place for place, call in _calls() if _has(call, "trust_remote_code", True)]
    entries = [
        f"{path.relative_to(PROJECT_DIR)}:{node.lineno}"
        for path in _shipped_sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "trust_remote_code" and ast.unparse(value) != "False"
    ]
    assert arguments + entries == []


def test_torch_loads_weights_only() -> None:
    loads = [(place, call) for place, call in _calls() if _called(call) in ("torch.load", "torch.jit.load")]
    assert [place for place, call in loads if not _has(call, "weights_only", True)] == []


def test_only_the_container_listens_on_all_addresses() -> None:
    texts = [
        *_shipped_sources(),
        PROJECT_DIR / "Makefile",
        PROJECT_DIR / ".streamlit/config.toml",
        PROJECT_DIR / ".ci/run",
    ]
    everywhere = ".".join("0000")
    assert [str(path) for path in texts if everywhere in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_there_are_no_drawers_for_everything(package: str) -> None:
    vague = {"utils", "helpers", "common", "base", "manager", "misc"}
    assert [str(path) for path in _sources(package) if path.stem in vague or path.parent.name in vague] == []


def test_pages_is_not_a_folder_of_ours() -> None:
    """A folder of that name beside the entry script wakes Streamlit's old navigation."""
    assert not (PROJECT_DIR / "pages").exists()
