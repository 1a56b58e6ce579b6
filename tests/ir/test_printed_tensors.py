"""Tensors as scripts print them: as PyTorch 2.13 does (which drops the imaginary parts of complex numbers)."""

import pytest

from cresset import arange, bfloat16, float64, jit, tensor, zeros

inf, nan = float("inf"), float("nan")


@jit.script
def text_of(x):
    return str(x)


PRINTED = [
    (tensor(3), "3\n[ CPULongType{} ]"),
    (tensor(1 / 3), "0.3333333432674408\n[ CPUFloatType{} ]"),
    (tensor(1e10), "10000000000\n[ CPUFloatType{} ]"),
    (tensor(True), "1\n[ CPUBoolType{} ]"),
    (zeros(2, 0), "[ CPUFloatType{2,0} ]"),
    (tensor([-1.0, -2]), "-1\n-2\n[ CPUFloatType{2} ]"),
    (tensor([1.5, 2, 3], dtype=bfloat16), " 1.5000\n 2.0000\n 3.0000\n[ CPUBFloat16Type{3} ]"),
    (tensor([0.5, 100.25, -3]), "   0.5000\n 100.2500\n  -3.0000\n[ CPUFloatType{3} ]"),
    (tensor([1e10, 1.0]), " 1.0000e+10\n 1.0000e+00\n[ CPUFloatType{2} ]"),
    (tensor([1234567]), "1.23457e+06\n[ CPULongType{1} ]"),
    (tensor([inf, 1.0, nan]), "inf\n 1\nnan\n[ CPUFloatType{3} ]"),
    (tensor([inf, 1.5]), "    inf\n 1.5000\n[ CPUFloatType{2} ]"),
    (tensor([1e-3, 2e-3]), "0.001 *\n 1.0000\n 2.0000\n[ CPUFloatType{2} ]"),
    (tensor([1e100], dtype=float64), "1.0000e+100\n[ CPUDoubleType{1} ]"),
    (tensor([[10.0, -200]]), "  10 -200\n[ CPUFloatType{1,2} ]"),
    (arange(24.0).view(2, 3, 4), "(1,.,.) = \n  0   1   2   3\n   4   5   6   7\n   8   9  10  11\n\n(2,.,.) = \n 12  13  14  15\n  16  17  18  19\n  20  21  22  23\n[ CPUFloatType{2,3,4} ]"),
    (arange(44.0).view(2, 22), "Columns 1 to 20  0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18  19\n"
                               " 22  23  24  25  26  27  28  29  30  31  32  33  34  35  36  37  38  39  40  41\n\nColumns 21 to 22 20  21\n 42  43\n[ CPUFloatType{2,22} ]"),
    (tensor([1 + 2j, 3 - 1j]), " 1+2j\n 3-1j\n[ CPUComplexFloatType{2} ]"),
]  # fmt: skip


@pytest.mark.parametrize("x, text", PRINTED, ids=[str(i) for i in range(len(PRINTED))])
def test_texts(x, text):
    assert text_of(x) == text
