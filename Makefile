# make demo   sets everything up and shows what matmix does, on the embedded digits
# make test   sets everything up and runs every test: Rust, Python, and the browser where one is installed
# make docs   sets everything up and builds the documentation as a site, out/site/index.html

.DEFAULT_GOAL := help
.PHONY: help demo dist docs python check test test-rust test-python test-docs test-browser fuzz soak lint bench bench-cuda bench-kernels bench-quick test-cuda clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## fit, compare and look: the main job on the embedded digits
	cargo run --quiet --release -p matmix-cli -- demo --output demo

docs: python ## the documentation as a site in out/site: pages, gallery, API, rustdoc; every link is followed
	docs/site/build.sh

python: ## the Python package, built and installed into .venv
	sh python/scripts/build.sh

check: ## the fast tier: formatting, unit tests, the parts of the library that build alone; under a minute after a build
	cargo fmt --all --check
	cargo test -p matmix -p matmix-cli --lib --features matmix/ndarray
	cargo check -p matmix --no-default-features

test: lint test-rust test-python test-docs test-browser ## every test

test-rust: ## unit, property, golden, snapshot and documentation tests
	cargo test --features matmix/ndarray

test-python: python ## the Python package, scikit-learn's own checks and the worked example
	MATMIX_BIN=$(CURDIR)/.venv/bin/matmix sh python/scripts/test.sh

test-docs: docs ## the site builds without a warning, every example runs, every link leads somewhere

test-browser: ## the report and the site in a real browser, where one is installed
	tests/browser/run.sh

SECONDS_EACH ?= 300
fuzz: ## broken files for every reader, for SECONDS_EACH seconds each (300), new ones each time
	MATMIX_FUZZ_SECONDS=$(SECONDS_EACH) MATMIX_FUZZ_SEED=$${MATMIX_FUZZ_SEED:-$$(date +%s)} \
		cargo test -p matmix --test fuzz -- --nocapture --test-threads 1

soak: ## a fit killed 200 times, 10,000 problems against dense matrices, and broken files for SECONDS_EACH seconds per reader
	MATMIX_KILLS=200 cargo test -p matmix-cli --test cli killed
	MATMIX_ORACLES=10000 cargo test -p matmix --test suite battery
	$(MAKE) fuzz

lint: ## formatting and lints, without a single warning; an example on every public type
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features matmix/ndarray -- -D warnings
	cargo clippy -p matmix --no-default-features --all-targets -- -D warnings
	for feature in formats images report demo; do cargo clippy -p matmix --no-default-features --features $$feature -- -D warnings || exit 1; done
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps -p matmix --features ndarray,cuda
	python3 scripts/examples.py "$$(sh scripts/target.sh)/doc/matmix"
	python3 scripts/features.py
	python3 scripts/folders.py

dist: ## what a release needs, into dist/: wheel, source package, static program, crates (about 15 minutes)
	scripts/dist.sh

bench: bench-kernels ## us and the peers: writes docs/benchmarks.md, its numbers and its picture, and prints passes to a log-likelihood (about 30 minutes)
	benchmarks/run.sh
	.venv-bench/bin/python -W ignore -m benchmarks.passes --rows digits rich-10-4 --peer NumPy

bench-quick: ## the same on small sizes, into out/bench-quick, to see that everything runs
	benchmarks/run.sh --quick

bench-kernels: ## one pass after the other, by criterion
	cargo bench -p matmix

bench-cuda: ## the GPU against the processor, and PyTorch beside it (needs a GPU and a Python with torch)
	cargo bench -p matmix --features cuda --bench cuda
	python3 benchmarks/cuda_torch.py

test-cuda: ## the tests of the GPU; without one they fail instead of being left out
	MATMIX_NEED_GPU=1 cargo test --release -p matmix --features cuda --test cuda -- --test-threads=1

clean: ## remove what was built
	cargo clean
	rm -rf demo dist out .venv .venv-bench .venv-docs
