# Everything a newcomer needs: `make run` and `make test`. Only python3 and make are assumed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTS ?= tests
TALKS ?= ../shared/bench/data/locomo
FACTS ?= ../shared/bench/data/factcons
MEANING ?= ../shared/bench/data/meaning
PEERS := .venv-peers
DOCS := .venv-docs
FRAMEWORKS := .venv-frameworks
CREWAI := .venv-crewai
POSTGRES ?= .postgres

.DEFAULT_GOAL := help
# Every command that `make help` lists is no file.
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*## .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: install model ## Install what is needed and serve the page, the HTTP API and MCP on this machine
	@$(BIN)/lukasa serve

run-postgres: install model ## Serve on a real PostgreSQL with its data in .postgres (POSTGRES=folder)
	@$(BIN)/python -m tools.run_postgres "$(POSTGRES)" $(BIN)/lukasa --data "$(POSTGRES)/files" serve

# The tour leaves nothing outside this folder: a model that the user does not have yet goes into $(VENV).
tour: install ## Show how memory works, in the terminal, in a throw-away memory
	@if $(BIN)/lukasa model status --json | grep -q '"available": true'; then $(BIN)/lukasa tour; else \
		export LUKASA_MODELS="$(CURDIR)/$(VENV)/models"; \
		$(BIN)/lukasa model pull >/dev/null || echo "No embedding model for now: the tour finds memory by words alone."; \
		$(BIN)/lukasa tour; fi

recording: install ## Record the terminal session of the README from the real program, into docs/pictures
	@$(BIN)/python -m tools.recording docs/pictures/session.svg

pictures: install browser ## Take the pictures of the page for the README and the docs, into docs/pictures
	@$(BIN)/python -m tools.pictures

mcpb: install ## Write the plugin folders, server.json and the bundle for Claude Desktop from the tables, the bundle into build
	@$(BIN)/python -m tools.bundles build

fresh-user: install browser ## Play a new user's first session from a wheel in an empty home, and print the time of each step
	@$(BIN)/python -m tools.fresh_user

outputs: install ## Run the tutorial, and write the outputs that it shows anew where they differ
	@$(BIN)/python -m tools.pages docs/tutorial.md

docs: $(DOCS)/.ready ## Build the documentation as a site, into site/
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@echo "Built: open site/index.html"

$(DOCS)/.ready: tools/requirements-docs.txt
	@echo "Setting up $(DOCS) for the site (once) ..."
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tools/requirements-docs.txt
	@touch $(DOCS)/.ready

install: $(READY) ## Create the virtual environment

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Lukasa needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up $(VENV) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[corpus,embed,langgraph,openai,anthropic,server,postgres,langgraph-postgres,sync,dev]'
	@touch $(READY)

model: install ## Fetch the default embedding model once; without it everything works by keyword
	@$(BIN)/lukasa model pull || echo "No embedding model for now: Lukasa works by keyword until 'make model' succeeds."

browser: install ## Chromium for the tests of the page, if there is none
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || test -n "$$LUKASA_BROWSER" || \
		{ test "$$(id -u)" = 0 && SUDO= || SUDO=sudo; \
		$$SUDO apt-get update -qq >/dev/null 2>&1; \
		$$SUDO apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || \
		echo "No Chromium, and it cannot be installed here: install one for the tests of the page, or set LUKASA_BROWSER."

node: ## Node and npm for the tests of the TypeScript client, if there is none
	@command -v npm >/dev/null 2>&1 || \
		{ test "$$(id -u)" = 0 && SUDO= || SUDO=sudo; \
		$$SUDO apt-get update -qq >/dev/null 2>&1; \
		$$SUDO apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null 2>&1; } || \
		echo "No Node, and it cannot be installed here: install Node 20 or newer for the tests of the TypeScript client."

test: install model browser node check $(DOCS)/.ready $(FRAMEWORKS)/.ready $(CREWAI)/.ready ## Lint, type-check and run every test
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS)

frameworks: $(FRAMEWORKS)/.ready $(CREWAI)/.ready ## Run the tests of agent frameworks against the real packages
	@$(BIN)/python -m pytest -q tests/stories/test_frameworks.py

# CrewAI needs older packages than the others, so it has an environment of its own. Each has the versions of its list.
.venv-%/.ready: tests/frameworks/requirements-%.txt pyproject.toml | $(READY)
	@echo "Setting up .venv-$* for the tests of agent frameworks (once) ..."
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-$*
	@$(BIN)/uv pip install --quiet --python .venv-$*/bin/python --requirement $< --editable .
	@touch $@

check: install ## Lint and strict types
	@$(BIN)/ruff check src tests bench tools
	@$(BIN)/ruff format --check --quiet src tests bench tools
	@$(BIN)/mypy

format: install ## Format the code
	@$(BIN)/ruff format src tests bench tools
	@$(BIN)/ruff check --fix src tests bench tools

torture: install model browser node $(FRAMEWORKS)/.ready $(CREWAI)/.ready ## The long reliability suite
	@LUKASA_TORTURE=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests

conformance: install ## Run the tests that show what the sources ask for, and write docs/reference/conformance.md
	@$(BIN)/python -m tests.helpers.conformance

