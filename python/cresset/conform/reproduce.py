"""A small script that repeats one call on a device and on the CPU: what a backend's author debugs with."""

import keyword
import re
from pathlib import Path

import cresset

__all__ = ["script", "write"]

INLINE = 64  # tensors with more elements lie in a file beside the script

_SCRIPT = '''"""{title}

{problem}
"""

import cresset
from cresset.testing import assert_close
from cresset.testing.devices import load_backend
from cresset.testing.samples import flat

nan, inf = float("nan"), float("inf")
{loads}{data}

def strided(values, stride):
    """The same values with these strides."""
    return cresset.empty_strided(values.shape, stride, dtype=values.dtype).copy_(values)


def call(device):
    """The results, and the arguments after the call."""
{setup}    result = cresset.ops.{operator}({arguments})
    return flat([result, {tensors}])


for have, want in zip(call("{device}"), call("cpu"), strict=True):
    assert_close(have.cpu(), want, rtol={rtol}, atol={atol}, equal_nan=True)
print("the device and the CPU agree")
'''


def _is_dense(t):
    """Does every element have a place of its own, without gaps?"""
    places = sorted((s, n) for s, n in zip(t.stride(), t.shape) if n != 1)
    expected = 1
    for stride, size in places:
        if stride != expected:
            return False
        expected *= size
    return True


class _Writer:
    """Turns arguments into Python text; tensors become variables."""

    def __init__(self):
        self.setup, self.data, self.tensors = [], {}, {}

    def text(self, value):
        if isinstance(value, cresset.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)) and not isinstance(value, cresset.Size):
            inner = ", ".join(map(self.text, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        if isinstance(value, cresset.device):
            return "device"
        if isinstance(value, (cresset.dtype, cresset.layout, cresset.memory_format)):
            return "cresset." + str(value).rpartition(".")[2]
        return "None" if isinstance(value, cresset.Generator) else repr(value)

    def _tensor(self, t):
        if id(t) in self.tensors:
            return self.tensors[id(t)][0]
        name = f"x{len(self.tensors)}"
        self.tensors[id(t)] = name, t  # the tensor is kept: its id must stay taken
        values = t.detach().cpu()
        if values.numel() <= INLINE:
            text = f"cresset.tensor({values.contiguous().flatten().tolist()!r}, dtype={self.text(t.dtype)}).reshape({list(t.shape)!r})"
        else:
            self.data[name] = values.contiguous()
            text = f"data[{name!r}].clone()"
        if not values.is_contiguous() and _is_dense(values):
            text = f"strided({text}, {list(values.stride())!r})"
        self.setup.append(f"    {name} = {text}.to(device)\n")
        return name


def script(func, args, kwargs, device, *, problem="", loads=(), tolerances=(1e-5, 1e-5), data_name="data.safetensors"):
    """(text of the script, tensors for the file beside it). func is an overload, the arguments are as before the call."""
    writer = _Writer()
    parts = [writer.text(a) for a in args]
    named = {k: writer.text(v) for k, v in kwargs.items()}
    plain = {k: v for k, v in named.items() if not keyword.iskeyword(k)}
    parts += [f"{k}={v}" for k, v in plain.items()]
    parts += [f"**{{{k!r}: {v}}}" for k, v in named.items() if k not in plain]
    schema = func._schema
    namespace, name = schema.name.split("::")
    operator = f"{namespace}.{name}.{schema.overload_name or 'default'}"
    text = _SCRIPT.format(
        title=f"{operator} on {device} gives another answer than on the CPU.", problem=problem.replace("\\", "/").replace('"""', "'''"),
        loads="".join(f"load_backend({str(Path(p).resolve() if Path(p).exists() else p)!r})\n" for p in loads),
        data=f"data = cresset.load({data_name!r})\n" if writer.data else "", setup="".join(writer.setup), operator=operator,
        arguments=", ".join(parts), tensors=", ".join(name for name, _ in writer.tensors.values()), device=device, rtol=tolerances[0], atol=tolerances[1])  # fmt: skip
    return text, writer.data


def write(folder, func, args, kwargs, device, **options):
    """Writes `wrong_<operator>.py` (and its tensors when they are large) into a folder; the path of the script."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    schema = func._schema
    stem = "wrong_" + re.sub(r"\W+", "_", schema.name.partition("::")[2] + ("_" + schema.overload_name if schema.overload_name else ""))
    data_file = folder.resolve() / f"{stem}.safetensors"
    text, data = script(func, args, kwargs, device, data_name=str(data_file), **options)
    if data:
        cresset.save(data, data_file)
    path = folder / f"{stem}.py"
    path.write_text(text)
    return path
