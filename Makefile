# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check -q
FEWER   = -q -m "not slow" --hypothesis-profile=few
PYTEST  = OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/pytest -q
# The base dependencies at their lower bounds, as pyproject.toml states them; these were released before Python 3.13.
FLOORS  = $(PYTHON) -c "import sys, tomllib; base = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; print(*(d.replace('>=', '==') if sys.version_info < (3, 13) else d for d in base), sep='\n')"
SITE    = import sysconfig; print(sysconfig.get_path('purelib'))

# A container may ask Python to keep no byte code. Hundreds of processes would then compile torch and pandas again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint unit unit-others core floor package docs house chromium versions clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/curvewise demo

# Side by side, so that two cores are busy from the beginning to the end: the small environments are installed and used
# while the large one is still being installed. Long jobs come first, which lets both cores end together. After a
# failure the others go on, and all failures are listed at the end.
test:
	$(MAKE) -j2 -k --output-sync=target lint core floor docs package unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py --check
	$(BIN)/python tools/words.py

# One process for each of the larger folders of tests, and one for the others with the doctests of src. Each imports and
# compiles what it needs itself; two workers that collect all tests would do that for all of them twice.
UNITS  := study learning ranking nn response cli report examples variance evals scaling transfer store
unit: $(UNITS:%=unit-%) unit-others
unit-%: $(VENV)/.dev chromium
	$(PYTEST) tests/$*
unit-others: $(VENV)/.dev chromium
	$(PYTEST) $(filter-out $(UNITS:%=tests/%/) %/__pycache__/,$(wildcard tests/*/)) $(wildcard tests/test_*.py) src

# The lenses promise to need numpy and scipy only: their tests run where nothing else is installed,
# with these two at their lower bounds. Simulations show a property of a method, and run once, in `unit`.
LENSES := learning variance response transfer ranking evals scaling
core: .venv-core/.done
	OMP_NUM_THREADS=1 .venv-core/bin/python -m pytest $(FEWER) $(wildcard $(LENSES:%=tests/%) tests/stats tests/types)

# Reading and drawing with every base dependency at its lower bound. What newer packages say of these is not an error.
floor: .venv-floor/.done
	OMP_NUM_THREADS=1 MPLBACKEND=agg .venv-floor/bin/python -m pytest $(FEWER) -W ignore::DeprecationWarning tests/reading tests/drawing $(wildcard tests/*/plot tests/*/test_plot*.py tests/*/test_load*.py)

# The sdist and the wheel, built one from the other, installed into an empty environment and tried there.
package: $(VENV)/.dev
	$(BIN)/python tools/package.py

# Files, lines, comments and other figures of the source tree, to watch that it stays easy to find one's way in.
house: $(VENV)/.dev
	$(BIN)/python tools/house.py

docs: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html

# Reports are tested in a browser: the system's, or else Debian's.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null && exit 0; \
	root=; [ "$$(id -u)" = 0 ] || root="sudo -n"; \
	if ! command -v apt-get >/dev/null; then why="there is no apt-get here to install it with"; \
	elif ! { $$root apt-get -qq update && $$root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq install -y --no-install-recommends chromium >/dev/null; }; \
	then why="apt-get could not install it"; else exit 0; fi; \
	echo "No Chromium: $$why. Without one, reports are not tested in a browser." >&2

# The pip that Python 3.11 brings takes twice as long to choose among the files of an index as later ones.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --no-compile --upgrade pip

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.demo

# The small environments have no pip of their own and find the source by its path.
.venv-core/.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PYTHON) -m venv --without-pip .venv-core
	$(PIP) --python .venv-core install --no-compile $$($(FLOORS) | grep -E '^(numpy|scipy)[>=]') $$(grep -E '^(pytest|hypothesis)==' constraints.txt)
	echo "$(CURDIR)/src" > $$(.venv-core/bin/python -c "$(SITE)")/curvewise.pth
	touch $@

# On top of the first: numpy and scipy are the same.
.venv-floor/.done: .venv-core/.done
	$(PYTHON) -m venv --without-pip .venv-floor
	core=$$(.venv-core/bin/python -c "$(SITE)") && printf '%s\n' "$(CURDIR)/src" "$$core" > $$(.venv-floor/bin/python -c "$(SITE)")/curvewise.pth
	$(PIP) --python .venv-floor install --no-compile $$($(FLOORS)) $$(grep -E '^(pyarrow|polars)==' constraints.txt)
	touch $@

# The newest versions of everything that tests need, but for torch. Run all tests with them before they are committed.
versions:
	$(PYTHON) -m venv --clear .venv-versions
	.venv-versions/bin/python -m pip -q install --no-compile $$(grep '^torch==' constraints.txt) -e '.[dev]'
	grep '^#' constraints.txt > .venv-versions/constraints.txt
	.venv-versions/bin/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' >> .venv-versions/constraints.txt
	mv .venv-versions/constraints.txt constraints.txt
	rm -rf .venv-versions

clean:
	rm -rf $(VENV) .venv-core .venv-floor docs/_build dist curvewise-demo
