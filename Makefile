# Thin front of tools/ and CMake. Every target first installs what it needs (tools/setup; quick when nothing is missing).
.DEFAULT_GOAL := build
.PHONY: setup build demo wheel test test-slow test-arm oracle peer-tests programs archive-exchange differential bench fuzz fuzz-operators soak lint asan ubsan tsan asan-next ubsan-next doctor-tests build-time clean

# A shim of a version manager may stand in PATH without a program behind it; Debian's own is in /usr/bin.
CMAKE = $(shell cmake --version >/dev/null 2>&1 && echo cmake || echo /usr/bin/cmake)
CTEST = $(shell ctest --version >/dev/null 2>&1 && echo ctest || echo /usr/bin/ctest)
PYTHON := .venv/bin/python

setup:
	@tools/setup

build: setup
	@$(CMAKE) --preset dev --log-level=WARNING
	@$(PYTHON) tools/build_progress --label build --build build/dev
	@ln -sfn ../../build/dev/bin/cresset .venv/bin/cresset

# The quickest way to a training: what it needs comes first, for this machine's instruction set, and the rest when it has run.
demo: setup
	@$(CMAKE) --preset release --log-level=WARNING
	@$(PYTHON) tools/build_progress --label "building what training needs" --build build/release --target cresset_first
	@examples/digits/demo.sh build/release
	@ln -sfn ../../build/release/bin/cresset .venv/bin/cresset

# dist/*.whl: Cresset with the libraries it needs, for machines without compilers.
wheel: setup
	@$(PYTHON) tools/make_wheel

test test-slow: export CRESSET_SETUP_TESTS = 1
# ROOM=ir or ROOM="ops nn": the tests of these rooms only.
test: build
	@$(PYTHON) tools/run_tests --build build/dev $(if $(ROOM),--room "$(ROOM)")

test-slow: build
	@$(PYTHON) tools/run_tests --build build/dev --slow

# The build for AArch64 and its tests under qemu (docs/guide/arm64.md); ARM_TESTS="tests/python/nn" takes other Python tests.
ARM_TESTS ?= $(addprefix tests/,ops/test_instruction_sets.py ops/test_float_math.py ops/test_special_values.py ops/test_recorded_calls.py \
	ops/test_types.py python/tensor python/test_random.py ir/test_passes.py ir/test_script_programs.py)
test-arm: export CRESSET_SETUP_ARM = 1
test-arm: setup
	@$(CMAKE) --preset arm64 --log-level=WARNING
	@$(PYTHON) tools/build_progress --label "building for AArch64" --build build/arm64
	@$(PYTHON) tools/run_tests --build build/arm64 -- -n 0 $(ARM_TESTS)

# Live comparison with an installed PyTorch; ARGS="--only REGEX -v".
oracle: build
	@$(PYTHON) tools/oracle.py $(ARGS)

# Archives both ways with PyTorch (CRESSET_ORACLE_PYTHON); ARGS="--models 'timm.*' --site FOLDER".
archive-exchange: build
	@$(PYTHON) tools/archive_exchange $(ARGS)

# PyTorch's own tests, TESTS=<its folder test/>; ARGS="--files test_autograd.py --sample 100 --classes 20" (docs/guide/peer-tests.md).
peer-tests: build
	@$(PYTHON) tools/peer_tests $(or $(TESTS),$(error peer-tests: TESTS=<folder of PyTorch's test/> is required)) $(ARGS)

# Packages and programs that were written for PyTorch, beside PyTorch; ARGS="--only packages/timm -v" (docs/guide/programs.md).
programs: build
	@$(PYTHON) tools/run_programs $(ARGS)

# Random calls of every operator beside PyTorch's; ARGS="--seed 1 --calls 200000 --first 5", or ARGS="snippets FOLDER".
differential: build
	@$(PYTHON) tools/differential $(ARGS)

bench: build
	@$(PYTHON) benchmarks/run.py

# The readers of graphs' text, scripts and archives under libFuzzer; SECONDS_EACH=600 by default, ARGS="--keep" keeps the corpus.
SECONDS_EACH ?= 600
fuzz: export CRESSET_SETUP_FUZZ = 1
fuzz: build
	@$(PYTHON) tools/fuzz --seconds $(SECONDS_EACH) $(ARGS)

# Adversarial calls of every operator, ARGS="--calls 1000000 --seed 7 --only conv".
fuzz-operators: build
	@$(PYTHON) tools/fuzz_operators $(ARGS)

# The same work 10,000 times, and what it leaves in memory; ARGS="--rounds 1000 --seconds 60 threads".
soak: build
	@$(PYTHON) tools/soak $(ARGS)

lint: setup
	@$(PYTHON) tools/lint

# The tests of a room with the room instrumented, ROOM=ir or ROOM="ops cpu"; asan-next takes the room that has waited longest, and
# doctor-tests says when each was last clean (tools/sanitize).
ifdef ROOM
asan ubsan: build
	@$(PYTHON) tools/sanitize $@ --room $(ROOM)
else
# All rooms: the tests of C++, and those of Python that do not compile anything.
asan ubsan: setup
	@$(CMAKE) --preset $@ --log-level=WARNING
	@$(CMAKE) --build --preset $@
	@$(PYTHON) tools/run_tests --build build/$@ -- tests/ops tests/python tests/errors tests/ir
endif
asan-next ubsan-next: build
	@$(PYTHON) tools/sanitize $(@:-next=) --next
doctor-tests:
	@$(PYTHON) tools/sanitize status

tsan: build
	@$(PYTHON) tools/sanitize $@

# A clean build without ccache, by room and file, beside the recorded one and the budgets; ARGS="--demo --tests --record …".
build-time: setup
	@$(PYTHON) tools/measure_build $(ARGS)

clean:
	rm -rf build dist python/cresset/_C*.so
