# One front door: CI and people call the same targets.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test check fix test-slow test-wheel test-peers audit bundle validate bench docs serve clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(STAMP) ## set up, then size Llama-3-70B on 4x8 H100
	$(BIN)/trainfit recommend-setup --model llama-3-70b --hardware "4x8 H100-80GB" --method full --sequence-length 8k

test: $(STAMP) ## set up, then everything that must pass
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not slow" --cov --cov-report=term:skip-covered

check: test ## the same as test

fix: $(STAMP) ## format, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-slow: $(STAMP) ## whole spaces, large samples
	$(BIN)/python -m pytest -m slow

test-wheel: $(STAMP) ## the wheel in an empty environment, started by each documented snippet
	$(BIN)/python -m tests.peers.wheel

test-peers: $(STAMP) ## suites, clients and loads of others against a real server; installs what it needs
	$(BIN)/python -m tests.peers

audit: ## known vulnerabilities of what the product installs, and a list of it (an SBOM) in dist/
	$(PYTHON) -m venv --clear build/runtime
	build/runtime/bin/python -m pip install --quiet '.[oauth]'
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet 'pip-audit>=2.9' 'cyclonedx-bom>=7'
	mkdir -p dist
	build/audit/bin/cyclonedx-py environment --pyproject pyproject.toml --output-file dist/trainfit.cdx.json build/runtime
	build/audit/bin/pip-audit --path "$$(build/runtime/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

bundle: $(STAMP) ## the MCP bundle in dist/, which desktop hosts install with one click
	$(BIN)/python -m tests.peers.bundle

validate: $(STAMP) ## hold the estimator against the facts it ships, rewrite docs/accuracy.md
	$(BIN)/python -m tests.validation all

bench: $(STAMP) ## ratios on this machine, in one run
	$(BIN)/python -m benchmarks

docs: $(STAMP) ## regenerate what is generated (README answers, schemas, pages)
	$(BIN)/python -m tests.generate

serve: $(STAMP) ## MCP over HTTP and /v1 on loopback
	$(BIN)/python server.py --http

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .coverage .hypothesis dist
