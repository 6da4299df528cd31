# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check -q
# The base dependencies at their lower bounds, as pyproject.toml states them; these were released before Python 3.13.
FLOORS  = $(PYTHON) -c "import sys, tomllib; base = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; print(*(d.replace('>=', '==') if sys.version_info < (3, 13) else d for d in base), sep='\n')"

.PHONY: demo test lint unit core floor package docs house chromium clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/curvewise demo

# Side by side: two cores are busy from the beginning to the end, also while the small environments are installed.
test: $(VENV)/.dev chromium
	$(MAKE) -j2 --output-sync=target lint docs unit core floor package

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py --check
	$(BIN)/python tools/words.py

# A file is one worker's, so that what its tests share is made once. In the order of the folders: those that
# take long come early, and the many short doctests of src last, which lets both workers end together.
unit: $(VENV)/.dev chromium
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# The lenses promise to need numpy and scipy only: their tests run where nothing else is installed,
# with these two at their lower bounds. Simulations show a property of a method, and run once, in `unit`.
core: .venv-core/.done
	OMP_NUM_THREADS=1 .venv-core/bin/python -m pytest -q -m "not slow" tests/learning tests/variance tests/response tests/transfer tests/ranking tests/evals tests/scaling tests/stats tests/types

# Reading and drawing with every base dependency at its lower bound. What newer packages say of these is not an error.
floor: .venv-floor/.done
	OMP_NUM_THREADS=1 MPLBACKEND=agg .venv-floor/bin/python -m pytest -q -m "not slow" -W ignore::DeprecationWarning tests/reading tests/drawing $(wildcard tests/*/plot tests/*/test_plot*.py tests/*/test_load*.py)

# The sdist and the wheel, built one from the other, installed into an empty environment and tried there.
package: $(VENV)/.dev
	$(BIN)/python tools/package.py

# Files, lines, comments and other figures of the source tree, to watch that it stays easy to find one's way in.
house: $(VENV)/.dev
	$(BIN)/python tools/house.py

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html

# Reports are tested in a browser: the system's, or else Debian's.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null && exit 0; \
	root=; [ "$$(id -u)" = 0 ] || root="sudo -n"; \
	if ! command -v apt-get >/dev/null; then why="there is no apt-get here to install it with"; \
	elif ! { $$root apt-get -qq update && $$root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq install -y --no-install-recommends chromium >/dev/null; }; \
	then why="apt-get could not install it"; else exit 0; fi; \
	echo "No Chromium: $$why. Without one, reports are not tested in a browser." >&2

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.demo

.venv-core/.done: pyproject.toml
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip --disable-pip-version-check -q install --no-compile $$($(FLOORS) | grep -E '^(numpy|scipy)[>=]') pytest hypothesis
	.venv-core/bin/python -m pip --disable-pip-version-check -q install --no-deps -e .
	touch $@

.venv-floor/.done: pyproject.toml
	$(PYTHON) -m venv .venv-floor
	.venv-floor/bin/python -m pip --disable-pip-version-check -q install --no-compile $$($(FLOORS)) pyarrow polars pytest hypothesis
	.venv-floor/bin/python -m pip --disable-pip-version-check -q install --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) .venv-core .venv-floor docs/_build dist curvewise-demo
