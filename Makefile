# `make up` and `make test` are the two commands of the README; the rest is for development.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two for each core of a small machine: much of a test is waiting.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help up down test lint unit generate lock setup soak clean bench bench-quick

help: ## Show what can be done
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make the environment in .venv (the other targets do this by themselves)
	@$(PYTHON) scripts/set_up.py $(VENV)

up: setup ## Run a local cluster with Quarterdeck in it; Ctrl-C stops it (LOG_LEVEL=Debug tells more)
	@exec $(BIN)/quarterdeck local up --foreground --all --console \
		$(if $(LOG_LEVEL),--cvo-log-level $(LOG_LEVEL))

down: setup ## Stop the local cluster
	@$(BIN)/quarterdeck local down

test: setup lint ## Run the linters and all tests
	@scripts/system-packages test
	@$(BIN)/quarterdeck local binaries
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak"

unit: setup ## Run the tests that need no cluster
	@$(BIN)/pytest tests/unit

lint: setup ## Check style, types and import layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports

generate: setup ## Write deploy from what the operators declare: CRDs, RBAC, Deployments, payload
	@$(BIN)/python -m quarterdeck.delivery deploy

lock: setup ## Resolve the dependencies again and write the hashed requirements
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
	@$(BIN)/pytest -m soak

clean: ## Remove the environment and all caches in this clone
	rm -rf $(VENV) $(VENV).new $(VENV).old .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
