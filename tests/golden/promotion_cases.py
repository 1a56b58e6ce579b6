"""Operands of type promotion: tensors of every dtype with one dimension and with none, and Python numbers."""

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
STORED = ["complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1j}


def operands(torch):
    """{name: operand}: int8[1] and int8[] are tensors, plain names are Python numbers."""
    found = {f"{name}[1]": torch.empty(1, dtype=getattr(torch, name)) for name in DTYPES + STORED}
    found |= {f"{name}[]": torch.empty((), dtype=getattr(torch, name)) for name in DTYPES + STORED}
    return found | NUMBERS


def result(torch, a, b):
    try:
        return str(torch.result_type(a, b)).split(".")[-1]
    except RuntimeError as error:
        return str(error).partition(",")[0]


def table(torch):
    """{left operand: {result dtype, or words of the refusal: [right operands]}} of result_type, in the order of the operands."""
    every = operands(torch)
    rows = {}
    for left, a in every.items():
        row = rows[left] = {}
        for right, b in every.items():
            row.setdefault(result(torch, a, b), []).append(right)
    return rows
