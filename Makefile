# Three commands do everything, set-up included: `make play`, `make reproduce` and `make test`.
PYTHON ?= python3
# `make test CONSTRAINTS= EXTRAS=play,test`: the newest versions of all, without PyTorch, Dask and Ray.
CONSTRAINTS ?= constraints.txt
EXTRAS ?= dev
BIN := .venv/bin
INSTALL := PIP_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip install --quiet --disable-pip-version-check
TEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: help play reproduce tutorials docs tour test test-browser test-cluster test-download test-kill test-lowest test-pytorch test-release test-trials bench soak lint format types clean
help:            ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

.venv/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

.venv/.dev: .venv/.core
	$(INSTALL) -e ".[$(EXTRAS)]"
	touch $@

.venv/.play: .venv/.core
	$(INSTALL) -e ".[play]"
	touch $@

.venv/.docs: .venv/.core
	$(INSTALL) -e ".[docs]"
	touch $@

.venv-lowest/.done: pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct -e ".[play,test]"
	touch $@

play: .venv/.play        ## the playground in the browser
	$(BIN)/condensation play

reproduce: .venv/.core   ## the papers' figures and a report in out/
	$(BIN)/condensation reproduce --out out

tutorials: .venv/.dev    ## run the notebooks of docs/tutorials and store what they print and draw
	$(BIN)/python tests/notebooks.py

docs: .venv/.docs        ## the site in site/; a broken link or an unknown name fails
	$(BIN)/mkdocs build --strict --quiet

tour: .venv/.core        ## record the tour anew for the site's first page (a minute or two)
	$(BIN)/python docs/_tour.py

test: .venv/.dev         ## the tests (under five minutes); programs are compiled with few optimisations, in the other targets with all
	JAX_DISABLE_MOST_OPTIMIZATIONS=true $(TEST)

test-browser: .venv/.dev ## the tests of playground and report in a real Chromium (Debian: chromium, chromium-driver)
	$(TEST) -m browser -n 0

test-cluster: .venv/.dev ## the tests with a real Dask scheduler and a real Ray, one after the other
	$(TEST) -m cluster -n 0

test-download: .venv/.dev  ## the tests that fetch real data sets over the network
	$(TEST) -m download

test-kill: .venv/.dev    ## the tests that kill training processes and let them go on
	$(TEST) -m kill

test-lowest: .venv-lowest/.done  ## the tests with the lowest versions that pyproject.toml declares (old libraries may warn)
	$(subst $(BIN),.venv-lowest/bin,$(TEST)) -W ignore::DeprecationWarning

test-pytorch: .venv/.dev ## the tests with PyTorch's own libraries: Lightning, Hugging Face, ONNX, two processes
	$(TEST) -m pytorch

test-release: .venv/.dev ## the built package, installed and tried in a clean environment; needs a package index
	$(TEST) -m release -n 0

test-trials: .venv/.dev  ## the long tests: predictions and claims held against many trained networks
	$(TEST) -m trials

bench: .venv/.dev        ## speed and memory beside PyTorch, table in benchmarks/RESULTS.md
	$(BIN)/python benchmarks/run.py

soak: .venv/.dev         ## thirty minutes of the playground, whose memory must not grow
	$(BIN)/python benchmarks/soak.py

lint: .venv/.dev         ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/.dev       ## ruff, mending what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/.dev        ## pyright
	$(BIN)/pyright

clean:           ## remove what make created
	rm -rf .venv .venv-lowest out site dist
