# The commands of the project. They need Python 3.11 or later and nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo up test check bench train train-ranking train-projection labels lock clean

demo: .venv/complete ## start the system, publish a conversation, run queries, stop
	$(BIN)/python -m streams demo

up: .venv/complete ## broker, vector index and worker in the foreground
	$(BIN)/python -m streams up

# Two cores and many processes: a second thread of linear algebra only spins, and a training takes four times as long.
test: export OMP_NUM_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
test: .venv/complete ## all tests; those on a real broker mostly wait, so they run beside the others, in two halves
	@kills=$$(mktemp); others=$$(mktemp); \
	$(BIN)/python -m pytest tests/live/kills >$$kills 2>&1 & first=$$!; \
	$(BIN)/python -m pytest tests/live --ignore=tests/live/kills >$$others 2>&1 & second=$$!; \
	$(BIN)/python -m pytest --ignore=tests/live --ignore=tests/browser; status=$$?; \
	wait $$first; first_status=$$?; wait $$second; second_status=$$?; \
	cat $$kills $$others; rm -f $$kills $$others; \
	test $$status -eq 0 -a $$first_status -eq 0 -a $$second_status -eq 0

check: .venv/complete ## lint, types, imports, words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m checks.vocabulary

bench: .venv/complete ## cost relative to the embedder alone and to a bare Kafka echo
	$(BIN)/python -m bench

train-ranking: .venv/complete ## fit the ranking weights to our conversations; reproducible to the byte
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.ranking

train: .venv/complete ## fit the classifier of interaction modes; reproducible to the byte
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.interaction

train-projection: .venv/complete ## fit the token projections; reproducible to the byte, and memories are embedded again
	$(BIN)/python -m training.projection
	$(BIN)/python -m training.projection --model multilingual-small

labels: .venv/complete ## measure the sentence labels on sentences labelled by hand
	$(BIN)/python -m training.labels

.venv/complete: requirements.lock client/pyproject.toml
	@echo "creating the environment in .venv (a minute the first time)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-deps --no-build-isolation --editable ./client
	@touch $@

lock: .venv/complete ## resolve the dependencies in pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --custom-compile-command "make lock" --quiet --output-file requirements.lock

clean: ## remove the environment and the data directory
	rm -rf .venv .modestream
