#!/usr/bin/env bash
# The demo: train in Python, evaluate in C++ without Python, mount an operator and a device from outside of the tree.
# Runs from the repository's root. demo.sh [BUILD]: the folder the library is built in (default build/dev). Only what training in Python
# needs must be there at the start (the target cresset_first).
set -euo pipefail

python=${PYTHON:-.venv/bin/python}
tree=${1:-build/dev}
out=build/demo
prefix=$PWD/$out/install
mkdir -p "$out"

step() { printf '\n== %s\n' "$1"; }
build() {  # build SOURCE TARGET_FOLDER: configures and builds an out-of-tree project against the installed package
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >"$2.log" 2>&1 &&
    cmake --build "$2" >>"$2.log" 2>&1 || { cat "$2.log"; exit 1; }
}

start=$SECONDS
step "Training in Python"
"$python" examples/digits/train.py --out "$out"

step "The rest of the library: graphs, modules in C++, the command"
tools/build_progress --label "building the rest" --build "$tree"

step "Installing the library and building the C++ programs against it"
cmake --install "$tree" --prefix "$prefix" >"$out/install.log"
build examples/digits/cpp "$out/digits-cpp"
build examples/hardswish_scaled "$out/hardswish_scaled"
build examples/minimal_backend "$out/minimal_backend"
echo "installed to $out/install; three projects built"

step "The same weights and scans in C++, without Python"
"$out/digits-cpp/digits" "$out" --train | tee "$out/cpp.txt"
grep -q "accuracy $(cat "$out/accuracy.txt") " "$out/cpp.txt" || { echo "C++ and Python disagree"; exit 1; }

step "An operator and a device from outside of the tree"
"$python" examples/digits/extend.py --out "$out" \
  --operator "$(echo "$out"/hardswish_scaled/libhardswish_scaled.so)" --backend "$(echo "$out"/minimal_backend/libtin.so)"

step "Summary"
echo "Python and C++ agree: accuracy $(cat "$out/accuracy.txt") on the held-out quarter"
echo "mounted from outside: operator demo::hardswish_scaled (CPU kernel and gradient), device tin (PrivateUse1)"
echo "the whole demo took $((SECONDS - start)) s"
