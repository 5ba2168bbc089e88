# Everything a person or CI runs. `make` alone explains itself.
# Needed on the machine: make, Node.js, and any Python from 3.9 on (it bootstraps uv, and uv the rest).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

ENV ?= dev
SEEDS ?= 200
SCHEDULES ?= 0
WORKERS ?= auto
# End-to-end tests mostly wait, so more of them run at once than there are processors.
E2E_WORKERS ?= 4
E2E_PORT ?= 4577
PYTHON ?= python3
UV ?= $(shell command -v uv || echo .tools/bin/uv)

PY := .venv/bin/python
# CDK warns at length about Node.js releases that work but are no longer kept up.
QUIET_NODE := NODE_NO_WARNINGS=1 JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION=1 \
	JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20
CDK := $(QUIET_NODE) node_modules/.bin/cdk
ENVIRONMENTS := local dev staging prod
STAMPS := build/stamps
LIBRARY := $(shell find layers/core/python -name '*.py' -o -name '*.typed' 2>/dev/null)
LOCK := $(UV) pip compile --universal --generate-hashes --no-emit-index-url --no-annotate --no-header

# Tests never meet a real account, nor the machine's own zone rules.
OFFLINE := env PYTHONTZPATH= AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test \
	AWS_DEFAULT_REGION=us-east-1 AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null \
	AWS_EC2_METADATA_DISABLED=true $(QUIET_NODE)
PYTEST := $(OFFLINE) $(PY) -m pytest -n $(WORKERS) --dist loadgroup

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9_-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## -- environment ---------------------------------------------------------------------------

.PHONY: setup
setup: .venv/.setup ## Make .venv and node_modules from the lock files (only when they are stale)

.venv/.setup: requirements/dev.txt pyproject.toml package-lock.json | $(UV)
	@$(PY) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null \
		|| $(UV) venv --quiet --clear --python "$$(scripts/find_python.sh $(UV))" .venv
	VIRTUAL_ENV=.venv $(UV) pip sync --quiet --require-hashes requirements/dev.txt
	VIRTUAL_ENV=.venv $(UV) pip install --quiet --no-deps --editable .
	npm ci --silent
	@touch $@

.tools/bin/uv:
	@echo "No uv here: putting one into .tools/"
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt

.PHONY: lock
lock: | $(UV) ## Resolve the Python and npm lock files anew
	$(LOCK) --python-version 3.13 --group dev pyproject.toml -o requirements/dev.txt
	$(LOCK) --python-version 3.13 -c requirements/dev.txt pyproject.toml -o requirements/layer.txt
	npm install --package-lock-only --silent

## -- gates ---------------------------------------------------------------------------------

.PHONY: format
format: setup ## Format, and fix what the linter can fix
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

.PHONY: lint
lint: setup ## Check format and lint rules
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

.PHONY: types
types: setup ## mypy, strict
	$(PY) -m mypy

.PHONY: imports
imports: setup ## Who may import whom
	.venv/bin/lint-imports

.PHONY: test
test: setup ## Every test that needs no emulator
	$(PYTEST) --ignore=tests/e2e

.PHONY: cases
cases: setup ## Run a file of cron cases through the time engine: make cases FILE=path
	@$(OFFLINE) $(PY) -m scripts.cases "$${FILE:-}"

.PHONY: sim
sim: setup ## Hostile interleavings of the real use cases: make sim SEEDS=1000
	PUNTUAL_SEEDS=$(SEEDS) $(PYTEST) tests/simulation

.PHONY: e2e
e2e: setup $(STAMPS)/layer-host ## End-to-end tests on a local system of their own
	@export PUNTUAL_PORT=$(E2E_PORT) PUNTUAL_STATE=.local/e2e; \
	trap '$(PY) -m scripts.local down' EXIT; \
	$(PY) -m scripts.local up; \
	$(OFFLINE) $(PY) -m pytest -n $(E2E_WORKERS) -m "not disruptive and not kills_api" tests/e2e; \
	$(OFFLINE) $(PY) -m pytest -n 2 -m disruptive tests/e2e; \
	$(OFFLINE) $(PY) -m pytest -m kills_api tests/e2e

.PHONY: check
check: lint types imports test synth templates e2e ## Everything CI runs

.PHONY: templates
templates: synth ## cfn-lint over the synthesised templates
	.venv/bin/cfn-lint --ignore-checks W3005 -- $(foreach each,$(ENVIRONMENTS),cdk.out/$(each)/*.template.json)

.PHONY: nightly
nightly: ## The long run: check, every change of every zone, long searches, many seeds, end to end
	$(MAKE) check
	HYPOTHESIS_PROFILE=nightly $(MAKE) test
	$(MAKE) sim SEEDS=5000
	$(MAKE) demo SCHEDULES=1000

## -- build and deploy ----------------------------------------------------------------------

.PHONY: layer
layer: setup $(STAMPS)/layer-arm64 $(STAMPS)/layer-host ## Build the Lambda layer, for AWS and for this machine, without Docker

$(STAMPS)/layer-%: requirements/layer.txt $(LIBRARY) scripts/build_layer.py | .venv/.setup
	$(PY) -m scripts.build_layer $* --uv $(UV)
	@mkdir -p $(@D) && touch $@

.PHONY: synth
synth: layer ## Synthesise every environment into cdk.out/, cdk-nag included; calls no cloud
	@rm -rf $(addprefix cdk.out/,$(ENVIRONMENTS))
	$(OFFLINE) $(PY) -m infra.app $(ENVIRONMENTS)

.PHONY: deploy
deploy: layer ## Deploy to the AWS account of your credentials: make deploy ENV=dev
	$(CDK) deploy --all -c environment=$(ENV) --output cdk.out/deploy-$(ENV)

.PHONY: replan
replan: setup ## Plan anew what new zone data move: make replan ENV=dev DRY_RUN=true
	@$(if $(filter-out true false,$(DRY_RUN)),$(error DRY_RUN=$(DRY_RUN): true, false or nothing is allowed))
	@$(PY) -m scripts.replan $(ENV) $(if $(filter true,$(DRY_RUN)),--dry-run)

## -- on this machine -----------------------------------------------------------------------

.PHONY: up
up: setup $(STAMPS)/layer-host ## Start the local system: emulator, the real CDK app, its Lambdas
	$(PY) -m scripts.local up

.PHONY: down
down: ## Stop the local system
	@if [ -x $(PY) ]; then $(PY) -m scripts.local down; else echo "Nothing is installed, so nothing runs."; fi

.PHONY: demo
demo: up ## See schedules fire: make demo, or make demo SCHEDULES=1000
	$(PY) -m scripts.demo --schedules $(SCHEDULES)

## -- numbers -------------------------------------------------------------------------------

.PHONY: bench
bench: setup ## Print what an occurrence costs, how long rules and forecasts take, what a storm does to others
	$(OFFLINE) $(PY) -m bench.costs
	$(OFFLINE) $(PY) -m bench.requests
	$(OFFLINE) $(PY) -m bench.rules
	$(OFFLINE) $(PY) -m bench.forecast
	$(OFFLINE) $(PY) -m bench.fairness
