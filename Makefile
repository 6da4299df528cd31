# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test lint unit core docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/curvewise demo

# Side by side: the documentation keeps one core busy, the tests what is left.
test: $(VENV)/.dev .venv-core/.done
	$(MAKE) -j2 --output-sync=target lint docs unit core

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/pytest -n 2

# The lenses promise to need numpy and scipy only: their tests run where nothing else is installed.
core: .venv-core/.done
	OMP_NUM_THREADS=1 .venv-core/bin/python -m pytest -q tests/learning tests/variance tests/response tests/transfer tests/ranking tests/stats tests/types

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.demo

.venv-core/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt numpy scipy pytest hypothesis
	.venv-core/bin/python -m pip --disable-pip-version-check -q install --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) .venv-core docs/_build curvewise-demo
