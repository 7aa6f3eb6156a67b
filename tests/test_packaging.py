"""Set-up, container and settings keep what they promise; no Docker and no network needed."""

import itertools
import json
import math
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

PROJECT_DIR = Path(__file__).resolve().parent.parent
STREAMLIT_CONFIG = tomllib.loads((PROJECT_DIR / ".streamlit/config.toml").read_text(encoding="utf-8"))


def _requirements(name: str) -> dict[str, str]:
    """Package to version; fails on a line that is not an exact pin."""
    pins = {}
    for line in (PROJECT_DIR / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[[a-z_,]+\])?==([0-9][0-9a-z.+]*)(?:; [a-z_]+ == .+)?", line)
            assert match, f"{name}: not an exact pin: {line}"
            pins[match[1]] = match[2]
    return pins


class TestRequirements:
    @pytest.mark.parametrize("name", ["requirements.txt", "requirements-gaudi.txt", "requirements-dev.txt"])
    def test_every_line_is_an_exact_pin(self, name: str) -> None:
        assert _requirements(name)

    def test_the_app_is_the_same_everywhere(self) -> None:
        general, gaudi = _requirements("requirements.txt"), _requirements("requirements-gaudi.txt")
        for package in ("streamlit", "plotly", "duckdb", "pandas", "numpy", "pyarrow", "pillow", "psutil"):
            assert general[package] == gaudi[package]

    def test_gaudi_leaves_torch_to_the_machine(self) -> None:
        assert not {"torch", "torchvision", "habana-torch-plugin"} & set(_requirements("requirements-gaudi.txt"))

    def test_gaudi_keeps_what_optimum_habana_pins(self) -> None:
        pins = _requirements("requirements-gaudi.txt")
        assert pins["optimum-habana"] == "1.21.2"
        assert pins["transformers"].startswith("4.55.")
        assert (pins["diffusers"], pins["accelerate"], pins["sentence-transformers"]) == ("0.35.1", "1.10.1", "3.3.1")

    @pytest.mark.parametrize("name", ["requirements.txt", "requirements-gaudi.txt"])
    def test_both_say_why_there_are_two(self, name: str) -> None:
        comments = [
            line for line in (PROJECT_DIR / name).read_text(encoding="utf-8").splitlines() if line.startswith("#")
        ]
        assert "optimum-habana" in "\n".join(comments)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The Makefile and the requirements alone, where nothing is installed yet."""
    for name in ("Makefile", "requirements.txt", "requirements-gaudi.txt", "requirements-dev.txt"):
        shutil.copy(PROJECT_DIR / name, tmp_path / name)
    return tmp_path


def _make(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "TORCH"}
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def _program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)
    return path


class TestMakefile:
    @pytest.mark.parametrize(
        ("choice", "index"),
        [
            ("cpu", "https://download.pytorch.org/whl/cpu"),
            ("cuda", "https://download.pytorch.org/whl/cu130"),
            ("cu126", "https://download.pytorch.org/whl/cu126"),
            ("rocm", "https://download.pytorch.org/whl/rocm7.2"),
            ("xpu", "https://download.pytorch.org/whl/xpu"),
            ("https://wheels.example/here", "https://wheels.example/here"),
        ],
    )
    def test_torch_comes_from_the_index_of_the_chosen_build(self, project: Path, choice: str, index: str) -> None:
        planned = _make(project, "-n", "setup", f"TORCH={choice}", "GAUDI=no").stdout
        pin = _requirements("requirements.txt")["torch"]
        assert f'install "torch=={pin}" --index-url {index}' in planned

    def test_torch_comes_first_and_by_default_from_pips_own_index(self, project: Path) -> None:
        planned = _make(project, "-n", "setup", "GAUDI=no").stdout
        assert "--index-url" not in planned
        assert planned.index('install "torch==') < planned.index("install -r requirements.txt")

    def test_the_choice_of_torch_is_remembered(self, project: Path) -> None:
        (project / ".venv").mkdir()
        (project / ".venv/torch-build").write_text("rocm\n", encoding="utf-8")
        assert "/whl/rocm7.2" in _make(project, "-n", "setup", "GAUDI=no").stdout

    def test_once_set_up_nothing_is_installed_again(self, project: Path) -> None:
        stamp = _stamp(_make(project, "-n", "setup", "GAUDI=no").stdout)
        (project / ".venv").mkdir()
        (project / stamp).touch()
        assert "install" not in _make(project, "-n", "setup", "GAUDI=no").stdout

    def test_another_pin_is_installed(self, project: Path) -> None:
        stamp = _stamp(_make(project, "-n", "setup", "GAUDI=no").stdout)
        (project / ".venv").mkdir()
        (project / stamp).touch()
        requirements = project / "requirements.txt"
        requirements.write_text(requirements.read_text(encoding="utf-8") + "rich==15.0.0\n", encoding="utf-8")
        assert "install -r requirements.txt" in _make(project, "-n", "setup", "GAUDI=no").stdout

    def test_gaudi_keeps_the_machines_torch(self, project: Path) -> None:
        _program(project / "bin/hl-smi", "exit 0\n")
        planned = _make(project, "-n", "setup", path=project / "bin").stdout
        assert "--system-site-packages" in planned
        assert "install -r requirements-gaudi.txt -c .venv/machine.txt" in planned
        assert 'install "torch==' not in planned

    def test_hl_smi_without_intels_torch_says_what_to_do(self, project: Path) -> None:
        _program(project / "bin/hl-smi", "exit 0\n")
        done = _make(project, "setup", path=project / "bin")
        assert done.returncode != 0
        assert "habana-torch-plugin" in done.stderr
        assert "GAUDI=no" in done.stderr
        assert not (project / ".venv").exists()

    def test_an_old_python_says_what_to_do(self, project: Path) -> None:
        old = _program(project / "bin/python3.10", '[ "$1" = -V ] && echo Python 3.10.12 && exit 0\nexit 1\n')
        done = _make(project, "run", f"PYTHON={old}", "GAUDI=no")
        assert done.returncode != 0
        assert "3.11 or newer" in done.stderr
        assert "Python 3.10.12" in done.stderr
        assert "PYTHON=python3.12" in done.stderr

    def test_an_old_python_on_gaudi_names_the_image(self, project: Path) -> None:
        old = _program(project / "bin/python3.10", '[ "$1" = -V ] && echo Python 3.10.12 && exit 0\nexit 1\n')
        assert "Ubuntu 24.04" in _make(project, "run", f"PYTHON={old}", "GAUDI=yes").stderr

    def test_no_python_says_so(self, project: Path) -> None:
        assert "There is no python9" in _make(project, "run", "PYTHON=python9", "GAUDI=no").stderr

    def test_help_lists_the_targets(self, project: Path) -> None:
        shown = _make(project).stdout
        for target in ("run", "test", "check", "format", "bundled-model", "bench", "clean"):
            assert f"make {target} " in shown

    def test_clean_keeps_results(self, project: Path) -> None:
        results = project / "var/runs"
        results.mkdir(parents=True)
        (project / ".venv").mkdir()
        assert _make(project, "clean").returncode == 0
        assert results.exists()
        assert not (project / ".venv").exists()


def _stamp(planned: str) -> str:
    match = re.search(r"touch (\.venv/\.ready-\S+)", planned)
    assert match
    return match[1]


def _stages() -> dict[str, list[tuple[str, str]]]:
    """The Dockerfile as (instruction, argument) pairs by stage."""
    text = (PROJECT_DIR / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")).replace("\\\n", " ")
    stages: dict[str, list[tuple[str, str]]] = {"": []}
    stage = ""
    for line in filter(None, map(str.strip, lines.splitlines())):
        instruction, _, argument = line.partition(" ")
        if instruction == "FROM":
            stage = argument.split(" AS ")[1]
            stages[stage] = []
        stages[stage].append((instruction, argument.strip()))
    return stages


@pytest.mark.parametrize("target", ["default", "gaudi"])
class TestDockerfile:
    @staticmethod
    def _last(target: str, instruction: str) -> str:
        return [argument for name, argument in _stages()[target] if name == instruction][-1]

    def test_runs_as_a_user_of_its_own(self, target: str) -> None:
        user = self._last(target, "USER")
        assert user not in ("root", "0")
        names = [name for name, _ in _stages()[target]]
        assert "RUN" not in names[names.index("USER") :]
        assert any(name == "RUN" and f"chown {user} /srv/var" in argument for name, argument in _stages()[target])

    def test_results_are_in_one_volume(self, target: str) -> None:
        assert self._last(target, "VOLUME") == "/srv/var"
        assert "LIKEFORLIKE_VAR=/srv/var" in self._last(target, "ENV")

    def test_reports_its_health_without_curl(self, target: str) -> None:
        check = self._last(target, "HEALTHCHECK")
        command = json.loads(check[check.index("CMD") + len("CMD") :])
        assert command[:2] == ["python3", "-c"]
        assert "/_stcore/health" in command[2]
        compile(command[2], "healthcheck", "exec")

    def test_listens_for_the_published_port_only_by_its_command(self, target: str) -> None:
        command = json.loads(self._last(target, "CMD"))
        assert f"--server.address={'.'.join('0000')}" in command
        assert "--server.port=8501" in command
        assert self._last(target, "EXPOSE") == "8501"

    def test_copies_requirements_before_code(self, target: str) -> None:
        """Or every edit would install everything again."""
        copies = [argument for name, argument in _stages()[target] if name == "COPY"]
        assert copies[0].startswith("requirements")
        assert copies[-1] == ". ."

    def test_installs_from_the_pinned_set(self, target: str) -> None:
        installs = " ".join(argument for name, argument in _stages()[target] if name == "RUN")
        name = "requirements-gaudi.txt" if target == "gaudi" else "requirements.txt"
        assert f"-r {name}" in installs
        assert ("machine.txt" in installs) == (target == "gaudi")


def test_the_base_images_are_build_arguments() -> None:
    stages = _stages()
    arguments = {argument.split("=")[0] for name, argument in stages[""] if name == "ARG"}
    assert arguments == {"BASE_IMAGE", "GAUDI_IMAGE"}
    assert stages["default"][0] == ("FROM", "${BASE_IMAGE} AS default")
    assert stages["gaudi"][0] == ("FROM", "${GAUDI_IMAGE} AS gaudi")
    assert list(stages)[-1] == "default"  # what a plain `docker build` makes


def test_the_targets_run_the_same() -> None:
    ends = [
        [pair for pair in instructions if pair[0] in ("USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD")]
        for name, instructions in _stages().items()
        if name
    ]
    assert ends[0] == ends[1]


def test_results_and_history_stay_out_of_the_image() -> None:
    ignored = (PROJECT_DIR / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {".git", "var", ".venv*", "tests"} <= set(ignored)


def test_the_documented_docker_run_publishes_to_this_computer_only() -> None:
    texts = [PROJECT_DIR / "Dockerfile", PROJECT_DIR / "README.md", *(PROJECT_DIR / "docs").glob("*.md")]
    published = [port for path in texts for port in re.findall(r"-p (\S*8501\S*)", path.read_text(encoding="utf-8"))]
    assert published
    assert set(published) == {"127.0.0.1:8501:8501"}


class TestStreamlitConfig:
    def test_serves_this_computer_and_reports_to_nobody(self) -> None:
        assert STREAMLIT_CONFIG["server"]["address"] == "localhost"
        assert STREAMLIT_CONFIG["browser"]["gatherUsageStats"] is False

    def test_asks_nothing_at_the_first_start(self) -> None:
        assert STREAMLIT_CONFIG["server"]["showEmailPrompt"] is False

    def test_every_option_is_known_to_this_streamlit(self) -> None:
        from streamlit.config import get_config_options

        known = set(get_config_options())

        def names(table: dict[str, object], prefix: str = "") -> list[str]:
            return [
                name
                for key, value in table.items()
                for name in (names(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
            ]

        assert set(names(STREAMLIT_CONFIG)) - known == set()

    def test_fetches_no_font(self) -> None:
        assert "http" not in json.dumps(STREAMLIT_CONFIG["theme"])

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_colours_can_be_read(self, theme: str) -> None:
        """The contrasts of WCAG 2.2 AA: 4.5:1 for text, 3:1 for what a chart or a control shows."""
        colours = STREAMLIT_CONFIG["theme"][theme]
        for background in (colours["backgroundColor"], colours["secondaryBackgroundColor"]):
            assert _contrast(colours["textColor"], background) >= 4.5
            assert _contrast(colours["primaryColor"], background) >= 3
        # Streamlit writes the text of a primary button in white.
        assert _contrast("#ffffff", colours["primaryColor"]) >= 4.5
        for colour in colours["chartCategoricalColors"]:
            assert _contrast(colour, colours["backgroundColor"]) >= 3, colour

    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("eyes", ["typical", "protanopia", "deuteranopia", "tritanopia"])
    def test_chart_colours_are_told_apart(self, theme: str, eyes: str) -> None:
        colours = [_lab(colour, eyes) for colour in STREAMLIT_CONFIG["theme"][theme]["chartCategoricalColors"]]
        assert min(math.dist(one, other) for one, other in itertools.combinations(colours, 2)) >= 20

    def test_both_themes_have_as_many_chart_colours(self) -> None:
        light, dark = (STREAMLIT_CONFIG["theme"][name]["chartCategoricalColors"] for name in ("light", "dark"))
        assert len(light) == len(dark) == len(set(light)) == len(set(dark))


# What a colour becomes for such eyes: Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
SEEN_AS = {
    "typical": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def _linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _times(matrix: list[list[float]], vector: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _lab(colour: str, eyes: str) -> list[float]:
    seen = [min(max(part, 0), 1) for part in _times(SEEN_AS[eyes], _linear(colour))]
    xyz = _times([[0.434, 0.376, 0.190], [0.213, 0.715, 0.072], [0.018, 0.109, 0.873]], seen)  # white at 1, 1, 1
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), _linear(colour), strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_ci_script_is_valid_bash() -> None:
    assert subprocess.run(["bash", "-n", ".ci/run"], cwd=PROJECT_DIR, check=False, timeout=30).returncode == 0
