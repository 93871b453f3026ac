# Everything happens in .venv, which the first target that needs it makes. `make PYTHON=/path/to/python3 ...` chooses
# the interpreter; otherwise the newest Python that will do is found.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

BIN := .venv/bin
comma := ,
RUNTIME := .venv/.installed
DEVELOPMENT := .venv/.installed-dev
PYTHON ?=
# A file of tests stays in one process, so that a server or a Spark is started once.
PYTEST_ARGS ?= -n auto --dist loadfile --no-loadscope-reorder
ROWS ?= 10000000
REPRODUCE_ARGS ?=
# Spark is half a gigabyte and useless without Java: its tests are skipped, saying so, where there is none.
EXTRAS := dev,docs,files,ledger,pdf,postgres,release,web$(if $(shell command -v java 2>/dev/null),$(comma)spark)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check

PEERS := .venv-peers/.installed

.PHONY: help setup run test slow check package pythons docs lint peers browser r bench processors reproduce clean

help:
	@echo 'make run     install cellrisk into .venv and run its demo'
	@echo 'make test    install everything into .venv and run the checks'
	@echo 'make check   the same, and then the slow tests (make slow)'
	@echo 'make package build the package, check it, and use it where nothing else is installed'
	@echo 'make pythons the same on every Python that is found, with the newest libraries and the oldest'
	@echo 'make docs    build the documentation into build/site'
	@echo 'make setup   install cellrisk and the development tools into .venv'
	@echo 'make lint    check style and types'
	@echo 'make peers   install the tools that audits are compared with into .venv-peers'
	@echo 'make browser install Chromium and Firefox for the browser tests, where that is possible'
	@echo 'make r       install R for the tests of the R package, where that is possible'
	@echo 'make bench   measure speed and memory (ROWS=100000000 for the largest table)'
	@echo 'make processors run the tests of numbers as other processors would'
	@echo 'make reproduce compute every figure and number of the paper again, into build/reproduction'
	@echo 'make clean   remove .venv and everything else that was made'

setup: $(DEVELOPMENT)

run: $(RUNTIME)
	@$(BIN)/cellrisk demo

# Screenshots of the page are kept in build/screenshots. What is compiled is kept, for the many processes that tests start.
RUN_TESTS = PYTHONDONTWRITEBYTECODE= CELLRISK_SCREENSHOTS=$(CURDIR)/build/screenshots $(BIN)/python -m pytest --durations 20 --durations-min 1

# What is to be installed is downloaded side by side; meanwhile style and types are checked.
test: setup
	@$(MAKE) --no-print-directory -j 3 lint peers browser
	@$(RUN_TESTS) -m 'not slow' $(PYTEST_ARGS)

check: test slow

# Tests marked slow, and those of hypothesis with three times as many examples.
slow: setup r
	@CELLRISK_EXAMPLES=all $(RUN_TESTS) -m 'slow or hypothesis' $(PYTEST_ARGS)

# The same tests are in `make check`, but for the other Pythons.
package: setup
	@$(BIN)/python -m pytest -n0 -q tests/test_package.py

pythons: setup
	@CELLRISK_PYTHONS=all $(BIN)/python -m pytest -n0 -v -o faulthandler_timeout=7200 tests/test_package.py

# Strict: a link or an anchor that leads nowhere ends it. The pages load nothing from elsewhere.
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo 'Built: build/site/index.html'

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then echo $(BIN)/mypy; $(BIN)/mypy; \
	else echo 'Skipped: mypy. Python 3.10 gets an older numpy, whose types differ; use 3.11 or later to check types.'; fi

# Other tools pin older libraries, so they have an environment of their own; tests beside them are skipped without it.
# Few of their files are ever imported: those are compiled then, and not by pip, which takes half a minute.
peers: | $(BIN)/python
	@test -e $(PEERS) || { echo 'Installing the tools that audits are compared with into .venv-peers.'; \
	$(BIN)/python -m venv --clear .venv-peers && .venv-peers/bin/python -m pip install --quiet --quiet \
	--disable-pip-version-check --no-compile --requirement tests/publish/auditing/peers-requirements.txt && touch $(PEERS); } || \
	{ rm -rf .venv-peers; echo 'Skipped: the tools that audits are compared with could not be installed.'; }

