"""Which function overriding types see for each operator, beside PyTorch 2.13.

asked_operators.txt has what PyTorch said, a line for each operator and pair of operands: x a tensor, t of a subclass, d of a class that
overrides and is no tensor; `mode` where a mode is active. Written by `python test_asked_operators.py` with PyTorch as the module torch.
"""

import operator
from pathlib import Path

import pytest

if __name__ == "__main__":
    import torch
else:
    import cresset as torch

NAMES = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()
PAIRS = "x@d d@x t@2 2@t t@2.5 t@t x@t t@d t@str t@None".split()
MODE_PAIRS = "x@x x@2 2@x x@str x@None x@d t@t".split()
METHODS = "radd rsub rmul rdiv rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift div idiv eq ne lt and iand ipow".split()


class Subclass(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(described(func, args, kwargs))
        return "asked"


class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(described(func, args, kwargs))
        return "asked"


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(described(func, args, kwargs))
        return "asked"


seen = []


def described(func, args, kwargs):
    return f"{func.__name__}({', '.join(type(a).__name__ for a in args)}){'' if kwargs is None else ' with keywords'}"


def operands():
    return {"x": torch.ones(3), "t": torch.ones(3).as_subclass(Subclass), "d": Duck(), "2": 2, "2.5": 2.5, "str": "s", "None": None}


def answer(call, *arguments):
    seen.clear()
    try:
        result = call(*arguments)
        how = "asked" if isinstance(result, str) else type(result).__name__
    except TypeError:
        how = "TypeError"
    return "; ".join([*seen, how])


def cases():
    for pairs, mode in ((PAIRS, ""), (MODE_PAIRS, "mode ")):
        for name in NAMES + IN_PLACE:
            for pair in pairs:
                if (name, pair) != ("mul", "t@str") and (name, pair) != ("mul", "x@str"):  # strings multiply by indices first
                    yield f"{mode}{name} {pair}"
    for method in METHODS:
        # Reflected methods of two tensors, called by name, see them in the order of the operator here.
        others = "d" if method.startswith("r") and method != "rdiv" else "td"
        yield from (f"method {method} {owner}@{other}" for owner in "xt" for other in others)


def asked(case):
    kind, _, rest = case.rpartition(" ")
    left, _, right = rest.partition("@")
    values = operands()
    if kind.startswith("method "):
        return answer(getattr(values[left], f"__{kind[7:]}__"), values["t" if right == "t" else right])
    if kind.startswith("mode "):
        with Mode():
            return answer(getattr(operator, kind[5:]), values[left], values[right])
    return answer(getattr(operator, kind), values[left], values[right])


RECORDED = Path(__file__).with_name("asked_operators.txt")

if __name__ == "__main__":
    RECORDED.write_text("".join(f"{case}: {asked(case)}\n" for case in cases()))
else:

    @pytest.mark.parametrize("line", RECORDED.read_text().splitlines())
    def test_it_is_what_pytorch_asks_for(line):
        case, _, expected = line.partition(": ")
        assert asked(case) == expected

    def test_the_names_compute_what_the_operator_does():
        class Through(torch.Tensor):
            names = []

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                cls.names.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs or {})

        for dtype in (torch.float64, torch.int64):
            plain = torch.tensor([3, 5, 6], dtype=dtype)
            through = plain.clone().as_subclass(Through)
            for name in NAMES if dtype is torch.int64 else [n for n in NAMES if n.strip("_") not in ("and", "or", "xor", "lshift", "rshift")]:
                for other in (2, torch.tensor([1, 5, 2], dtype=dtype)):
                    if name == "matmul" and isinstance(other, int):
                        continue
                    call = getattr(operator, name)
                    assert torch.equal(call(through, other).as_subclass(torch.Tensor), call(plain, other)), name
                    assert torch.equal(call(other, through).as_subclass(torch.Tensor), call(other, plain)), f"reflected {name}"
        assert {"__rdiv__", "__eq__", "bitwise_and", "bitwise_or", "bitwise_xor", "__rlshift__"} <= set(Through.names)
