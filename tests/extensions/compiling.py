"""Compiling small sources against the compatibility headers."""

import subprocess
from pathlib import Path

import pytest

from cresset.utils import cpp_extension

COMPAT = Path(__file__).resolve().parents[2] / "compat/torch"
needs_pybind11 = pytest.mark.skipif(
    cpp_extension._pybind11_include() is None and not Path("/usr/include/pybind11").exists(),
    reason="pybind11 is not installed",
)


def compile_only(text, folder, *flags):
    source = folder / "source.cpp"
    source.write_text(text)
    includes = [f"-I{p}" for p in (*cpp_extension.include_paths(), cpp_extension.sysconfig.get_path("include"))]
    command = [
        cpp_extension.get_cxx_compiler(),
        "-std=c++20",
        "-fsyntax-only",
        "-DTORCH_EXTENSION_NAME=x",
        *flags,
        *includes,
        source,
    ]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def header_names():
    lines = (COMPAT / "headers.txt").read_text().splitlines()
    return [line for line in lines if line.endswith(".h")]
