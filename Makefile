# The few commands of the project. All of them need nothing but Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo up test check bench train train-ranking lock clean

demo: .venv/complete ## start everything, publish a conversation, ask questions, end
	$(BIN)/python -m streams demo

up: .venv/complete ## broker, vector index and worker in the foreground
	$(BIN)/python -m streams up

# Two cores, many processes: a second thread of linear algebra only spins, and a training takes four times as long.
test: export OMP_NUM_THREADS := 1
test: export OPENBLAS_NUM_THREADS := 1
test: .venv/complete ## every test; those on a real broker run beside the others, as most of their time they wait
	@live=$$(mktemp); $(BIN)/python -m pytest tests/live >$$live 2>&1 & waiting=$$!; \
	$(BIN)/python -m pytest --ignore=tests/live; others=$$?; \
	wait $$waiting; live_ones=$$?; cat $$live; rm -f $$live; test $$others -eq 0 -a $$live_ones -eq 0

check: .venv/complete ## lint, types, imports, words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m checks.vocabulary

bench: .venv/complete ## ratios against the embedder alone and a bare Kafka echo
	$(BIN)/python -m bench

train-ranking: .venv/complete ## the weights of the ranking, from our conversations: the same bytes each time
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m training.ranking

train: .venv/complete ## the classifier of interaction modes, from its examples: the same bytes each time
	$(BIN)/python -m training.interaction

.venv/complete: requirements.lock
	@echo "making the environment in .venv (a minute the first time)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --no-deps --require-hashes --requirement requirements.lock
	@touch $@

lock: .venv/complete ## resolve pyproject.toml again
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --custom-compile-command "make lock" --quiet --output-file requirements.lock

clean: ## remove the environment and the data directory
	rm -rf .venv .modestream
