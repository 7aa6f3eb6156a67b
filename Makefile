# LikeForLike: set up, run, check, test. `make` alone lists the targets.
#
# Works with GNU Make 3.81 (macOS) and newer. Everything is installed into .venv beside this file and nowhere else
# (but for Chromium, which `make test` takes from the system's packages when it may).

# The Python that .venv is made from; 3.11 or newer. On a Gaudi machine: the one that has habana-torch-plugin.
PYTHON ?= python3

# Which build of torch to install. The choice is remembered in .venv until another is given.
#   default  whatever pip's configured index gives (Linux: CUDA on x86-64; macOS: CPU and Apple GPU)
#   cpu      small, no accelerator
#   cuda     NVIDIA                     (cu130; other CUDA versions by their name, e.g. TORCH=cu126)
#   rocm     AMD                        (rocm7.2; others by their name)
#   xpu      Intel GPU
# Any other value is taken as the name of a folder of PyTorch's wheel index, or as the full address of an index.
# On a Gaudi machine TORCH is not used: Intel's own build, which the machine has, is kept.
ifeq ($(origin TORCH),undefined)
TORCH := $(or $(shell cat .venv/torch-build 2>/dev/null),default)
endif

PORT ?= 8501

# "yes" when this is a Gaudi machine; GAUDI=no on the command line sets up for its CPU instead.
ifeq ($(origin GAUDI),undefined)
GAUDI := $(shell { command -v hl-smi || $(PYTHON) -c 'import importlib.metadata as m; m.version("habana-torch-plugin")'; } \
	>/dev/null 2>&1 && echo yes)
endif

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# requirements.txt is the one place that says which torch.
TORCH_PIN := $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.txt)
WHEELS := https://download.pytorch.org/whl
TORCH_INDEX_default :=
TORCH_INDEX_cuda := $(WHEELS)/cu130
TORCH_INDEX_rocm := $(WHEELS)/rocm7.2
ifneq ($(filter default cuda rocm,$(TORCH)),)
TORCH_INDEX := $(TORCH_INDEX_$(TORCH))
else ifneq ($(findstring ://,$(TORCH)),)
TORCH_INDEX := $(TORCH)
else
TORCH_INDEX := $(WHEELS)/$(TORCH)
endif
TORCH_FROM := "$(TORCH_PIN)" $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))

ifeq ($(GAUDI),yes)
REQUIREMENTS := requirements-gaudi.txt
# The machine's torch is visible inside .venv, and pip is told never to replace it: see .venv/machine.txt below.
VENV_FLAGS := --system-site-packages
CONSTRAINTS := -c $(VENV)/machine.txt
else
REQUIREMENTS := requirements.txt
VENV_FLAGS :=
CONSTRAINTS :=
endif

# The stamps carry a checksum of what was installed, so they go stale when that changes and never because a checkout
# touched a file's time.
checksum = $(shell { cat $(1); echo "$(TORCH) $(GAUDI)"; } | cksum | tr ' ' '-')
READY := $(VENV)/.ready-$(call checksum,$(REQUIREMENTS))
READY_DEV := $(VENV)/.ready-dev-$(call checksum,$(REQUIREMENTS) requirements-dev.txt)

PYTEST_ARGS ?=
CHECKS := format lint types architecture translations

.PHONY: help setup setup-dev browser run test gaudi-test check $(CHECKS:%=check-%) list-checks format bundled-model bench soak clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 28

run: $(READY) ## set up what is missing, then open the app (PORT=8501, TORCH=default|cpu|cuda|rocm|xpu)
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec $(BIN)/python -m streamlit run streamlit_app.py --server.port $(PORT)

test: $(READY_DEV) browser ## set up what is missing, then run all tests (PYTEST_ARGS="-k name")
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest $(PYTEST_ARGS)

# The Gaudi set of libraries beside the general one, on a machine without a Gaudi: our code against the real
# optimum-habana, with only the Gaudi software made up.
GAUDI_VENV := .venv-gaudi
GAUDI_READY := $(GAUDI_VENV)/.ready-$(call checksum,requirements-gaudi.txt)

gaudi-test: $(READY_DEV) $(GAUDI_READY) ## test the Gaudi path without a Gaudi, in an environment of its own (3 GB)
	@PATH="$(CURDIR)/$(BIN):$$PATH" LIKEFORLIKE_GAUDI_PYTHON="$(CURDIR)/$(GAUDI_VENV)/bin/python" \
		$(BIN)/python -m pytest -m gaudi $(PYTEST_ARGS)

$(GAUDI_READY):
	rm -rf $(GAUDI_VENV)
	$(PYTHON) -m venv $(GAUDI_VENV)
	$(GAUDI_VENV)/bin/python -m pip --disable-pip-version-check install $(TORCH_FROM)
	$(GAUDI_VENV)/bin/python -m pip --disable-pip-version-check install "$(TORCH_PIN)" -r requirements-gaudi.txt
	@touch $@

