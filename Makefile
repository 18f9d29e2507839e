# Two commands on a fresh Debian 12 machine with a Rust toolchain:
#   make run    sets up what is missing, builds, runs a saved model and shows what happened to it
#   make test   sets up what is missing and runs the whole test suite
# The others are steps of those two.

CARGO ?= cargo
SHARED ?= ../shared

.PHONY: capi test-python test-ecosystem wheel run test setup build lint unit conformance bench tables gpu sanitize bless help

help:            ## Lists the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup:           ## Installs LLVM 22 from Debian's packages if it is missing
	@scripts/setup.sh

build: setup     ## Builds target/release/flambeau, with LLVM inside
	$(CARGO) build --release -p flambeau --no-default-features --features llvm-static,cuda,mimalloc

run: build       ## Runs examples/lstm_cell.pt and shows graph, fusion, answer and time
	@target/release/flambeau demo examples/lstm_cell.pt

lint: setup      ## Formatting and lints, warnings denied
	$(CARGO) fmt --check --all
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings
	$(CARGO) clippy --quiet --no-default-features -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --offline check bans licenses sources; \
	else echo "cargo deny: skipped, it is not installed (tests/tidy/dependencies.rs reads deny.toml in its place)"; fi

# Each command takes the whole workspace, as the features of a library that several crates use depend on which of them are chosen:
# all of Flambeau would be built once for each choice. `cargo tree -e features` shows which differ.
unit: setup      ## Unit, FileCheck, engine and tidy tests
	FLAMBEAU_PTXAS=$$(scripts/ptxas.sh) $(CARGO) test --quiet --profile suite --workspace --tests
	$(CARGO) test --quiet --profile suite --workspace --doc

conformance: setup  ## Recorded answers of real PyTorch, where the shared data are at hand
	$(CARGO) build --quiet --profile suite --workspace --bin flambeau
	@scripts/conformance.sh $(SHARED)

test: lint unit conformance  ## Everything; what CI runs

test-python: setup  ## Tests of the Python package, in a fresh virtual environment with NumPy
	@CARGO="$(CARGO)" scripts/test-python.sh test

test-ecosystem: setup  ## Tests of the Python package that need PyTorch, which is installed for them
	@CARGO="$(CARGO)" scripts/test-python.sh ecosystem

wheel: setup     ## Builds the wheel, with LLVM inside, into target/wheels
	@CARGO="$(CARGO)" scripts/test-python.sh wheel

capi: setup      ## Builds the libraries for C and C++, with LLVM inside, into target/capi
	$(CARGO) rustc --profile dist -p flambeau-capi --no-default-features --features static --crate-type cdylib,staticlib
	@mkdir -p target/capi/include target/capi/lib
	cp capi/include/flambeau.h capi/include/flambeau.hpp target/capi/include
	strip -s -o target/capi/lib/libflambeau.so target/dist/libflambeau.so
	strip -g -o target/capi/lib/libflambeau.a target/dist/libflambeau.a
	@ls -l target/capi/include target/capi/lib

bench: build     ## Criterion benchmarks, each with its peer
	$(CARGO) bench

tables: build    ## README's performance tables (hours, on a quiet machine; PEERS is a Python that has the peers)
	@python3 scripts/tables.py target/release/flambeau --peers $(or $(PEERS),python3) --shared $(SHARED)

gpu: build       ## Recorded answers and whole models on this machine's GPU, beside PyTorch's CUDA (needs PyTorch for the models)
	@python3 scripts/gpu.py target/release/flambeau tests/golden/programs.jsonl tests/golden/modules.jsonl $(wildcard $(SHARED)/conformance/ops.jsonl)

sanitize:        ## Unit tests under AddressSanitizer, and under Miri where it is installed
	@scripts/sanitize.sh

bless:           ## Rewrites generated docs and expected outputs
	BLESS=1 $(CARGO) test --quiet --test root
