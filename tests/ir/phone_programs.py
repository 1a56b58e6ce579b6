"""Models for phones, run with either package: `python phone_programs.py PACKAGE write|record|check FOLDER`.

`write` saves each model with bytecode and, beside it, what it computes; `check` runs such files with the package's `jit.mobile`.
"""

import importlib
import pickle
import sys
import warnings
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

torch = importlib.import_module(sys.argv[1])


class Pair(NamedTuple):
    a: torch.Tensor
    b: int


class Mixed(torch.nn.Module):
    """Tuples, optional values, named tuples, dictionaries, branches, loops, attributes that change, arguments with defaults."""

    def __init__(self):
        super().__init__()
        self.lin, self.t, self.k = torch.nn.Linear(2, 3), torch.ones(3), 3

    def forward(self, x, y: Tuple[int, torch.Tensor], z: Optional[int] = None):
        a, b = y
        s = "{} {}".format(a, 2)
        if z is not None:
            a = a + z
        r = Pair(x, a)
        v, w = torch.chunk(x, 2)
        d = {"a": x}
        self.k = 5
        if x.dim() == 7:
            raise ValueError("bad")
        t = 0.0
        for i in range(a):
            t += 1.0
        kind = torch.ones(2, dtype=torch.int)
        return r.a, s, self.lin(x), d["a"], x.shape[0], not x.is_cuda, kind, x.device, t, v, w, b, self.k, self.t


class Breaks(torch.nn.Module):
    def forward(self, x: List[int], y: Optional[int], n: int):
        i = 0
        while i < n:
            i += 1
            if i == 3:
                continue
            x.append(i)
        if y is not None:
            return x, y
        return x, i


class Numbers(torch.nn.Module):
    def forward(self, x, n: int):
        halves = torch.div(x, 2, rounding_mode="trunc")
        return halves, torch.zeros([2, n]), torch.sum(x, [0], True), x.to(torch.float64), x[0, 1:2], 1 + 2j, 1e300, 1099511627776


class Nested(torch.nn.Module):
    def forward(self, x, n: int):
        acc: List[Dict[str, torch.Tensor]] = []
        for i in range(n):
            for j in range(i):
                if j % 2 == 0:
                    if i > 2:
                        x = x + j
                    else:
                        x = x * 2
                        break
                acc.append({str(j): x})
        out: Dict[int, List[Tuple[int, str]]] = {}
        for k, v in enumerate(["a", "b"]):
            out[k] = [(k, v)]
        return x, acc, out, [a for a in range(n)], "%d-%s" % (n, "q"), (1, (2.0, None))


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.LSTM(2, 3, 2, bidirectional=True)
        self.c = torch.nn.Sequential(torch.nn.Conv1d(2, 2, 1), torch.nn.BatchNorm1d(2), torch.nn.ReLU(), torch.nn.Dropout())

    def forward(self, x):
        o, (h, c) = self.l(x)
        return o, h, c, self.c(x.transpose(1, 2))


class Traced(torch.nn.Module):
    def forward(self, x):
        return x * torch.tensor([1.0, 2.0]) + 1


@torch.jit.interface
class Face(torch.nn.Module):
    def two(self, x: torch.Tensor) -> torch.Tensor:
        pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Behind(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.full((2,), 3.0)

    def two(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(x) + self.w


class Asks(torch.nn.Module):
    sub: Face

    def __init__(self):
        super().__init__()
        self.sub = Behind()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sub.forward(x) + self.sub.two(x)


def _filled(module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(float(p.numel())).reshape(p.shape) - i) / 16)
    return module


def _quantized():
    return torch.ao.quantization.quantize_dynamic(_filled(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())), {torch.nn.Linear})


def models():
    """{name: (script, its calls)}."""
    script, trace = torch.jit.script, torch.jit.trace
    e, steps = torch.ones(2, 2), torch.arange(8.0).reshape(4, 1, 2) / 8
    layers = _filled(Layers().eval())
    found = {
        "mixed": (lambda: script(_filled(Mixed())), [(e, (2, torch.zeros(1))), (e, (2, torch.zeros(1)), 3)]),
        "breaks": (lambda: script(Breaks()), [([7], 3, 4), ([7], None, 4)]),
        "numbers": (lambda: script(Numbers()), [(torch.arange(6.0).reshape(2, 3), 2)]),
        "nested": (lambda: script(Nested()), [(torch.ones(1), 5)]),
        "layers": (lambda: script(layers), [(steps,)]),
        "frozen": (lambda: torch.jit.freeze(script(layers)), [(steps,)]),
        "recorded": (lambda: trace(layers, steps), [(steps,)]),
        "traced": (lambda: trace(Traced(), torch.ones(2)), [(torch.full((2,), 3.0),)]),
        "quantized": (lambda: script(_quantized()), [(torch.ones(2, 4),)]),
    }
    if torch.__name__ == "cresset":  # PyTorch itself refuses to write these without a switch
        found["asks"] = (lambda: script(Asks()), [(torch.ones(2),)])
    return found


def plain(value):
    """Results that either package reads."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype).rpartition(".")[2], tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else tuple(map(plain, value))
    return str(value) if isinstance(value, torch.device) else value


def given(call):
    return [list(a) if isinstance(a, list) else a for a in call]


def main():
    warnings.simplefilter("ignore")
    todo, folder = sys.argv[2], Path(sys.argv[3])
    if todo == "names":
        print(*models())
    elif todo == "write":
        for name, (make, calls) in models().items():
            made = make()
            made._save_for_lite_interpreter(str(folder / f"{name}.ptl"))
            with (folder / f"{name}.pkl").open("wb") as file:
                pickle.dump([(plain(given(call)), plain(made(*given(call)))) for call in calls], file)
    else:
        load = importlib.import_module(f"{torch.__name__}.jit.mobile")._load_for_lite_interpreter
        for path in sorted(folder.glob("*.ptl")):
            loaded = load(str(path))
            calls = pickle.loads(path.with_suffix(".pkl").read_bytes())
            for arguments, wanted in calls:
                got = plain(loaded(*map(taken, arguments)))
                print(path.stem, "same" if close(got, wanted) else f"{got} instead of {wanted}")


def taken(value):
    """An argument again, of what `plain` made of it."""
    if isinstance(value, tuple) and value and value[0] == "tensor":
        return torch.tensor(value[3], dtype=getattr(torch, value[1])).reshape(value[2])
    return type(value)(map(taken, value)) if isinstance(value, (list, tuple)) else value


def close(got, wanted):
    """Equal, but for the last bits of floating-point numbers."""
    if isinstance(wanted, float):
        return abs(got - wanted) <= 1e-6 * max(1.0, abs(wanted))
    if isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(map(close, got, wanted))
    if isinstance(wanted, dict):
        return list(got) == list(wanted) and all(close(got[key], wanted[key]) for key in wanted)
    return got == wanted


if __name__ == "__main__":
    main()
