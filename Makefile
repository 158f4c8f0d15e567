# The commands of the project. They need Python 3.11 or later and nothing else.
# Distributions build their Python with profile-guided optimisation, which takes a fifth to a quarter off the worker's
# processor time; one that was compiled with defaults, as by pyenv, lacks it.
SYSTEM_PYTHON := /usr/bin/python3
CAN_BE_USED := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell $(SYSTEM_PYTHON) -c "$(CAN_BE_USED)" 2>/dev/null && echo $(SYSTEM_PYTHON) || echo python3)
BIN := .venv/bin

.PHONY: help demo up test check lint types docs limits compiled required required-and-accepted acceptance bench profile \
	screenshots train train-ranking train-projection labels lock clean \
	dist test-wheels test-frameworks test-kills test-live test-stream test-unit test-contract test-browser test-fast test-fast-core test-fast-rest \
	test-fixed-properties test-random-properties test-properties

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1 \2/p' $(firstword $(MAKEFILE_LIST)) | awk '{ printf "make %-18s", $$1; $$1 = ""; print }'

demo: .venv/complete ## start the system, publish a conversation, run queries, stop
	$(BIN)/python -m streams demo

up: .venv/complete ## broker, vector index and worker in the foreground
	$(BIN)/python -m streams up $(if $(DATA_DIR),--data-dir $(DATA_DIR))

# Tests on a real broker and in a browser mostly wait and have time limits, so they run first. The others compute and
# take the time that is left.
REQUIRED_PARTS := test-wheels test-kills test-live test-browser test-stream test-unit test-fixed-properties test-contract
REQUIRED := $(REQUIRED_PARTS) types limits docs
TEST_PARTS := $(REQUIRED_PARTS) test-random-properties
# The first part that needs a model exports it for all: an export takes 6 to 10 s of a core.
SHARE_MODELS = TEST_MODEL_DIR=$$(mktemp -d) && export TEST_MODEL_DIR && trap 'rm -rf "$$TEST_MODEL_DIR"' EXIT &&
SIDE_BY_SIDE := --jobs=4 --keep-going $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Parts side by side; the last lines name the tests that failed once.
define run_parts
@$(SHARE_MODELS) { $(MAKE) --no-print-directory $(SIDE_BY_SIDE) $(1); status=$$?; \
	passed=$$(cat $(TEST_PARTS:%=.pytest_cache/%/repeated) 2>/dev/null | sed -n 's/^PASSED /  /p'); \
	echo "failed once, passed when repeated: $$(printf '%s' "$$passed" | grep -c .)"; \
	[ -z "$$passed" ] || echo "$$passed"; exit $$status; }
endef

test: .venv/complete ## all tests; CHROMIUM= names the browser where none is on the path
	$(call run_parts,$(TEST_PARTS))

# Left out: what starts processes or loads models, and what waits for them.
SLOW_UNIT_TESTS := adapters/export adapters/embedding adapters/language adapters/vectors adapters/test_text_processes.py \
	client/test_packaging.py gateway/test_mcp_stdio.py streams/test_command_line.py flow/test_death_counts.py bench training
FAST_CORE := rules agents schemas tables wire gateway

test-fast: .venv/complete ## unit tests without brokers, browsers, models and processes, in two minutes
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-fast-core test-fast-rest

test-fast-core: .venv/complete
	@$(BIN)/python -m pytest $(PYTEST_OPTIONS) $(FAST_CORE:%=tests/unit/%)

test-fast-rest: .venv/complete
	@$(BIN)/python -m pytest $(PYTEST_OPTIONS) tests/unit $(FAST_CORE:%=--ignore=tests/unit/%) \
		$(SLOW_UNIT_TESTS:%=--ignore=tests/unit/%)

# Two cores and many processes: a second thread of linear algebra only spins, and a training takes four times as long.
$(TEST_PARTS) test-properties test-fast: export OMP_NUM_THREADS := 1
$(TEST_PARTS) test-properties test-fast: export OPENBLAS_NUM_THREADS := 1

# A part that failed says why, and what failed runs once more, alone in its part: the parts share two cores, and a time
# limit that is missed there says nothing about the project. A failure that comes again fails the run.
PYTEST_OPTIONS = -m 'not hypothesis' -o cache_dir=.pytest_cache/$@
REPEATED = .pytest_cache/$@/repeated
pytest = rm -f $(REPEATED); $(1) $(PYTEST_OPTIONS) -rfEs || { [ $$? -eq 1 ] && echo "$@: once more, what failed" && \
	{ $(1) $(PYTEST_OPTIONS) -rfEp --last-failed --last-failed-no-failures none >$(REPEATED); status=$$?; \
	cat $(REPEATED); exit $$status; }; }

test-kills: .venv/complete
	@$(call pytest,$(BIN)/python -m pytest tests/live/kills)

test-live: .venv/complete
	@$(call pytest,$(BIN)/python -m pytest tests/live --ignore=tests/live/kills)

test-browser: .venv/complete
	@$(call pytest,$(BIN)/python -m pytest tests/browser)

test-wheels: .venv/complete
	@$(call pytest,$(BIN)/python -m pytest tests/wheels)

