PYTHON ?= python3
VENV ?= .venv
KB = $(VENV)/bin/kb

.PHONY: demo test slow integrations fuzz fuzz_protocol fuzz_inputs fuzz_records lint clean

# Set up and run the main job: evaluate the examples, print a leaderboard. Status 3: the packages of some languages are
# not installed, and their examples are listed as skipped.
demo: $(VENV)/core
	$(KB) eval --solutions examples --timeout 10 || [ $$? -eq 3 ]

# Set up and run the tests that this machine can run, the red team first: it takes longest.
test: $(VENV)/ready
	$(VENV)/bin/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder tests/redteam tests

# Tests that take some three seconds and more: Ray, kills, a wheel, builds. Many wait, so three run at once.
slow: $(VENV)/slow
	$(VENV)/bin/python -m pytest -q -m slow -n 3 --dist loadfile --no-loadscope-reorder

# Tests of the adapters and languages whose packages exclude each other, each in an environment of its own.
integrations:
	scripts/integrations/test.sh

# 20,000 malformed messages, logs, directories, sources and texts: about a minute, less with `make -j 2`.
fuzz: fuzz_protocol fuzz_inputs fuzz_records

fuzz_protocol: $(VENV)/ready
	$(VENV)/bin/python scripts/fuzz_protocol.py --messages 4500 --evaluations 0 --logs 1500

fuzz_inputs: $(VENV)/ready
	$(VENV)/bin/python scripts/fuzz_inputs.py --trees 1000 --sources 6000 --texts 7000

fuzz_records: $(VENV)/ready
	$(VENV)/bin/python scripts/fuzz_records.py --runs 400

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .

clean:
	rm -rf $(VENV) runs build *.egg-info

# What the main job needs, and what the tests need on top of that.
$(VENV)/core: setup.py setup.cfg constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/ready: $(VENV)/core
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(VENV)/slow: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[dev,ray]"
	touch $@
