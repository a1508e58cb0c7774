PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

# One thread for each process: threads that wait for each other on busy cores cost more than they bring.
TEST_ENV := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

LOWEST := .venv-lowest/bin
NEWEST := .venv-newest/bin

# pip finds torch where its configuration says, such as among builds for the CPU. uv installs the rest in seconds. It
# reads no configuration of pip, so pip takes over where uv finds no packages.
PIP := pip install --quiet --disable-pip-version-check
TORCH := $(shell grep "^torch==" constraints.txt)

# Each process that a test or a run starts would compile the libraries anew where Python may write no bytecode.
COMPILE := $(BIN)/python -m compileall -q -j 0 $(VENV)/lib synthbench methods evaluators >/dev/null 2>&1 || true

.PHONY: test-lowest test-newest test-machines test-used quickstart test test-experiments test-properties wording golden check check-latex check-page bench docs site constraints clean

## quickstart: set everything up and compare the methods on a small generated world
quickstart: $(INSTALLED)
	$(BIN)/synthbench run experiments/quickstart.yaml --jobs 2

## test: set everything up and run all tests but the heavy ones
test: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -n 2 --dist loadfile -m "not experiments"

## test-lowest: the tests with the lowest versions that pyproject.toml allows, but torch of constraints.txt
test-lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/$(PIP) $(TORCH) uv
	echo "$(TORCH)" > .venv-lowest/torch.txt
	$(LOWEST)/uv pip compile --quiet --python $(LOWEST)/python --resolution lowest-direct --extra dev \
		--constraint .venv-lowest/torch.txt --output-file .venv-lowest/lowest.txt pyproject.toml
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python --constraint .venv-lowest/lowest.txt -e ".[dev]"
	$(TEST_ENV) $(LOWEST)/pytest -q -n 2 --dist loadfile -m "not experiments"

## test-newest: the tests with the newest versions there are, but torch of constraints.txt
test-newest:
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	$(NEWEST)/$(PIP) $(TORCH) uv
	$(NEWEST)/uv pip install --quiet --python $(NEWEST)/python -e ".[dev]"
	$(TEST_ENV) $(NEWEST)/pytest -q -n 2 --dist loadfile -m "not experiments"

## test-experiments: the heavy end-to-end tests
test-experiments: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -m experiments

## test-properties: look for examples that break a stated property, others each time
test-properties: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -n 2 --dist load -m "hypothesis and not experiments" --hypothesis-profile search

## test-machines: the numeric tests on other instruction sets and threads, the rest as another user (an hour)
test-machines: $(INSTALLED)
	$(BIN)/python tests/machines.py

## test-used: the tests in a clone in which the README's, the tutorial's and the site's commands were run
test-used: quickstart site
	test -e my_study || $(BIN)/python website/commands.py docs/tutorial.md
	$(MAKE) test

## wording: pin the messages that tests look at as they are worded now
wording: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q -m "not experiments" --renew $$(grep -rlE "(refused|worded)\(" tests --include="test_*.py")

## golden: pin the outputs of new cases, and of components whose version was raised; and constants
golden: $(INSTALLED)
	$(TEST_ENV) $(BIN)/pytest -q tests/contract/test_golden_outputs.py tests/contract/test_pinned_constants.py --renew

## check: lint, format, types, import directions
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

## check-page: install Chromium (Debian) if it is missing, and try the report's page in it
check-page: $(INSTALLED)
	command -v chromium >/dev/null || (apt-get update -q && apt-get install -qy --no-install-recommends chromium)
	$(BIN)/pytest -q tests/reporting/test_page_in_browser.py

## bench: speed against peers and ceilings (minutes; with SYNTHBENCH_DATA set, on real data)
bench: $(INSTALLED)
	$(TEST_ENV) $(BIN)/python benchmarks/bm25.py
	$(TEST_ENV) $(BIN)/python benchmarks/sts.py
	$(TEST_ENV) $(BIN)/python benchmarks/silver.py
	$(TEST_ENV) $(BIN)/python benchmarks/dino.py
	$(TEST_ENV) $(BIN)/python benchmarks/training.py
	$(TEST_ENV) $(BIN)/python benchmarks/simcse.py
	$(TEST_ENV) $(BIN)/python benchmarks/chat.py
	$(TEST_ENV) $(BIN)/python benchmarks/augsbert_samplers.py
	$(TEST_ENV) $(BIN)/python benchmarks/data_quality.py
	$(TEST_ENV) $(BIN)/python benchmarks/intervals.py
	$(TEST_ENV) $(BIN)/python benchmarks/augsbert_memory.py
	$(TEST_ENV) $(BIN)/python benchmarks/patterns.py

## docs: renew the tables of keys, the lists of reports and names, and the outputs that pages show (minutes)
docs: $(INSTALLED)
	$(BIN)/python -m synthbench.cli.reference docs/experiment_files.md docs/keys/*.md
	$(TEST_ENV) $(BIN)/python website/renew.py --heavy

## site: build the docs site into site/
site: $(INSTALLED)
	$(BIN)/python website/stage.py
	$(BIN)/zensical build --strict --clean

## constraints: write down the versions that are installed now
constraints: $(INSTALLED)
	$(BIN)/pip freeze --all --exclude-editable | grep -v "^pip==" | sed 's/+cpu//' > constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP) -c constraints.txt torch uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt -e ".[dev]" || \
		$(BIN)/$(PIP) -c constraints.txt -e ".[dev]"
	$(COMPILE)
	touch $@

## clean: remove everything that make and the experiments made, the results too, but no file that git keeps
clean:
	-git clean -fdXq -- reports
	rm -rf site build/pages .cache .venv .venv-* .synthbench .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
