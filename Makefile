# Needs Python >= 3.11, make and git; everything else is installed into .venv.
#
#   make demo    solve the embedded example and draw it
#   make test    run the tests
#   make explore  run the property tests on new examples: MINUTES=10 SEED=1
#   make boundscheck  run the tests with every index of every kernel checked
#   make test-lowest  run them with the lowest versions that pyproject.toml admits
#   make dist    build wheel and sdist, and check them
#   make lint    check style and formatting
#   make types   check the annotations
#   make bench   time solvers beside those of other libraries
#   make docs    build the site, docs/_build/html/index.html
#   make clean   remove the environment and every cache
#
# Choose an interpreter with `make PYTHON=python3.12 test`,
# pass options with `make test PYTEST_ARGS="-k sinkhorn -x"`.

IS_NEW := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	if $$p -c "$(IS_NEW)" >/dev/null 2>&1; then echo $$p; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Without CUDA a few hundred megabytes; the tests that need one of these skip without it.
FRAMEWORKS ?= torch==2.13.0 jax ott-jax pandas polars xarray
# Libraries that the adapters are for, without their dependencies: tests need them alone.
ADAPTED ?= gudhi torchcfm skada fmralign
MINUTES ?= 2
SEED ?= 0
PYTEST_ARGS ?=
# DOCS_ARGS="-D plot_gallery=0" leaves the gallery undrawn: half a minute instead of some.
DOCS_ARGS ?=
# Sphinx shows how far it is; logs of CI hold warnings only.
SPHINX_QUIET := $(if $(CI),--quiet)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test boundscheck explore test-lowest dist lint types bench docs clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   make/make/p' Makefile

demo: $(VENV)/.stamp-plot
	$(BIN)/epsilot demo

test: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

# Checked kernels have a cache of their own; compiling them takes half an hour on one core.
boundscheck: $(VENV)/.stamp-dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.pytest_cache/boundscheck \
		$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

explore: $(VENV)/.stamp-dev
	$(BIN)/python benchmarks/explore.py --minutes $(MINUTES) --seed $(SEED)

# An environment of its own, and compiled kernels of its own: versions of numba do not share them.
LOWEST := .venv-lowest
test-lowest: $(LOWEST)/.stamp
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba \
		$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

$(LOWEST)/.stamp: pyproject.toml
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		--extra dev --output-file $(LOWEST)/lowest.txt pyproject.toml
	$(LOWEST)/bin/uv pip install --quiet --compile-bytecode --python $(LOWEST)/bin/python \
		--requirement $(LOWEST)/lowest.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps --editable .
	@touch $@

dist: $(VENV)/.stamp-dev
	@$(PIP) install build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.stamp-dev
	$(BIN)/mypy

bench: $(VENV)/.stamp-plot
	$(BIN)/epsilot bench --quick

docs: $(VENV)/.stamp-dev $(VENV)/.stamp-docs
	@echo "Building the site: half a minute, and some minutes more for the gallery ..."
	$(BIN)/python -m sphinx --fail-on-warning --keep-going $(SPHINX_QUIET) $(DOCS_ARGS) docs docs/_build/html
	@echo "Built docs/_build/html/index.html"

clean:
	rm -rf $(VENV) $(LOWEST) build dist docs/_build docs/api docs/drawn .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per set of extras; a changed pyproject.toml installs again.
$(VENV)/.stamp-dev: pyproject.toml | $(BIN)/python
	@echo "Installing epsilot[dev] into $(VENV) (a few minutes the first time) ..."
	@for name in $(FRAMEWORKS); do $(PIP) install $$name || echo "Going on without $$name." >&2; done
	@for name in $(ADAPTED); do $(PIP) install --no-deps $$name 2>/dev/null || echo "Going on without $$name." >&2; done
	@$(PIP) install --editable ".[dev]"
	@touch $@

$(VENV)/.stamp-%: pyproject.toml | $(BIN)/python
	@echo "Installing epsilot[$*] into $(VENV) (a few minutes the first time) ..."
	@$(PIP) install --editable ".[$*]"
	@touch $@

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python >= 3.11 found (tried python3.13, python3.12, python3.11, python3);" \
			"install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; fi
	@if ! $(PYTHON) -c "$(IS_NEW)" 2>/dev/null; then \
		echo "$(PYTHON) is missing or older than 3.11;" \
			"epsilot needs Python >= 3.11: make PYTHON=/path/to/python" >&2; exit 1; fi
	@echo "Creating $(VENV) with $(PYTHON) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot create environments;" \
			"install its venv module (Debian: python3-venv)" >&2; exit 1; }