# The page is tested in real browsers: the system's, or Debian's, which only the superuser can install.
FIND_FIREFOX := { command -v firefox-esr || command -v firefox; } >/dev/null 2>&1
browser:
	@missing=; command -v chromium >/dev/null 2>&1 || missing=chromium; $(FIND_FIREFOX) || missing="$$missing firefox-esr"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo 'Installing Chromium and Firefox for the browser tests.'; apt-get update -qq >/dev/null 2>&1; \
	  for each in $$missing; do \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$each >/dev/null 2>&1 || true; \
	  done; \
	fi; \
	command -v chromium >/dev/null 2>&1 || \
	echo 'Skipped: browser tests. There is no Chromium (on Debian or Ubuntu: apt install chromium).'; \
	$(FIND_FIREFOX) || echo 'Skipped: tests in Firefox. There is none (on Debian: apt install firefox-esr).'

# The R package is tested in the system's R, or in Debian's: half a gigabyte, which is why `make test` does without.
R_PACKAGES := r-base-core $(addprefix r-cran-,jsonlite knitr reticulate rmarkdown testthat)
r:
	@command -v R >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && \
	{ echo 'Installing R for the tests of the R package.'; apt-get update -qq >/dev/null 2>&1; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(R_PACKAGES) >/dev/null 2>&1; }; } || \
	echo 'Skipped: tests of the R package. There is no R (on Debian or Ubuntu: apt install $(R_PACKAGES)).'

# Sums come out different in their last digits on another processor, or with another number of threads: no test may mind.
NUMERICAL := src tests/noise tests/risk tests/decide tests/publish/dp_risk tests/publish/simulation \
	$(addprefix tests/repeat/,accounting averaging sequences together)
processors: setup
	@for setting in OPENBLAS_CORETYPE=Prescott OPENBLAS_CORETYPE=Haswell 'NPY_DISABLE_CPU_FEATURES=X86_V3 X86_V4' \
	OPENBLAS_NUM_THREADS=1 OPENBLAS_NUM_THREADS=2; do echo "$$setting"; \
	env "$$setting" nice $(BIN)/python -m pytest $(PYTEST_ARGS) -q -m 'not slow' $(NUMERICAL) || exit 1; done

# The data that are not shipped are fetched from UCI; REPRODUCE_ARGS='--bankruptcy FILE' or --offline fetches nothing.
reproduce: $(RUNTIME)
	@$(BIN)/python -m reproduction $(REPRODUCE_ARGS)

bench: setup
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/scale.py --rows $(ROWS)
	$(BIN)/python benchmarks/together.py

clean:
	rm -rf .venv .venv-peers build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests tools benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(RUNTIME): pyproject.toml | $(BIN)/python
	@echo 'Installing cellrisk into .venv; the first time takes a minute or two.'
	@$(PIP_INSTALL) --editable .
	@touch $@

$(DEVELOPMENT): pyproject.toml | $(BIN)/python
	@echo 'Installing cellrisk and its development tools into .venv; the first time takes a minute or two.'
	@$(PIP_INSTALL) --editable '.[$(EXTRAS)]'
	@touch $(RUNTIME) $@

# A candidate counts only if it really starts: version managers leave names behind that do not.
$(BIN)/python:
	@found=; old=; bare=; \
	for python in $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3.10 python3 python); do \
	  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	  if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then old="$$old $$version"; continue; fi; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then bare="$$bare $$version"; continue; fi; \
	  found=$$python; break; \
	done; \
	if [ -n "$$found" ]; then \
	  echo "Making .venv with Python $$version."; \
	  "$$found" -m venv --clear .venv; \
	elif [ -n "$$bare" ]; then \
	  set -- $$bare; \
	  echo "Python $$1 cannot make virtual environments: its venv module is missing. On Debian or Ubuntu: apt install python$$1-venv" >&2; exit 1; \
	elif [ -n "$$old" ]; then \
	  set -- $$old; \
	  echo "cellrisk needs Python 3.10 or later; found only $$1. Install a newer one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	else \
	  echo "cellrisk needs Python 3.10 or later; found none. On Debian or Ubuntu: apt install python3 python3-venv" >&2; exit 1; \
	fi
