"""Writes kernels/*.cl as C++ string literals: embed.py OUT.h FILE.cl..."""

import sys
from pathlib import Path


def literal(text):
    # A literal may have 64 KiB at most in some compilers; files here are far smaller.
    return 'R"cl(' + text + ')cl"'


def main(out, *files):
    rows = "".join(f'    {{"{Path(f).stem}", {literal(Path(f).read_text())}}},\n' for f in files)
    Path(out).write_text(
        "// Written by generate/embed.py from kernels/*.cl.\n#pragma once\n\n"
        "namespace cresset_opencl {\n\nstruct KernelFile {\n  const char* name;\n  const char* text;\n};\n"
        f"inline constexpr KernelFile kKernelFiles[] = {{\n{rows}}};\n\n}}  // namespace cresset_opencl\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
