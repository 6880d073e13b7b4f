# `make` alone shows what there is. Everything runs in .venv, which is made when it is missing or out of date.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHARE ?= 1
SEED ?=
# Tests sync thousands of small stores. In memory that takes nothing; where there is none to spare, on the disk.
TEMP := $(shell [ -w /dev/shm ] && [ "$$(df -Pm /dev/shm | awk 'NR == 2 { print $$4 }')" -gt 4000 ] && echo /dev/shm \
  || echo "$${TMPDIR:-/tmp}")

.DEFAULT_GOAL := help
.PHONY: help setup demo test wheel clients check soak bench bench-peers docs clean

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

setup: $(READY) ## Make .venv with everything that tests need

demo: $(READY) ## Show learnt at work in a throw-away project
	@$(BIN)/learnt demo

test: $(READY) ## Run the tests
	@$(BIN)/python -m compileall -q src || true
	@PYTHONDONTWRITEBYTECODE= TMPDIR=$(TEMP) $(BIN)/python -m pytest -n 3 --dist loadgroup -m "not soak and not clients"

wheel: $(READY) ## Run the tests of the doors on the built wheel, with the sources gone
	@.ci/wheel

clients: $(READY) ## Run the tests with the real agent clients, which npm installs once (about 1.7 GB)
	@$(BIN)/python -m pytest -m clients

check: $(READY) ## Look for mistakes without running: ruff and mypy
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/mypy --platform win32 src

soak: $(READY) ## Run the counted suites in full (SHARE=0.1 for a tenth, SEED=n to repeat a run)
	@$(BIN)/python -m pytest -m soak -s -rA --share $(SHARE) $(if $(SEED),--seed $(SEED))

bench: $(READY) ## Measure, and print the results as Markdown
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m bench

bench-peers: $(READY) ## Compare with other memories, which pip installs once into the user's cache (about 6 GB)
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m bench peers

docs: $(READY) ## Write the generated pages of docs/ and files of plugin/
	@$(BIN)/python -m tools.generate_docs
	@$(BIN)/python -m tools.generate_plugins

clean: ## Remove .venv and everything that tools leave behind
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The newest Python from 3.11 on that really starts (a version manager may list ones that do not).
$(READY): pyproject.toml constraints.txt
	@for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	  $$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; \
	done; \
	if [ -z "$$python" ]; then echo "learnt needs Python 3.11 or newer (with venv) on PATH" >&2; exit 1; fi; \
	echo "Setting up $(VENV) with $$($$python --version) ..."; \
	$$python -m venv --clear $(VENV)
	@PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[postgres,dev]' 2>.pip.log \
	  || { cat .pip.log >&2; rm -f .pip.log; exit 1; }
	@rm -f .pip.log
	@$(BIN)/python -m compileall -q src || true
	@touch $@
