PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

# One thread per process: on busy cores, threads lose more by waiting for each other than they gain.
TEST_ENV := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

LOWEST := .venv-lowest/bin
NEWEST := .venv-newest/bin

# pip installs torch, since its configuration may name another index, such as one of CPU builds. uv installs the rest in
# seconds. It does not read pip's configuration, so pip takes over if uv finds no packages.
PIP := pip install --quiet --disable-pip-version-check
TORCH := $(shell grep "^torch==" constraints.txt)

# Peers that benchmarks alone need lie beside the installed packages, so that no test meets them.
PEERS := $(VENV)/peers
BENCH_ENV := $(TEST_ENV) PYTHONPATH=$(CURDIR)/$(PEERS)

# Without bytecode on disk, each process that a test or a run starts would compile the libraries again.
COMPILE := $(BIN)/python -m compileall -q -j 0 $(VENV)/lib synthbench methods evaluators tests benchmarks website >/dev/null 2>&1 || true

.PHONY: test-lowest test-newest test-machines test-used quickstart test test-experiments test-properties wording golden check check-latex check-page bench ratios docs site constraints clean

## quickstart: set everything up and compare the methods on a small generated world
quickstart: $(INSTALLED)
	$(BIN)/synthbench run experiments/quickstart.yaml --jobs 2

## test: set everything up and run all but the heavy tests
# Failed tests run once more, with the values of their assertions: rewriting all tests for these takes each worker 12 s.
test: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -n 3 --dist loadfile -m "not experiments" --assert=plain || \
	{ $(TEST_ENV) $(BIN)/pytest -q --last-failed --last-failed-no-failures none -m "not experiments"; exit 1; }

## test-lowest: run the tests with the lowest versions that pyproject.toml allows, and torch from constraints.txt
test-lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/$(PIP) $(TORCH) uv
	echo "$(TORCH)" > .venv-lowest/torch.txt
	$(LOWEST)/uv pip compile --quiet --python $(LOWEST)/python --resolution lowest-direct --extra dev \
		--constraint .venv-lowest/torch.txt --output-file .venv-lowest/lowest.txt pyproject.toml
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python --constraint .venv-lowest/lowest.txt -e ".[dev]"
	$(TEST_ENV) $(LOWEST)/pytest -q -n 3 --dist loadfile -m "not experiments"

## test-newest: run the tests with the newest versions, and torch from constraints.txt
test-newest:
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	$(NEWEST)/$(PIP) $(TORCH) uv
	$(NEWEST)/uv pip install --quiet --python $(NEWEST)/python -e ".[dev]"
	$(TEST_ENV) $(NEWEST)/pytest -q -n 3 --dist loadfile -m "not experiments"

## test-experiments: run the heavy end-to-end tests
test-experiments: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -m experiments

## test-properties: search for new counterexamples to stated properties
test-properties: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -n 2 --dist load -m "hypothesis and not experiments" --hypothesis-profile search

## test-machines: run numeric tests on other instruction sets and threads, the rest as another user (an hour)
test-machines: $(INSTALLED)
	$(BIN)/python tests/machines.py

## test-used: run the tests in a clone after the commands of the README, the tutorial and the site
test-used: quickstart site
	test -e my_study || $(BIN)/python website/commands.py docs/tutorial.md
	$(MAKE) test

## wording: pin the current wording of the messages that tests check
wording: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -m "not experiments" --renew $$(grep -rlE "(refused|worded)\(" tests --include="test_*.py")

## golden: pin the outputs of new cases and of components with a new version, and constants
golden: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q tests/contract/test_golden_outputs.py tests/contract/test_pinned_constants.py tests/contract/test_identity_omissions.py --renew

## check: check lint, format, types, import directions
check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

## check-latex: install TeX (Debian) if it is missing, and compile generated tables
check-latex: $(INSTALLED)
	kpsewhich siunitx.sty >/dev/null || (apt-get update -q && apt-get install -qy --no-install-recommends \
		texlive-latex-base texlive-latex-recommended texlive-science)
	$(BIN)/pytest -q tests/reporting -k "latex_compiles or pdflatex"

## check-page: install Chromium (Debian) if it is missing, and test the report's page in it
check-page: $(INSTALLED)
	command -v chromium >/dev/null || (apt-get update -q && apt-get install -qy --no-install-recommends chromium)
	$(BIN)/pytest -q tests/reporting/test_page_in_browser.py

## bench: measure speed against peers and upper bounds (minutes; with SYNTHBENCH_DATA set, on real data)
bench: $(PEERS)
	$(BENCH_ENV) $(BIN)/python benchmarks/bm25.py
	$(BENCH_ENV) $(BIN)/python benchmarks/sts.py
	$(BENCH_ENV) $(BIN)/python benchmarks/silver.py
	$(BENCH_ENV) $(BIN)/python benchmarks/dino.py
	$(BENCH_ENV) $(BIN)/python benchmarks/training.py
	$(BENCH_ENV) $(BIN)/python benchmarks/simcse.py
	$(BENCH_ENV) $(BIN)/python benchmarks/chat.py
	$(BENCH_ENV) $(BIN)/python benchmarks/augsbert_samplers.py
	$(BENCH_ENV) $(BIN)/python benchmarks/data_quality.py
	$(BENCH_ENV) $(BIN)/python benchmarks/intervals.py
	$(BENCH_ENV) $(BIN)/python benchmarks/augsbert_memory.py
	$(BENCH_ENV) $(BIN)/python benchmarks/patterns.py

## ratios: print the ratios of benchmarks/README.md with their peers on this machine, in 15 minutes
ratios: $(PEERS)
	$(BENCH_ENV) $(BIN)/python benchmarks/ratios.py

## gpu: what holds on this machine's GPU: rates, texts, bytes, and DINO's job whole (minutes)
gpu: $(INSTALLED)
	$(BIN)/synthbench doctor --gpu
	$(BIN)/pytest -q tests/gpu
	$(BIN)/python benchmarks/dino.py --device cuda --model-size xl --x1 1050 --samples 2 --rounds 1 --paper
	$(BIN)/python benchmarks/simcse.py --device cuda --steps 50 --rounds 1

## docs: renew the tables of keys, the lists of reports and names, the figures of reports, and the outputs that pages show (minutes)
docs: $(INSTALLED)
	$(BIN)/python website/keys.py docs/experiment_files.md docs/recipes.md docs/keys/*.md
	$(TEST_ENV) $(BIN)/python website/renew.py --heavy

## site: build the docs site into site/
site: $(INSTALLED)
	$(BIN)/python website/stage.py
	$(BIN)/zensical build --strict --clean

## constraints: record the installed versions
constraints: $(INSTALLED)
	$(BIN)/pip freeze --all --exclude-editable | grep -v "^pip==" | sed 's/+cpu//' > constraints.txt

# Without a connection, the benchmarks leave these peers out.
$(PEERS): $(INSTALLED)
	-$(BIN)/$(PIP) --no-deps --upgrade --target $@ bm25s datasketch llvmlite numba

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP) -c constraints.txt torch uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt -e ".[dev]" || \
		$(BIN)/$(PIP) -c constraints.txt -e ".[dev]"
	$(COMPILE)
	touch $@

## clean: remove everything that make and the experiments made, results included, but no file in git
clean:
	-git clean -fdXq -- reports
	rm -rf site build/pages .cache .venv .venv-* .synthbench .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
