"""A Call as text: in one line, and as a program that makes it."""

from __future__ import annotations

from typing import Any

from differential_calls import BITS, Call, Name, Spelled, View, contiguous, kind_of


def shown(call: Call) -> str:
    """The call in one line."""

    def leaf(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(leaf(v) for v in value) + "]"
        if isinstance(value, Spelled):
            return f"{value.form}({leaf(value.value)})"
        if isinstance(value, View):
            memory = call.memories[value.memory]
            layout = "" if value.strides == contiguous(value.shape) else f" strides {list(value.strides)}"
            return f"{memory.dtype}{list(value.shape)}{layout}{' conj' if value.conj else ''}{f' batch {value.batch}' if value.batch is not None else ''}"
        return value.value if isinstance(value, Name) else repr(value)

    parts = [leaf(v) for v in call.args] + [f"{k}={leaf(v)}" for k, v in call.kwargs.items()]
    return f"{call.mode} {call.operator}({', '.join(parts)})"


def reproduction(call: Call) -> str:
    """A program that makes the call with `import torch` or `import cresset as torch`."""
    lines = ["import torch  # or: import cresset as torch", "from numpy import array, inf, nan  # noqa: F401", ""]
    for i, memory in enumerate(call.memories):
        if memory.dtype in BITS:
            lines.append(f"m{i} = torch.tensor({memory.array.tolist()}, dtype=torch.{BITS[memory.dtype]}).view(torch.{memory.dtype})")
        else:
            lines.append(f"m{i} = torch.tensor({memory.array.tolist()}, dtype=torch.{memory.dtype})")
        if call.mode in ("grad", "grad2") and kind_of(memory.dtype) in "fc":
            lines.append(f"leaf{i} = m{i}.requires_grad_()\nm{i} = leaf{i}.clone()")

    def leaf(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(leaf(v) for v in value) + "]"
        if isinstance(value, Spelled):
            return f"{value.form}({leaf(value.value)})"
        if isinstance(value, View):
            text = f"m{value.memory}.as_strided({value.shape}, {value.strides}, {value.offset})"
            return text + (".conj()" if value.conj else "")
        if isinstance(value, Name):
            return f"torch.device({value.value!r})" if value.kind == "device" else f"torch.{value.value}"
        return repr(value)

    parts = [leaf(v) for v in call.args] + [f"{k}={leaf(v)}" for k, v in call.kwargs.items()]
    name, _, which = call.operator.removeprefix("aten::").partition(".")
    lines.append(f"result = torch.ops.aten.{name}.{which or 'default'}({', '.join(parts)})  # mode: {call.mode}")
    lines.append("print(result)")
    lines += [f"print(m{i})" for i in range(len(call.memories)) if call.written]
    return "\n".join(lines)
