"""The C++ of recipes compiles as it stands there, one block after the other."""

import re
from pathlib import Path

import pytest
from compiling import compile_only

RECIPES = Path(__file__).resolve().parents[2] / "docs/recipes"


@pytest.mark.parametrize("name", ["engine-builder.md"])
def test_blocks_make_a_program(name, tmp_path):
    blocks = re.findall(r"^```cpp\n(.*?)^```", (RECIPES / name).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    made = compile_only("\n".join(blocks), tmp_path)
    assert made.returncode == 0, made.stderr[:3000]
