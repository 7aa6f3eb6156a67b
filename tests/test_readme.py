"""The texts for people tell the truth: every command, target, path and link in them exists."""

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT_DIR = Path(__file__).resolve().parent.parent
README = PROJECT_DIR / "README.md"
TEXTS = [README, *sorted((PROJECT_DIR / "docs").glob("*.md"))]


def _name(path: Path) -> str:
    return str(path.relative_to(PROJECT_DIR))


def _shell_lines(path: Path) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def _python_commands() -> list[str]:
    """`module subcommand` of every `python -m …`, in blocks and in the running text."""
    commands = set()
    for path in TEXTS:
        for module, subcommand in re.findall(
            r"python3? -m ([a-z_.]+)(?: ([a-z]+)\b)?", path.read_text(encoding="utf-8")
        ):
            if module.split(".")[0] in ("runners", "data", "app"):
                commands.add(f"{module} {subcommand}".strip())
    return sorted(commands)


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_make_targets_exist(path: Path) -> None:
    makefile = (PROJECT_DIR / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))
    named = set(
        re.findall(r"(?:`|^)(?:[A-Z_]+=\S+ )?make ([a-z][a-z-]*)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    assert named - targets == set()


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_make_variables_exist(path: Path) -> None:
    makefile = (PROJECT_DIR / "Makefile").read_text(encoding="utf-8")
    for variable in re.findall(r"make [a-z-]+ ([A-Z_]+)=", path.read_text(encoding="utf-8")):
        assert f"$({variable})" in makefile, variable


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_links_and_paths_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = {path.parent / link.split("#")[0] for link in re.findall(r"\]\(((?!https?:|#)[^)]+)\)", text)}
    # `name/` or `name/file.ext` in the running text, below a folder of ours; var/ is made while running.
    inline = re.findall(r"`((?:app|data|runners|tests|docs|bench|\.ci|\.streamlit)/[\w./-]*)`", text)
    files = re.findall(r"`([\w.-]+\.(?:txt|py|toml|md))`", text)
    wanted = links | {PROJECT_DIR / name for name in inline}
    assert sorted(str(p) for p in wanted if not p.exists()) == []
    # A name alone may be that of a file in any folder of ours.
    ours = {p.name for p in PROJECT_DIR.glob("*")}
    for folder in ("app", "data", "runners", "docs", "tests"):
        ours |= {p.name for p in (PROJECT_DIR / folder).rglob("*")}
    assert set(files) - ours == set()


@pytest.mark.parametrize("command", _python_commands())
def test_python_commands_answer(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split(), "--help"],
        cwd=PROJECT_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    # app.translations shows its help for whatever it does not know, and then exits 2.
    assert done.returncode == 0 or (command.startswith("app.translations") and done.returncode == 2), done.stderr


def _parsed(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def test_runs_in_the_readme_are_accepted() -> None:
    """Workload, preset and fields of each example; nothing is run."""
    from runners.registry import make_spec
    from runners.spec_fields import parse_assignments

    lines = [_parsed(line) for path in TEXTS for line in _shell_lines(path) if "-m runners run " in line]
    assert lines
    for words in lines:
        arguments = words[words.index("run") + 1 :]
        preset = arguments[arguments.index("--preset") + 1] if "--preset" in arguments else None
        assignments = [value for flag, value in itertools.pairwise(arguments) if flag == "--set"]
        make_spec(arguments[0], parse_assignments(assignments), preset)


def test_quick_examples_of_the_readme_work(tmp_path: Path) -> None:
    """Those that need no model, carried out as written, one after the other, in a var/ of their own."""
    quick = (
        "runners list",
        "runners env --json",
        "runners run synthetic",
        "data compare",
        "data query",
        "data rebuild",
    )
    lines = [line for line in _shell_lines(README) if any(f"python -m {start}" in line for start in quick)]
    assert len(lines) >= len(quick) - 1
    for line in lines:
        words = [sys.executable, *(word for word in _parsed(line)[1:] if word != "--probe")]  # torch takes seconds
        done = subprocess.run(words, cwd=PROJECT_DIR, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), line


def test_exit_statuses_in_the_readme_are_those_of_the_program() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert (
        "0 ok, 1 failed (recorded), 2 bad specification, 3 device busy, 4 does not fit, 124 time limit, 130 cancelled"
        in text
    )
    done = subprocess.run(
        [sys.executable, "-m", "runners", "run", "syntetic"],
        cwd=PROJECT_DIR,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
