PYTHON ?= python3
VENV ?= .venv
KB = $(VENV)/bin/kb

.PHONY: demo test lint clean

# Set up and run the main job: evaluate the examples, print a leaderboard.
demo: $(VENV)/ready
	$(KB) eval --solutions examples --timeout 10

# Set up and run all tests that this machine can run.
test: $(VENV)/ready
	$(VENV)/bin/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .

clean:
	rm -rf $(VENV) runs build *.egg-info

$(VENV)/ready: setup.cfg constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
