"""Damaged programs: each is compiled to a sound graph or refused with the place, and nothing else happens."""

import random
import re
import textwrap

import cresset
import pytest
import script_programs
import script_tensor_programs
from test_script_source import MODULES, OF_NUMBERS, OF_TENSORS
from test_script_source import PROGRAMS as CLASS_PROGRAMS

PROGRAMS = (
    [p[0] for p in (*script_programs.PROGRAMS.values(), *script_tensor_programs.PROGRAMS.values())]
    + [textwrap.dedent(p) for p in CLASS_PROGRAMS.values()]
    + [f"def f(x: int):\n    return {line}\n" for line in OF_NUMBERS.strip().splitlines()]
    + [f"def f(x):\n    return {line}\n" for line in OF_TENSORS.strip().splitlines()]
    + [MODULES]
)
PIECES = [re.findall(r"\s+|\w+|[^\w\s]", p) for p in PROGRAMS]
ALL = [piece for pieces in PIECES for piece in pieces]


def damaged(rng):
    pieces = list(rng.choice(PIECES))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(pieces))
        match rng.randrange(4):
            case 0:
                pieces[at] = ""
            case 1:
                pieces[at] = rng.choice(ALL)
            case 2:
                pieces.insert(at, rng.choice(ALL))
            case 3:
                other = rng.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_programs(seed):
    rng = random.Random(seed)
    compiled = 0
    for _ in range(250):
        source = damaged(rng)
        try:
            unit = cresset._C.CompilationUnit(source)
        except RuntimeError as error:
            assert "\n  File " in str(error), f"{source}\n{error!r}"
            continue
        for function in unit.get_functions():
            function.graph.lint()
            compiled += 1
    assert compiled > 5


@pytest.mark.parametrize("seed", range(2))
def test_noise(seed):
    rng = random.Random(seed)
    alphabet = "abx01 \n\t()[]{}:,.'\"#\\=+-*/%@<>!&|^~;fr_\x00\x80é"
    for _ in range(2000):
        source = "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 60)))
        try:
            cresset._C._script_parse(source)
        except (RuntimeError, UnicodeDecodeError):
            continue
