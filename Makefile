# `make help` lists the commands. PYTHON=… names another interpreter, GOLDILOCKS_VLLM=0 does without vLLM,
# GOLDILOCKS_REAL_MODEL=0 without the real chat model of the slow tests.
PYTHON ?= python3
BIN := .venv/bin
PYTEST_FLAGS ?=

# uv installs no bytecode; what is compiled once must stay, or each process compiles Prefect and torch anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-verl demo test test-all gates check docs format clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with all that the project needs (a minute or a few the first time)
	@$(PYTHON) .ci/setup

setup-verl: setup ## make verl's own environment, for engine = "verl" (a minute or two; GPUs: some GB)
	@$(BIN)/python -m training.engines.verl.environment

demo: setup ## curate and train on the small set that comes along
	@$(BIN)/python -m flows.demo

test: setup ## run the tests, all but those that take over three seconds (four minutes on two cores); PYTEST_FLAGS="-k verify" picks some
	@$(BIN)/python -m tests $(PYTEST_FLAGS)

test-all: setup ## run every test, as CI does (gates run some with more cases)
	@$(BIN)/python -m tests --all $(PYTEST_FLAGS)

gates: setup ## measure the figures that must hold, the quick ones; GATES="--room verify" names others, GATES=--list all
	@$(BIN)/python -m tests.gates $(GATES)

check: setup ## style, types and import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup ## the documentation as a site in build/docs; a warning, such as a broken link, is an error
	$(BIN)/zensical build --strict -f .zensical.toml

format: setup ## put the code in order
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove caches and build products; .venv stays
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
