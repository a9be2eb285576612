# Every target sets up what it needs in .venv and target/; nothing outside the checkout is touched.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
OUT ?= out
DATA ?= fixtures/kernel

RUST_SOURCES := $(shell find toolkit channels replay -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock clippy.toml

.PHONY: demo test test-rust test-python lint bench bench-channels bench-engine check-fits validate golden clean setup
.DEFAULT_GOAL := setup

setup: $(VENV)/.built ## build everything into .venv

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "hindflight needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11"; exit 2; }
	@command -v cargo >/dev/null || { echo "hindflight needs a Rust toolchain (cargo), see https://rustup.rs"; exit 2; }
ifdef UV
	$(UV) venv --quiet --python $(PYTHON) $(VENV)
else
	$(PYTHON) -m venv $(VENV) \
	  || { echo "python venv failed; on Debian: apt-get install python3-venv"; exit 2; }
endif

$(VENV)/.deps: requirements.lock | $(VENV)/bin/python
ifdef UV
	VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet --require-hashes -r requirements.lock
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
endif
	@touch $@

$(VENV)/.built: $(VENV)/.deps pyproject.toml $(RUST_SOURCES)
ifdef UV
	PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --uv --quiet
else
	PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
endif
	@touch $@

demo: $(VENV)/.built ## the main job on the capture that ships with the package
	$(BIN)/hindflight demo --out $(OUT)

test: test-rust test-python ## everything, in under 15 minutes on 2 cores

test-rust:
	cargo test --locked --quiet

test-python: $(VENV)/.built
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.built ## formatters, linters and type checkers; any warning fails
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest hindflight._native
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

bench: $(VENV)/.built ## speed and memory beside peers; needs an idle machine
	$(BIN)/python -m benches

bench-engine: $(VENV)/.built ## the engine beside ns-2 and beside the cost of its hops alone
	$(BIN)/python -m benches engine

bench-channels: $(VENV)/.built ## speed of the channel kernels and fits on one core, and memory of what is written as it comes
	cargo run --release --locked --quiet -p hindflight-kernels --example bench
	$(BIN)/python -m benches channels

check-fits: ## whether the 95 % intervals of fits hold the truth in 93 to 97 % of 1000 traces, a minute
	cargo test --release --locked --quiet -p hindflight-kernels --test fit_coverage -- --ignored --nocapture

validate: $(VENV)/.built ## the engine beside closed forms and the recorded Linux runs in DATA
	$(BIN)/python -m validation --data $(DATA)

golden: $(VENV)/.built ## write the generated fixtures and goldens anew; read the diff before you commit it
	$(BIN)/python -m fixtures

clean: ## everything that the targets above made
	rm -rf $(VENV) target $(OUT) dist toolkit/_native*.so
