"""What torch.ops passes for which type, and which of two overloads it calls."""

import itertools

TYPES = [
    "Tensor", "Tensor?", "Tensor[]", "Scalar", "Scalar?", "int", "int?", "SymInt", "int[]", "int[2]", "int[]?", "int[2]?", "float", "float?", "float[]",
    "float[2]", "bool", "bool?", "bool[]", "bool[2]", "str", "str?", "complex", "ScalarType", "Device", "Layout", "MemoryFormat", "str[]",
]  # fmt: skip
PAIRED = ["Tensor", "Scalar", "int", "float", "bool", "str", "complex", "int[]", "float[]", "Tensor[]", "Tensor?", "int?", "ScalarType", "Device"]


class _Half:
    def __float__(self):
        return 2.5


class _Seven:
    def __index__(self):
        return 7


def values(torch):
    """{name: argument}."""
    one = torch.tensor([1.0])
    return {
        "1": 1, "2.0": 2.0, "True": True, "1j": 1j, "None": None, "str": "cpu", "float tensor": torch.tensor(1.5), "int tensor": torch.tensor(3),
        "bool tensor": torch.tensor(True), "vector": torch.tensor([1.0, 2.0]), "(1, 2)": (1, 2), "[1, 2, 3]": [1, 2, 3], "[]": [], "[1.0, 2]": [1.0, 2],
        "[True, False]": [True, False], "[tensor]": [one], "[tensor, None]": [one, None], "Size": torch.Size([1, 2]), "range": range(2), "dtype": torch.float32,
        "device": torch.device("cpu"), "layout": torch.strided, "memory format": torch.channels_last, "__index__": _Seven(), "__float__": _Half(),
        "['a']": ["a"], "2**70": 2**70, "object": object(),
    }  # fmt: skip


def _shown(torch, value):
    if isinstance(value, torch.Tensor):
        return f"tensor {value.tolist()}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shown(torch, v) for v in value) + "]"
    return f"{type(value).__name__} {value}".replace("cresset.", "torch.")


def passed(torch):
    """{type: {argument: what the kernel gets}}; refused arguments are not there."""
    library, table, got = torch.library.Library("passed_cases", "DEF"), {}, []
    for i, kind in enumerate(TYPES):
        library.define(f"f{i}({kind} x) -> ()")
        library.impl(f"f{i}", lambda x: got.append(_shown(torch, x)), "CompositeExplicitAutograd")
        row = table[kind] = {}
        for name, value in values(torch).items():
            got.clear()
            try:
                getattr(torch.ops.passed_cases, f"f{i}").default(value)
            except (RuntimeError, OverflowError):
                continue
            row[name] = got[0]
    library._destroy()
    return table


def chosen(torch):
    """{"first type, second type": {"1": [arguments for which the first overload is called], "2": [those of the second]}}."""
    library, table, got = torch.library.Library("chosen_cases", "DEF"), {}, []
    for i, types in enumerate(itertools.permutations(PAIRED, 2)):
        for number, kind in zip("12", types):
            library.define(f"f{i}.o{number}(Tensor s, {kind} x) -> ()")
            library.impl(f"f{i}.o{number}", lambda s, x, number=number: got.append(number), "CompositeExplicitAutograd")
        row = table[", ".join(types)] = {"1": [], "2": []}
        op, s = getattr(torch.ops.chosen_cases, f"f{i}"), torch.ones(1)
        for name, value in values(torch).items():
            picks = set()
            for call in (lambda: op(s, value), lambda: op(s, x=value), lambda: op(x=value, s=s)):
                got.clear()
                try:
                    call()
                except (RuntimeError, OverflowError):
                    pass
                picks.add(got[0] if got else "")
            (pick,) = picks  # a keyword counts like a position
            if pick:
                row[pick].append(name)
    library._destroy()
    return table
