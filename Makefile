# Everything runs in a virtual environment of its own, made when it is missing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VECTORS := $(wildcard ../shared/data/cel-conformance.json)

.PHONY: demo test lint types unit validate soak bench bench-proxy clean

demo: $(VENV)/.installed
	@echo "$$ $(BIN)/octo invoke --config samples/quickstart.yaml --flow enrich --data '{\"company\": \"Acme\"}'"
	@$(BIN)/octo invoke --config samples/quickstart.yaml --flow enrich --data '{"company": "Acme"}'

test: lint types unit validate

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev
	tests/install.sh
	$(if $(VECTORS),OCTO_CEL_VECTORS=$(abspath $(VECTORS))) $(BIN)/pytest -n auto --dist worksteal

validate: $(VENV)/.installed
	@for sample in $(filter-out %_test.yaml,$(wildcard samples/*.yaml samples/agents/*.yaml)); do ANTHROPIC_API_KEY=sk-ant-none $(BIN)/octo validate --config $$sample || exit 2; done
	$(BIN)/octo test samples

# PART limits it to some tests, COUNT is how many examples each property there tries: make soak PART=tests/engine/llm COUNT=20000
soak: $(VENV)/.installed-dev
	tests/install.sh
	$(if $(VECTORS),OCTO_CEL_VECTORS=$(abspath $(VECTORS))) $(if $(COUNT),OCTO_SOAK_COUNT=$(COUNT)) OCTO_SOAK=1 \
		$(BIN)/pytest -n auto --dist worksteal $(PART)

bench: $(VENV)/.installed-dev
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# PROXY_BENCH="--core 1 --litellm DIR" says how, see benchmarks/proxy.py.
bench-proxy: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/proxy.py $(PROXY_BENCH)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