check: $(CHECKS:%=check-%) ## formatting, lint, types, direction of imports, translations

check-format: $(READY_DEV)
	$(BIN)/ruff format --check .

check-lint: $(READY_DEV)
	$(BIN)/ruff check .

check-types: $(READY_DEV)
	$(BIN)/mypy

check-architecture: $(READY_DEV)
	$(BIN)/lint-imports

check-translations: $(READY_DEV)
	$(BIN)/python -m app.translations check

# For .ci/run, which runs and counts each one.
list-checks:
	@echo $(CHECKS:%=check-%)

format: $(READY_DEV) ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bundled-model: $(READY) ## train the small Stable Diffusion that ships, again (hours on a CPU)
	$(BIN)/python -m runners.bundled_model.train all

bench: $(READY) ## time the app's start and the worker's overhead
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m bench

soak: $(READY) ## queue 300 runs while processes are killed at random; nothing may get lost (some minutes)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m bench.soak $(SOAK_ARGS)

setup: $(READY) ## only install
setup-dev: $(READY_DEV) ## only install, with what the checks and tests need

clean: ## remove .venv and caches; your results in var/ stay
	rm -rf $(VENV) $(GAUDI_VENV) .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +

# $(PYTHON) is compared with what .venv was made from, since making it anew over another version leaves a mixture.
$(READY):
	@command -v $(PYTHON) >/dev/null || \
		{ echo "There is no $(PYTHON). Install Python 3.11 or newer, or name yours: make run PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "LikeForLike needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; \
		if [ "$(GAUDI)" = yes ]; then \
			echo "On Gaudi, Python comes with Intel's image: take the Ubuntu 24.04 one (Python 3.12). See docs/installing.md." >&2; \
		else \
			echo "Install a newer one and name it: make run PYTHON=python3.12" >&2; \
		fi; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
ifeq ($(GAUDI),yes)
	@$(PYTHON) -c 'import importlib.metadata as m; m.version("habana-torch-plugin")' 2>/dev/null || { \
		echo "This machine has hl-smi, but $(PYTHON) has no habana-torch-plugin, Intel's torch for Gaudi." >&2; \
		echo "Run inside Intel's PyTorch image, name the Python that has it (make run PYTHON=...), or set up" >&2; \
		echo "for the CPU only (make run GAUDI=no). See docs/installing.md." >&2; exit 1; }
endif
	@version='import sys; print(sys.version_info[:2])'; \
	if [ -e $(VENV) ] && [ "$$($(BIN)/python -c "$$version" 2>/dev/null)" != "$$($(PYTHON) -c "$$version")" ]; then clear=--clear; fi; \
	rm -f $(VENV)/.ready-*; set -x; $(PYTHON) -m venv $$clear $(VENV_FLAGS) $(VENV)
ifeq ($(GAUDI),yes)
	@# Where $(PYTHON) is itself a virtual environment, as Intel's installer makes one, --system-site-packages shows the
	@# Python below it; this shows the environment.
	@$(PYTHON) -c 'import sys, sysconfig; sys.prefix != sys.base_prefix and print(sysconfig.get_path("purelib"))' \
		> "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/machine.pth"
	@$(PYTHON) -c 'import importlib.metadata as m; [print(f"{n}=={d.version}") for d in m.distributions() for n in [d.name.lower().replace("_", "-")] if n in ("torch", "torchvision", "torchaudio", "habana-torch-plugin")]' > $(VENV)/machine.txt
else
	@# All builds of a version satisfy its pin, so pip has to be told to change one for another; this way it does so only
	@# once it has the new one.
	@if [ "$(TORCH)" != "$$(cat $(VENV)/torch-build 2>/dev/null || echo "$(TORCH)")" ]; then \
		set -x; $(PIP) install --force-reinstall --no-deps $(TORCH_FROM); fi
	$(PIP) install $(TORCH_FROM)
	@echo "$(TORCH)" > $(VENV)/torch-build
endif
	$(PIP) install -r $(REQUIREMENTS) $(CONSTRAINTS)
	@touch $@

$(READY_DEV): $(READY)
	$(PIP) install -r requirements-dev.txt $(CONSTRAINTS)
	@rm -f $(VENV)/.ready-dev-*
	@touch $@

# The test in a real browser drives the system's Chromium or Chrome. Without one it is skipped with a warning, and
# fails where CI=true.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	if [ -d "/Applications/Google Chrome.app" ] || [ -n "$$LIKEFORLIKE_BROWSER" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the browser test."; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } \
			>/tmp/likeforlike-chromium.log 2>&1 </dev/null && exit 0; \
		tail -5 /tmp/likeforlike-chromium.log >&2; \
	fi; \
	echo "*** No Chromium or Chrome here: the browser test will not run. Install one (Debian: apt-get install chromium;" >&2; \
	echo "*** any system: .venv/bin/playwright install chromium), or name it: LIKEFORLIKE_BROWSER=/path/to/chrome" >&2
