# rlgpt: `make run` opens the console on a live session, `make test` runs the tests. Works with GNU make 3.81.

PYTHON ?=
VENV := .venv
PY := $(VENV)/bin/python
FOLDERS := console agents training store prompts
MARK ?= not slow and not tmux and not network and not postgres and not ray
TESTS ?=
JOBS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow lint bench screenshots docs constraints clean

help:
	@echo "make run          install what is missing, then open the console on a live session (or attach to it)"
	@echo "make test         install what is missing, then run the tests (TESTS=path for some of them, JOBS=2 side by side)"
	@echo "make setup        only install, into $(VENV)"
	@echo "make lint         ruff, mypy --strict and the import contracts"
	@echo "make test-slow    the long proofs (minutes to hours)"
	@echo "make bench        the benchmarks"
	@echo "make screenshots  draw the pictures of the README again"
	@echo "make docs         write the list of events in docs/json.md from store/events.py"

$(PY):
	@found=""; unusable=""; \
	for name in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
	  command -v $$name >/dev/null 2>&1 || continue; \
	  $$name -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1 || continue; \
	  if $$name -c 'import venv, ensurepip' >/dev/null 2>&1; then found=$$name; break; fi; \
	  test -n "$$unusable" || unusable=$$name; \
	done; \
	if test -n "$$found"; then $$found -m venv $(VENV); \
	elif test -n "$$unusable"; then \
	  echo "$$unusable lacks the venv module: install it (Debian, Ubuntu: apt install python3-venv), then run make again." >&2; \
	  exit 1; \
	else \
	  echo "rlgpt needs Python 3.11, 3.12 or 3.13 and found none: install one, or say where it is with make PYTHON=/path/to/python." >&2; \
	  exit 1; \
	fi

# torch comes first and alone, so that the index chosen for it (CPU or CUDA builds) decides nothing else.
$(VENV)/.installed: pyproject.toml setup.py constraints.txt | $(PY)
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt torch
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(PY) -P -m rlgpt.training.worlds.crafter.warm
	@touch $@

# .link shows the folders as the package they are installed as, to editors (pyrightconfig.json) and to mypy.
setup: $(VENV)/.installed .link

run: setup
	@$(VENV)/bin/rlgpt demo

test: setup
	@$(PY) -m pytest -q $(if $(JOBS),-n $(JOBS) --dist loadfile) -m '$(MARK)' $(TESTS)

test-slow: setup
	@$(PY) -m pytest -q -m slow --timeout 0 $(TESTS)

.link: | $(PY)
	@mkdir -p .link/rlgpt
	@for folder in $(FOLDERS); do ln -sfn ../../$$folder .link/rlgpt/$$folder; done
	@touch .link

lint: setup
	@$(VENV)/bin/ruff check .
	@cd .link && MYPYPATH=. ../$(VENV)/bin/mypy --config-file ../pyproject.toml
	@$(VENV)/bin/lint-imports

# BENCH=store for one of them.
BENCH ?= store action_host crafter ppo
bench: setup
	@for name in $(BENCH); do echo "== $$name"; $(PY) -P benchmarks/$$name.py || exit 1; done

screenshots: setup
	@$(PY) docs/screenshots.py

docs: setup
	@$(PY) docs/events.py

# The exact versions of a working environment; run it after a change of the ranges in pyproject.toml.
constraints:
	$(PY) -m pip freeze --all --exclude pip --exclude-editable | sed -E -e '/^#/d' -e 's/\+[a-z0-9.]+$$//' > constraints.txt

clean:
	rm -rf $(VENV) .link build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
