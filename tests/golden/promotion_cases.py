"""Operands of type promotion: tensors of every dtype with one dimension and with none, and Python numbers."""

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1j}


def operands(torch):
    """{name: operand}: int8[1] and int8[] are tensors, plain names are Python numbers."""
    found = {f"{name}[1]": torch.empty(1, dtype=getattr(torch, name)) for name in DTYPES}
    found |= {f"{name}[]": torch.empty((), dtype=getattr(torch, name)) for name in DTYPES}
    return found | NUMBERS


def table(torch):
    """{left operand: {result dtype: [right operands]}} of result_type, in the order of the operands."""
    every = operands(torch)
    rows = {}
    for left, a in every.items():
        row = rows[left] = {}
        for right, b in every.items():
            row.setdefault(str(torch.result_type(a, b)).split(".")[-1], []).append(right)
    return rows
