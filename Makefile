# Two commands do everything: `make report` runs the main job on a built-in data set, `make test` passes
# the tests. Each sets up what it needs the first time, in .venv.

# Another Python (make test PYTHON=python3.14) or the oldest versions allowed (make test OLDEST=1) have their own environment.
PYTHON ?= python3
OLDEST ?=
VENV   := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))$(if $(OLDEST),-oldest)
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs
TORCH  ?= torch==2.13.0
# On two cores, each with tests that stand beside each other and share what they make; when one is done, it takes over
# half of what the other has left. What is compiled is kept: tests start processes by the hundred.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal

.PHONY: mutants help report test check lint format types pytest docs bench bench-gpu clean

help:
	@echo "make report   write report.html: what the built-in data set is worth, leaks and reveals"
	@echo "make test     linter, formatter, type checker and tests"
	@echo "make check    linter, formatter, type checker and the fast tests: about a minute"
	@echo "make docs     build the documentation and check its links"
	@echo "make bench    time datassay against its peers on the same arrays, and put the figures into the pages"
	@echo "make bench-gpu    the same on a graphics card, against plain torch"
	@echo "make mutants  change the code at random in 500 places and see whether the tests notice"
	@echo "make format   rewrite the code in the house style"
	@echo "make clean    remove the environments and every cache"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "datassay needs Python 3.11 or later; '$(PYTHON)' is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(if $(OLDEST),$(BIN)/python -m pip install --quiet --disable-pip-version-check uv && \
	  VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --resolution lowest-direct -e '.[dev]',\
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]')
	@touch $@

# A browser for the tests of the report's page: Chromium of the system, installed from Debian's packages where that is
# possible. Without one those tests are skipped, and say so.
$(VENV)/.browser: $(READY)
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null; } || \
	  echo "No Chromium here, and none could be installed: the page is not tested in a browser."
	@touch $@

# Torch, for the tests of devices, which run on the processor where there is no card. A build without CUDA will do; with
# TORCH= none is installed, and those tests are skipped. Triton, which a build without CUDA does not bring, interprets
# there what it compiles for a card.
$(VENV)/.torch: $(READY)
	@[ -z "$(TORCH)" ] || $(BIN)/python -c 'import torch' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' || \
	  echo "Torch could not be installed: devices are not tested."
	@[ -z "$(TORCH)" ] || $(BIN)/python -c 'import triton' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check triton 2>/dev/null || \
	  echo "Triton could not be installed: what it compiles for a card is not tested."
	@touch $@

report: $(READY)
	$(BIN)/datassay report census --truth label_error -o report.html
	@echo "Open report.html in a browser."

# The linter and the type checker judge the source, once, by the newest versions. What the oldest libraries call may be
# deprecated in the newer ones that they themselves use.
test: $(if $(OLDEST),,lint types) pytest

# Without the tests that tests/slow.txt names: about a minute on two cores.
check: lint types $(VENV)/.browser
	$(PYTEST) -m 'not slow'

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/mypy

pytest: $(READY) $(VENV)/.browser $(VENV)/.torch
	$(PYTEST) $(if $(OLDEST),-W ignore::DeprecationWarning)

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(DOCS)
	$(BIN)/sphinx-build -E -W --keep-going -n -q -b html docs docs/_build/html
	$(BIN)/python docs/check.py docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

bench: $(READY)
	PYTHON=$(PYTHON) $(BIN)/python bench/run.py $(SUITES)  # SUITES="values models": these alone

bench-gpu: $(READY)
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[gpu]'
	$(BIN)/python bench/run.py bench_gpu

# What was tried is kept in .mutants: a run that was stopped goes on. One room: make mutants MUTANTS=--room=market
mutants: $(READY)
	$(BIN)/python tests/mutants/run.py $(MUTANTS)

clean:
	rm -rf .venv* docs/_build docs/api bench/.peers bench/.canon bench/.anonymeter .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutants
	find src tests bench docs -name __pycache__ -type d -prune -exec rm -rf {} +
