# Two commands for users: `make demo` and `make test`. Everything else is for developers.
# Each sets up what it needs in .venv and build/, and redoes only what changed. Nothing
# outside this directory is written; pip's own settings (index, proxy) are left alone.
#
#   make demo PYTHON=python3.12     uses another interpreter

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin
MESON := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

TOOLS := meson meson-python ninja numpy 'llvmlite>=0.45' 'pytest>=7' hypothesis pillow
# Wanted, not needed: without a wheel for this machine the format check reports "not run".
EXTRAS := 'clang-format>=23,<24'

# The stamps carry the version of Python, so that another PYTHON rebuilds the venv.
PYTAG := $(shell $(PYTHON) -c \
	'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)' 2>/dev/null)
READY := $(VENV)/.ready-$(PYTAG)
INSTALLED := $(VENV)/.installed-$(PYTAG)
SOURCES := $(shell find src ingot tools/revision.py tools/exports.map -type f \
	\( -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.pyi' \
	-o -name meson.build -o -name '*.map' -o -name py.typed \) 2>/dev/null)
SAY := @printf '%s\n'

.PHONY: demo docs test stress pythons wheel bench asan tsan tidy fuzz inplace machine packages setup \
	clean help
.DEFAULT_GOAL := help

help:
	$(SAY) 'make demo    set up a local venv, run a simulation, write out/demo.png and .gif' \
	       'make test    set up a local venv, run every test' \
	       '' \
	       'make docs    the documentation as a site, build/site/index.html' \
	       '' \
	       'for developers: stress pythons wheel fuzz bench asan tsan tidy inplace clean (CONTRIBUTING.md)'

demo: $(INSTALLED)
	@$(PY) examples/demo.py

test: $(INSTALLED)
	@$(PY) tools/run_tests.py --jobs $(JOBS)

stress: $(INSTALLED)
	@INGOT_STRESS=1 $(PY) tools/run_tests.py --jobs $(JOBS)
	@INGOT_STRESS=0.1 $(PYTHON) tools/run_ci.py --jobs $(JOBS) --random

# Every test here, and every Python test on each other interpreter of this machine.
pythons:
	@$(PYTHON) tools/run_ci.py --jobs $(JOBS) --full

# A wheel for systems with glibc 2.28 or newer, in build/wheels; PYTHONS='python3.11 python3.12' makes one for each.
wheel: machine
	@$(PYTHON) tools/build_wheel.py $(or $(PYTHONS),$(PYTHON))

bench: $(INSTALLED)
	@$(PY) bench/compute.py
	@$(PY) bench/launch.py
	@$(PY) bench/start.py

# The site of the documentation, in build/site, from the docstrings of an installed package.
docs: $(READY)
	@test -d build/venv-docs || $(PYTHON) -m venv build/venv-docs
	@build/venv-docs/bin/python -m pip install --quiet --disable-pip-version-check '.[docs]'
	@NO_MKDOCS_2_WARNING=1 build/venv-docs/bin/python tools/build_docs.py --strict

# FUZZ_SECONDS of each reader of foreign bytes, 600 unless told otherwise. Needs clang.
fuzz: $(INSTALLED)
	@$(PY) tools/run_fuzz.py --jobs $(JOBS)

asan tsan: $(READY)
	@$(PY) tools/run_tests.py --jobs $(JOBS) --only $@

tidy: $(READY)
	@$(PY) tools/run_tests.py --jobs $(JOBS) --only tidy

# For developers: the extension beside the package's .py files, so that an edit to them
# is live and `python` started in this directory imports the working tree.
inplace: $(READY)
	@test -d build/inplace-$(PYTAG) || $(MESON) setup build/inplace-$(PYTAG)
	@$(MESON) compile -C build/inplace-$(PYTAG)
	@cp build/inplace-$(PYTAG)/_core*.so ingot/

setup: $(INSTALLED)

packages: $(READY)

machine:
	@sh tools/check_machine.sh "$(PYTHON)"

$(READY): pyproject.toml Makefile | machine
	$(SAY) '== a virtual environment in $(VENV)'
	@test -e $@ || $(PYTHON) -m venv --clear $(VENV)
	$(SAY) '== packages: meson, ninja, numpy, llvmlite, pytest, hypothesis, pillow'
	@$(PY) -m pip install --quiet --disable-pip-version-check $(TOOLS)
	@$(PY) -m pip install --quiet --disable-pip-version-check $(EXTRAS) \
		|| echo 'not installed: clang-format (the format check will report "not run")'
	@touch $@

$(INSTALLED): $(READY) meson.build meson.options $(SOURCES)
	$(SAY) '== building and installing ingot'
	@mkdir -p build
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PY) -m pip install --quiet \
		--disable-pip-version-check --no-deps --no-build-isolation --force-reinstall \
		--config-settings=build-dir=build/py-$(PYTAG) .
	@touch $@

clean:
	rm -rf build out $(VENV) ingot/_core*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
