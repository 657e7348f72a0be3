# make demo   plan, compare and verify on a fresh machine (no torch)
# make test   install what the tests need and run them, a process per core; optional parts skip visibly
# make test-all   the slow ones too, as CI does with every optional part
# make docs   regenerate docs/cli.md and docs/schemas
# make site   the documentation as a web site, in site/
# make lint   what CI checks beside the tests
# make figures   measure the pages again that a change touched; ARGS=--list shows which, and how long they take;
#              ARGS=--all all pages; ARGS=--behind only names those that a change touched
# make unseen FOLDER=… LISTS=… REBALANCER=…/python   docs/results.md's instances of other planners: about a quarter of an hour
PYTHON ?= python3
VENV ?= .venv
OUT ?= out/demo
PYTEST_ARGS ?= -n auto
BIN := $(VENV)/bin
PLANNER := $(BIN)/milp-planner

.PHONY: demo test test-all lint docs site figures unseen clean

demo: $(VENV)/.installed
	mkdir -p $(OUT)
	@echo "== 8 x MI350X: room for everything =="
	$(PLANNER) plan dlrmv4-yambda5b 8xmi350x --time-limit 30 -o $(OUT)/mi350x.json
	@echo "== 8 x B200 with 90 GiB of each for embeddings: tight =="
	$(PLANNER) plan dlrmv4-yambda5b 8xb200-tight --time-limit 30 -o $(OUT)/b200-tight.json
	@echo "== the DP heuristic and greedy beside milp-planner, same instance =="
	$(PLANNER) compare dlrmv4-yambda5b 8xb200-tight --formulations dp,greedy,auto --objective step_time --time-limit 30 -o $(OUT)/compare.json
	@echo "== verify, with no solver =="
	$(PLANNER) verify $(OUT)/mi350x.json
	$(PLANNER) verify $(OUT)/b200-tight.json
	@echo "Files: $(OUT)/mi350x.json  $(OUT)/b200-tight.json  $(OUT)/compare.json"

test: $(VENV)/.tests-installed
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.tests-installed
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

figures: $(VENV)/.dev-installed
	$(BIN)/python benchmarks/figures.py $(ARGS)

unseen: $(VENV)/.dev-installed
	$(BIN)/python benchmarks/figures.py --only docs/results.md#torchrec docs/results.md#embark --instances $(FOLDER) --lists $(LISTS) --rebalancer $(REBALANCER)

docs: $(VENV)/.dev-installed
	$(BIN)/python -m docs.generate.cli docs/cli.md
	$(BIN)/python -m docs.generate.input_schemas docs/schemas
	$(BIN)/python -m docs.generate.plan_schema docs/schemas/plan.schema.json

site: $(VENV)/.docs-installed
	$(BIN)/python -m mkdocs build --strict

clean:
	rm -rf $(OUT) build site *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "milp-planner needs Python 3.11 or newer; name one with: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

INSTALL = @$(BIN)/python -m pip install -qq -e

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV) (no torch) ...'
	$(INSTALL) .
	@echo 'compiling the loops of the search, once (half a minute) ...'
	cd / && "$(abspath $(BIN))/python" -m formulations.search.loops
	touch $@

$(VENV)/.tests-installed: pyproject.toml | $(VENV)/bin/python
	@echo 'installing into $(VENV), with what the tests need ...'
	$(INSTALL) '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.docs-installed: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) '.[docs]'
	touch $@ $(VENV)/.installed

$(VENV)/.dev-installed: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) '.[dev]'
	touch $@ $(VENV)/.tests-installed $(VENV)/.installed