bench: install model $(PEERS)/.ready ## Quality and speed beside other stores, into bench/RESULTS.md; takes most of an hour
	@if test -d "$(TALKS)" && test -d "$(FACTS)"; then $(MAKE) --no-print-directory bench-quality; else \
		echo "No data sets in $(TALKS) and $(FACTS): quality is left out. Name others: make bench TALKS=folder FACTS=folder"; fi
	@$(MAKE) --no-print-directory bench-speed

bench-latency: install model ## Reads and contexts beside the embedder's own time, at 10,000 entries
	@$(BIN)/python -m bench.latency

bench-server: install model ## The server: time to its first answer, memory at rest, time for a call
	@$(BIN)/python -m bench.server

bench-offline: install model ## When the responder without a model quotes a memory: precision and recall over thresholds
	@$(BIN)/python -m bench.offline

bench-quality: install model $(PEERS)/.ready ## Retrieval quality beside peers, into bench/RESULTS.md (TALKS=folder FACTS=folder UNSEEN=folder)
	@$(BIN)/python -m bench.quality --talks $(TALKS) --facts $(FACTS) $(if $(UNSEEN),--unseen $(UNSEEN)) --peers $(PEERS)/bin/python --results bench/RESULTS.md

bench-own: install model ## A diary, notes, exact tokens, other languages and two hops, into bench/RESULTS.md (FACTS=folder)
	@$(BIN)/python -m bench.own_results $(if $(wildcard $(FACTS)),--facts $(FACTS)) --results bench/RESULTS.md

$(PEERS)/.ready: bench/requirements-peers.txt
	@echo "Setting up $(PEERS) for the peers (once) ..."
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement bench/requirements-peers.txt
	@touch $(PEERS)/.ready

bench-nearest: install model ## How many of the nearest real vectors are found, into bench/RESULTS.md (TALKS=folder FACTS=folder)
	@$(BIN)/python -m bench.nearest --data $(TALKS) --data $(FACTS) --results bench/RESULTS.md

bench-speed: install model $(PEERS)/.ready ## Reads, contexts and puts by the size of memory, beside peers (SPEED=--million for more)
	@test -z "$(MORE_PEERS)" || $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check $(MORE_PEERS)
	@$(BIN)/python -m bench.speed --peers $(PEERS)/bin/python --results bench/RESULTS.md $(SPEED)

bench-postgres: install ## Puts, reads and contexts on PostgreSQL beside SQLite and other stores, into bench/RESULTS.md (SPEED=--million for more)
	@$(BIN)/python -m bench.postgres --results bench/RESULTS.md --costs bench/data/postgres.json $(SPEED)
	@$(BIN)/python -m bench.scale --page docs/explanation/scale.md
	@if test -d "$(TALKS)"; then $(BIN)/python -m bench.quality --store postgres --talks $(TALKS) --results bench/RESULTS.md; fi

bench-scale: install ## What a database carries, computed from the last bench-postgres, into docs/explanation/scale.md
	@$(BIN)/python -m bench.scale --page docs/explanation/scale.md

bench-write: install model ## What observing by rules stores, holds and misses, into bench/RESULTS.md
	@$(BIN)/python -m bench.write --results bench/RESULTS.md

bench-verify: install ## What checking citations costs a check and a context, into bench/RESULTS.md
	@$(BIN)/python -m bench.verify --results bench/RESULTS.md

bench-move: install ## What export and import cost, in entries a second, into bench/RESULTS.md
	@$(BIN)/python -m bench.move --results bench/RESULTS.md

bench-langgraph: install ## Gathered puts of a LangGraph store beside LangGraph's own, into bench/RESULTS.md
	@$(BIN)/python -m bench.langgraph_puts --results bench/RESULTS.md

bench-answers: install model ## Questions without an answer, and all of a set, into bench/RESULTS.md (TALKS=folder FACTS=folder)
	@$(BIN)/python -m bench.answers $(if $(wildcard $(TALKS)),--talks $(TALKS)) $(if $(wildcard $(FACTS)),--facts $(FACTS)) --results bench/RESULTS.md

bench-attack: install model ## What untrusted text becomes and what it displaces, over 129 attacks, into bench/RESULTS.md
	@$(BIN)/python -m bench.attack --misses --results bench/RESULTS.md

bench-corpus: install model ## How documents are cut and found: recall beside FTS5 and vectors, speed, into bench/RESULTS.md (TALKS=folder)
	@$(BIN)/python -m bench.corpus $(if $(wildcard $(TALKS)),--data $(TALKS)) --results bench/RESULTS.md
	@$(BIN)/python -m bench.lookups $(if $(wildcard $(TALKS)),--data $(TALKS)) --results bench/RESULTS.md

bench-meaning: install model ## Sentences kept word for word, both of two true ones, the newer one first, into bench/RESULTS.md (MEANING=folder FACTS=folder)
	@$(BIN)/python -m bench.meaning --data $(MEANING) --results bench/RESULTS.md
	@if test -d "$(FACTS)"; then $(BIN)/python -m bench.quality --facts $(FACTS) --results bench/RESULTS.md; fi

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) $(PEERS) $(DOCS) $(FRAMEWORKS) $(CREWAI) site clients/typescript/node_modules clients/typescript/dist build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