test-frameworks: .venv/complete ## the adapters with their frameworks, and the programs of the documentation
	TEST_FRAMEWORKS=1 $(BIN)/python -m pytest tests/wheels/test_frameworks.py

# The stream tests take longest: a little ahead of the others, all end at the same time.
test-stream test-unit test-contract: test-%: .venv/complete
	@$(call pytest,nice -n $(if $(filter stream,$*),9,10) $(BIN)/python -m pytest tests/$*)

# Property tests are never repeated: what they find is a defect. A command with a random seed is shown, to be run again.
PROPERTIES = nice -n 10 $(BIN)/python -m pytest -o cache_dir=.pytest_cache/$@ -m hypothesis \
	$$(grep -rl hypothesis tests --include='test_*.py')
SEED ?= $(strip $(shell od -An -N4 -tu4 /dev/urandom))

test-fixed-properties: .venv/complete
	@$(PROPERTIES) --hypothesis-profile=fixed

test-random-properties: .venv/complete ## property tests with the examples of a random seed, or of SEED= as `make test` printed it
	$(PROPERTIES) --hypothesis-profile=random --hypothesis-seed=$(SEED)

test-properties: .venv/complete ## property tests with ten times the examples, of a random seed or of SEED=
	$(PROPERTIES) --timeout=0 --hypothesis-profile=thorough --hypothesis-seed=$(SEED)

check: lint types limits docs ## lint, words, types, imports, the limits of trips and grain, links of the documents

lint: .venv/complete
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m checks.vocabulary

types: .venv/complete
	nice -n 10 $(BIN)/mypy
	nice -n 10 $(BIN)/lint-imports --no-cache

docs: .venv/complete ## build the documentation as a site, in site/; a dead link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

limits: .venv/complete
	$(BIN)/python -m checks.grain
	nice -n 10 $(BIN)/python -m checks.trips

# Imported for the first time all at once, each part would compile the same thousands of files.
compiled: .venv/complete
	@$(BIN)/python -c "import streams.worker, streams.up.supervisor, gateway.server, streams.adapters.embedding.process.child"

required: lint compiled ## what every change needs but the acceptance: lint, then tests, types, limits and documents side by side
	$(call run_parts,$(REQUIRED))

required-and-accepted: lint compiled ## the same with the acceptance client, where it is
	$(call run_parts,$(REQUIRED) acceptance)

# After what has time limits as well, beside what only computes.
acceptance: | test-wheels test-kills test-live test-browser
	@bash .ci/acceptance

screenshots: .venv/complete ## pictures of every page from the demo's data, into docs/images
	$(BIN)/python -m tests.browser.screenshots

bench: .venv/complete ## cost relative to the embedder alone and to a bare Kafka echo
	$(BIN)/python -m bench

profile: .venv/complete ## processor time of a turn and a question by process, thread and stage
	$(BIN)/python -m bench.profile

train-ranking: .venv/complete ## fit the ranking weights to our conversations; reproducible to the byte
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.ranking --guard ../shared/data/beam ../shared/data/locomo

train: .venv/complete ## fit the classifier of interaction modes; reproducible to the byte
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.interaction

train-projection: .venv/complete ## fit the token projections; reproducible to the byte, and memories are embedded again
	$(BIN)/python -m training.projection
	$(BIN)/python -m training.projection --model multilingual-small

labels: .venv/complete ## measure the sentence labels on sentences labelled by hand
	$(BIN)/python -m training.labels

.venv/complete: requirements.lock client/pyproject.toml
	@echo "creating the environment in .venv with $(PYTHON) (a minute the first time)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-deps --no-build-isolation --editable ./client
	@touch $@

FRAMEWORK_LOCK = printf '%s\n' pytest pytest-asyncio $(1) | $(BIN)/uv pip compile client/pyproject.toml - --no-config --extra http $(2) \
	--universal --python-version 3.11 --custom-compile-command "make lock" --no-emit-index-url --no-annotate --quiet

lock: .venv/complete ## resolve the dependencies in pyproject.toml: all, and those of the image
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra broker --group bundled --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --custom-compile-command "make lock" --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --group bundled --constraint requirements.lock --generate-hashes --no-emit-index-url \
		--universal --python-version 3.11 --custom-compile-command "make lock" --no-annotate --quiet \
		--output-file requirements.runtime.lock
	@# The frameworks of the client's adapters need other versions than the server, and CrewAI others than they.
	$(call FRAMEWORK_LOCK,'pydantic-ai-slim[openai]',--extra claude-agent --extra llama-index \
		--extra openai-agents --extra pydantic-ai --extra strands) --output-file requirements.frameworks.lock
	$(call FRAMEWORK_LOCK,,--extra crewai) --output-file requirements.crewai.lock
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['broker'], sep='\n')" \
		| $(BIN)/uv pip compile - --constraint requirements.lock --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --custom-compile-command "make lock" --no-annotate --quiet --output-file requirements.broker.lock

DIST := $(CURDIR)/dist

dist: .venv/complete ## build the wheels of the server and the client, and the server's sdist, in dist/
	$(BIN)/python -m hatchling build --directory $(DIST)
	cd client && ../$(BIN)/python -m hatchling build --target wheel --directory $(DIST)

clean: ## remove the environment and the data directory
	rm -rf .venv .modestream dist site
