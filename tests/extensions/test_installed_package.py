"""The installed package is enough: a C++ project builds against it through find_package and through pkg-config."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "installed"
VERSION = re.search(r"project\(Cresset VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
# ones(2, 3) * 2 + 0.5 summed, and the sum of its gradient
EXPECTED = f"15 12 {VERSION}\n"


def program(name):
    found = shutil.which(name)
    if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
        return found
    return f"/usr/bin/{name}"


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A prefix that the build was installed into and that was then moved, so nothing may depend on its first place."""
    first = tmp_path_factory.mktemp("install") / "first"
    run(program("cmake"), "--install", ROOT / "build/dev", "--prefix", first)
    moved = first.with_name("moved")
    first.rename(moved)
    return moved


@pytest.fixture(scope="module")
def pkg_config_path(prefix):
    (file,) = prefix.rglob("cresset.pc")
    return str(file.parent)


def parts_of(program):
    """The libraries of Cresset that a program loads by itself."""
    return set(re.findall(r"NEEDED.*\[lib(cresset\w*)\.so", run("readelf", "-d", program)))


def test_find_package(prefix, tmp_path):
    run(program("cmake"), "-S", SOURCE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(program("cmake"), "--build", tmp_path)
    assert run(tmp_path / "main") == EXPECTED
    assert parts_of(tmp_path / "main") == {"cresset", "cresset_cpu"}


PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(p LANGUAGES CXX)
find_package(Cresset REQUIRED COMPONENTS {components})
add_executable(main main.cpp)
target_link_libraries(main PRIVATE {targets})
"""
USES_EVERY_PART = """
#include <cresset/cresset.h>
#include <cresset/ir/ir.h>
#include <cresset/nn.h>
#include <iostream>
int main() {
  cresset::jit::Graph graph;
  std::cout << cresset::nn::Linear(2, 3)->forward(cresset::ones({1, 2})).numel() << " " << graph.inputs().size() << "\\n";
}
"""


@pytest.mark.parametrize("targets", ["Cresset::cresset", "Cresset::nn Cresset::ir Cresset::cpu"])
def test_components(prefix, tmp_path, targets):
    source = tmp_path / "with space"  # paths stand between flags of the linker
    source.mkdir()
    moved = source / "prefix"
    moved.symlink_to(prefix)
    (source / "main.cpp").write_text(USES_EVERY_PART)
    (source / "CMakeLists.txt").write_text(PROJECT.format(components="core cpu ir nn", targets=targets))
    run(program("cmake"), "-S", source, "-B", source / "build", "-G", "Ninja", f"-DCresset_DIR={moved}/lib/cmake/Cresset")
    run(program("cmake"), "--build", source / "build")
    assert run(source / "build/main") == "3 0\n"
    assert parts_of(source / "build/main") == {"cresset", "cresset_cpu", "cresset_ir", "cresset_nn"}


def test_an_unknown_component_is_named(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(components="ir gpu", targets="Cresset::ir"))
    result = subprocess.run([program("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
    assert result.returncode != 0
    assert "One of the components core, cpu, ir, nn, distributed was required; 'gpu' was given." in " ".join(result.stderr.split())


def test_pkg_config(prefix, pkg_config_path, tmp_path):
    environment = {**os.environ, "PKG_CONFIG_PATH": pkg_config_path}
    flags = run("pkg-config", "--cflags", "--libs", "cresset", env=environment).split()
    assert run("pkg-config", "--modversion", "cresset", env=environment).strip() == VERSION
    run("g++", SOURCE / "main.cpp", *flags, "-o", tmp_path / "main")
    assert run(tmp_path / "main") == EXPECTED
    assert parts_of(tmp_path / "main") == {"cresset", "cresset_cpu"}
    (tmp_path / "parts.cpp").write_text(USES_EVERY_PART)
    for packages in (["cresset"], ["cresset-nn", "cresset-ir", "cresset-cpu"]):
        flags = run("pkg-config", "--cflags", "--libs", *packages, env=environment).split()
        run("g++", tmp_path / "parts.cpp", *flags, "-o", tmp_path / "parts")
        assert run(tmp_path / "parts") == "3 0\n"


def test_find_package_refuses_another_version(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(Cresset 99.0 REQUIRED)\n"
    )
    result = subprocess.run(
        [program("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert "99.0" in result.stderr and VERSION in result.stderr


def test_installed_headers_name_only_installed_headers(prefix):
    include = prefix / "include"
    missing = []
    for header in include.rglob("*"):
        if header.suffix not in {".h", ".inc"}:
            continue
        for name in re.findall(r"^\s*#\s*include\s*<(cresset/[^>]+)>", header.read_text(), re.MULTILINE):
            if not (include / name).exists():
                missing.append(f"{header.relative_to(include)}: {name}")
    assert missing == []


def test_declarations_are_installed_without_the_library(tmp_path):
    run(program("cmake"), "--install", ROOT / "build/dev", "--prefix", tmp_path, "--component", "declarations")
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["RegistrationDeclarations.h", "operators.json"]
    (header,) = tmp_path.rglob("RegistrationDeclarations.h")
    (row,) = [
        line for line in header.read_text().splitlines() if '"schema": "aten::relu(Tensor self) -> Tensor"' in line
    ]
    assert row.startswith("Tensor relu(const Tensor & self); // {")


def test_nothing_private_is_installed(prefix):
    installed = {path.relative_to(prefix).parts[0] for path in prefix.rglob("*") if path.is_file()}
    assert installed <= {"bin", "include", "lib", "lib64"}
    tops = {path.name for path in (prefix / "include").iterdir()}
    assert tops <= {"cresset", "cresset_compat"}


def test_command_runs_from_the_prefix(prefix):
    assert VERSION in run(prefix / "bin/cresset", "--version")


def test_config_gives_the_flags_of_a_compiler(prefix, tmp_path):
    command = prefix / "bin/cresset"
    flags = run(command, "config", "--cflags", "--ldflags").split()
    run("g++", SOURCE / "main.cpp", *flags, "-o", tmp_path / "main")
    assert run(tmp_path / "main") == EXPECTED
    assert parts_of(tmp_path / "main") == {"cresset", "cresset_cpu"}
    assert run(command, "config", "cmake-prefix") == f"{prefix}\n"
    assert f"-I{prefix}/include/cresset_compat" in run(command, "config", "--compat-cflags").split()
    result = subprocess.run([command, "config", "nothing"], capture_output=True, text=True)
    assert result.returncode != 0 and "config: one of version, prefix, include, lib, cmake, cmake-prefix, " in result.stderr
