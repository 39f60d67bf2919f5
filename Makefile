# `make up` and `make test` are the two commands of the README; the rest is for development.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two for each core of a small machine: much of a test is waiting.
WORKERS ?= 4
# Byte code is kept, whatever this shell says: pods cannot write it, and tests start hundreds of
# programs that would compile their modules each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up down test lint compile collect unit generate lock setup soak e2e clean bench bench-quick

help: ## Show what can be done
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make the environment in .venv; other targets do it too
	@$(PYTHON) scripts/set_up.py $(VENV) $(if $(filter-out file,$(origin PYTHON)),--this-python)

up: compile ## Run a local cluster with Quarterdeck in it; Ctrl-C stops it
	@exec $(BIN)/quarterdeck local up --foreground --all --console \
		$(if $(LOG_LEVEL),--cvo-log-level $(LOG_LEVEL))

down: setup ## Stop the local cluster
	@$(BIN)/quarterdeck local down

# Go's collector runs less often in the control planes of tests, and in kubectl: measured, a start with
# all resource types takes 15 % less of the processor, and the API server up to twice the memory.
test: export GOGC ?= 400
test: setup ## Run the linters and all tests
	@$(MAKE) --no-print-directory -j2 lint collect
	@scripts/system-packages test
	@$(BIN)/quarterdeck local binaries
	@$(BIN)/quarterdeck local binaries --helm >/dev/null || echo "the tests of the Helm chart are skipped"
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak and not e2e"

compile: setup
	@$(BIN)/python -m compileall -q src

# The workers of a test run would each rewrite the assertions of all tests; here it is done once,
# beside the linters. What cannot be collected is said by the run itself.
collect: compile
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 || true

unit: setup ## Run the tests that need no cluster
	@$(BIN)/pytest tests/unit

lint: setup ## Check style, types and import layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports

generate: setup ## Write deploy (CRDs, RBAC, payload) from the declarations
	@$(BIN)/python -m quarterdeck.delivery deploy

lock: setup ## Resolve the dependencies again, and write requirements
	@$(BIN)/pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip compile --quiet --no-header --universal --generate-hashes pyproject.toml -o requirements/runtime.txt
	@$(BIN)/uv pip compile --quiet --no-header --universal --generate-hashes --extra dev pyproject.toml -o requirements/dev.txt

bench: setup ## Measure ours beside its peers; the machine should be idle
	@$(BIN)/quarterdeck local binaries
	@$(BIN)/python -m bench

bench-quick: setup ## The same with smaller sizes
	@$(BIN)/quarterdeck local binaries
	@$(BIN)/python -m bench --quick

soak: setup ## Run the very long tests
	@$(BIN)/pytest -m "soak and not e2e"

e2e: setup ## Run the tests on real nodes, as root
	@scripts/system-packages e2e
	@$(BIN)/quarterdeck local binaries --real-nodes --helm >/dev/null
	@$(BIN)/pytest -m e2e tests/e2e

clean: ## Remove the environment and all caches in this clone
	rm -rf $(VENV) $(VENV).new $(VENV).old .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
