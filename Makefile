# Every target sets up what it needs in .venv and target/; nothing outside the checkout is touched.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
DATA ?= fixtures/kernel
CAPTURES ?= fixtures

RUST_SOURCES := $(shell find toolkit channels replay hindflight -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install

.PHONY: demo test test-rust test-python lint docs bench bench-ingest bench-channels bench-engine check-fits validate golden wheel clean setup
.DEFAULT_GOAL := setup

setup: $(VENV)/.built ## build everything into .venv

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "hindflight needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11"; exit 2; }
	@command -v cargo >/dev/null || { echo "hindflight needs a Rust toolchain (cargo), see https://rustup.rs"; exit 2; }
	@echo "creating the Python environment $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "python venv failed; on Debian: apt-get install python3-venv"; exit 2; }

$(VENV)/.deps: requirements.lock | $(VENV)/bin/python
	@echo "installing the packages of requirements.lock"
	@$(PIP) --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.built: $(VENV)/.deps pyproject.toml $(RUST_SOURCES)
	@echo "compiling the native module and installing hindflight into $(VENV)"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(VENV)/.built ## the main job on the capture that ships with the package
	@$(BIN)/hindflight demo --out $(OUT)

test: test-rust test-python ## everything, in under 15 minutes on 2 cores

test-rust:
	cargo test --locked --quiet

test-python: $(VENV)/.built
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.built ## formatters, linters and type checkers; any warning fails
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml hindflight._native
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

$(VENV)/.docs: requirements-docs.lock $(VENV)/.built
	@echo "installing the packages of requirements-docs.lock"
	@$(PIP) --require-hashes -r requirements-docs.lock
	@touch $@

docs: $(VENV)/.docs ## the documentation site, in build/site: runs the tutorial and the notebooks; any warning fails
	@rm -rf build/site build/site-extra build/site-cache
	$(BIN)/python -m docs.scripts.make_gallery build/site-extra
	$(BIN)/python -m hindflight reproduce all -o build/site-extra/papers
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs/site -d build/site-cache . build/site
	@echo "the site is build/site/docs/index.html"

bench: $(VENV)/.built ## speed and memory compared with other tools; needs an idle machine
	$(BIN)/python -m benches

bench-ingest: $(VENV)/.built ## reading captures compared with tcptrace and tshark
	$(BIN)/python -m benches ingest

bench-engine: $(VENV)/.built ## the engine compared with ns-2 and with its hops without TCP
	$(BIN)/python -m benches engine

bench-channels: $(VENV)/.built ## speed of the channel kernels and fits on one core, and memory of streamed output
	cargo run --release --locked --quiet -p hindflight-kernels --example bench
	$(BIN)/python -m benches channels

check-fits: ## whether the 95 % intervals of fits cover the truth in 93 to 97 % of 1000 traces; a minute
	cargo test --release --locked --quiet -p hindflight-kernels --test fit_coverage -- --ignored --nocapture

validate: $(VENV)/.built ## the engine compared with closed forms, the recorded Linux runs in DATA and, as root, a relay between two stacks; the profiles with their peers
	$(BIN)/python -m validation --data $(DATA)
	$(BIN)/python -m validation parity $(CAPTURES)
	$(BIN)/python -m validation relay

golden: $(VENV)/.built ## write the generated pages of docs; read the diff before you commit it
	$(BIN)/python -m docs.scripts

wheel: $(VENV)/.built ## the wheel, in dist
	@rm -rf build dist
	@$(BIN)/python -m pip --quiet --disable-pip-version-check wheel --no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove everything that the targets above made
	rm -rf $(VENV) target $(OUT) build dist hindflight.egg-info hindflight/_native*.so
