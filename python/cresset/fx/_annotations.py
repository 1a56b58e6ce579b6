"""What print_readable says besides the code: tensors' dtypes and shapes, lines of the traced program, colours."""

import re

import cresset

_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex32": "c32", "complex64": "c64", "complex128": "c128",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
}  # fmt: skip
_CODES = {"red": "31", "green": "32", "blue": "34", "dim": "2"}


def paint(text, color, wanted=True):
    """text in a terminal's colour."""
    return f"\033[{_CODES[color]}m{text}\033[0m" if wanted else text


def dtype_abbr(dtype):
    """`f32` for float32."""
    name = str(dtype).rpartition(".")[2]
    return _SHORT.get(name, name)


def describe_tensor(node, shown):
    """`f32[2, 3]` for a node whose meta has a tensor, `Sym(2*s0)` for a size of an exported program, or None."""
    value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
    if "expression" in node.meta:
        return f"Sym({node.meta['expression']})"
    if isinstance(value, cresset.Tensor):
        shape, dtype, stride, device = tuple(value.shape), value.dtype, tuple(value.stride()), value.device
    elif type(value).__name__ == "TensorMetadata":
        shape, dtype, stride, device = tuple(value.shape), value.dtype, tuple(value.stride), None
    else:
        return None
    if isinstance(node.meta.get("sizes"), tuple):  # of an exported program: numbers, expressions, None for sizes without a rule
        shape = tuple("?" if n is None else n for n in node.meta["sizes"])
    colored = shown.get("colored")
    strides = f"[{', '.join(map(str, stride))}]" if shown.get("include_stride") else ""
    place = str(device) if shown.get("include_device") and device is not None else ""
    text = paint(dtype_abbr(dtype), "red", colored) + paint(f"[{', '.join(map(str, shape))}]", "blue", colored)
    if colored:
        return text + paint(paint(strides, "blue").removesuffix("\033[0m"), "dim") + paint(paint(place, "green").removesuffix("\033[0m"), "dim")
    return text + strides + place


def parse_stack_trace(trace):
    """(file, line, function, code) of the innermost frame of the traced program in a stack trace, or None."""
    lines = trace.strip().splitlines()
    for at in range(len(lines) - 1, -1, -1):
        found = re.match(r'^\s*File "(.+)", line (\d+), in (.+)$', lines[at])
        if found and not re.search(r"[/\\](cresset|torch)[/\\]fx[/\\]", found[1]):
            return found[1], found[2], found[3], lines[at + 1].strip() if at + 1 < len(lines) else ""
    return None


def source_comment(writer, node):
    """The comment in front of a node, when it is from another place than the one before."""
    trace = node.stack_trace or ""
    if trace == writer.last_trace:
        return ""
    writer.last_trace = trace
    parsed = parse_stack_trace(trace) if trace else None
    if parsed is None:
        text = "# No stacktrace found for following nodes" if not trace else None
    else:
        file, line, name, code = parsed
        text = f"# File: {file}:{line} in {name}, code: {code}"
    if text is None or text == getattr(writer, "last_comment", None):
        return ""
    writer.last_comment = text
    return f"\n{paint(text, 'dim', writer.shown.get('colored'))}\n"
