"""The modes: each makes a Call in one of the packages and says what came of it, as an Outcome."""

from __future__ import annotations

import contextlib
import functools
import importlib
import linecache
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cresset
import numpy as np
import torch
from cresset.testing import samples
from differential_calls import BITS, Call, Memory, Name, Operator, Spelled, View, contiguous, count, kind_of, map_leaves, operators
from side_by_side import opened

PYTORCH, CRESSET = torch, cresset
# Methods of PyTorch's tensors that are something else than the operator of their name.
OTHER_METHODS = {"index"}


class NoComparison(Exception):
    """The call means nothing in one of the packages."""


@dataclass
class Outcome:
    """What a call gave: results and then derivatives, or an error and where it came from."""

    results: list[Any] = field(default_factory=list)
    derivatives: list[Any] = field(default_factory=list)
    memories: list[Any] = field(default_factory=list)
    error: Exception | None = None
    stage: str = ""  # "call", "first derivative" …
    stopped: bool = False


@functools.cache
def operators_by_name() -> dict[str, Operator]:
    return {o.name: o for o in operators()}


# ---- arguments


def base_tensor(package: Any, memory: Memory) -> Any:
    array = memory.array.copy()
    made = package.from_numpy(array).clone()  # NumPy's memory could not be resized
    return made.view(getattr(package, memory.dtype)) if memory.dtype in BITS else made


def view_of(package: Any, base: Any, view: View) -> Any:
    if view.strides == contiguous(view.shape) and view.offset == 0 and base.numel() == count(view.shape):
        t = base.view(view.shape)
    else:
        t = base.as_strided(view.shape, view.strides, view.offset)
    return t.conj() if view.conj else t


def named(package: Any, value: Name) -> Any:
    return package.device(value.value) if value.kind == "device" else getattr(package, value.value)


def overload(package: Any, name: str) -> Any:
    name, _, which = name.removeprefix("aten::").partition(".")
    return getattr(getattr(package.ops.aten, name), which or "default")


def arguments(package: Any, call: Call, bases: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    def build(value: Any) -> Any:
        if isinstance(value, View):
            return view_of(package, bases[value.memory], value)
        return named(package, value) if isinstance(value, Name) else value

    made = lambda value: in_form(package, map_leaves(value, build))  # noqa: E731
    return tuple(made(v) for v in call.args), {k: made(v) for k, v in call.kwargs.items()}


def in_form(package: Any, value: Any) -> Any:
    """A value in the form of Python's that a Spelled asks for."""
    if isinstance(value, list):
        return [in_form(package, v) for v in value]
    if not isinstance(value, Spelled):
        return value
    plain = in_form(package, value.value)
    if value.form == "tuple":
        return tuple(plain)
    if value.form == "size":
        return package.Size(plain) if all(type(v) is int for v in plain) else tuple(plain)
    if value.form == "array":
        return plain.resolve_conj().numpy() if isinstance(plain, package.Tensor) else np.array(plain) if not any(isinstance(v, package.Tensor) for v in plain) else plain
    if value.form == "list":
        return plain.tolist()
    if value.form == "number":
        return plain.reshape(-1)[0].item()
    if value.form == "tensor":
        return package.tensor(plain)
    if value.form == "numpy":
        return (np.bool_ if type(plain) is bool else np.int64 if type(plain) is int else np.float64)(plain)
    return {"int": int, "float": float}[value.form](plain)


def function_of(package: Any, call: Call) -> Callable[..., Any]:
    """The operator, or for the modes `function` and `spelled` its public function or method."""
    if call.mode not in ("function", "spelled"):
        return overload(package, call.operator)
    name = call.operator.removeprefix("aten::").partition(".")[0]
    for place in ("_VariableFunctions", "_nn", "_linalg", "_special", "_fft"):
        if not name.startswith("__") and hasattr(getattr(PYTORCH._C, place), name):  # the same one in both
            return getattr(getattr(package._C, place), name)
    if name in OTHER_METHODS or not callable(getattr(PYTORCH.Tensor, name, None)) or not call.args or not isinstance(call.args[0], View):
        raise NoComparison("no public function or method")
    found = getattr(package.Tensor, name, None)
    if found is None:
        raise NoComparison("no public name")
    return found


# ---- modes


def weights(package: Any, t: Any) -> Any:
    """A fixed cotangent or tangent for a tensor."""
    made = package.cos(package.arange(t.numel(), dtype=package.float64) * 0.7 + 0.3).reshape(tuple(t.shape))
    return made.to(t.dtype)


def tensors(package: Any, value: Any) -> list[Any]:
    return [t for t in opened(value) if isinstance(t, package.Tensor)]


def differentiable(package: Any, value: Any) -> list[Any]:
    return [t for t in tensors(package, value) if t.requires_grad]


def run(package: Any, call: Call) -> Outcome:
    """Runs the call in its mode."""
    outcome = Outcome(stage="call")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            MODES[call.mode](package, call, outcome)
        except NoComparison:
            raise
        except Exception as error:
            outcome.error = error
    return outcome


def plain(package: Any, call: Call, outcome: Outcome) -> None:
    outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
    args, kwargs = arguments(package, call, bases)
    outcome.results = opened(function_of(package, call)(*args, **kwargs))


def spelled(package: Any, call: Call, outcome: Outcome) -> None:
    """The public function, with names and other forms of values: `self` is its `input`."""
    function = function_of(package, call)
    if "self" in call.kwargs:
        call = replace(call, kwargs={"input" if k == "self" else k: v for k, v in call.kwargs.items()})
    outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
    try:
        args, kwargs = arguments(package, call, bases)
    except (ValueError, IndexError, TypeError, OverflowError, RuntimeError) as error:
        raise NoComparison("no such form of the value") from error
    outcome.results = opened(function(*args, **kwargs))


def leaves(package: Any, call: Call, outcome: Outcome) -> None:
    """On parameters: what may be changed in place or take results?"""
    outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
    for t in bases:
        t.requires_grad_(t.is_floating_point() or t.is_complex())
    args, kwargs = arguments(package, call, bases)
    outcome.results = opened(function_of(package, call)(*args, **kwargs))
    outcome.results += [t.requires_grad for t in tensors(package, outcome.results)]


def subclass(package: Any, call: Call, outcome: Outcome) -> None:
    """On tensors of a subclass; the types of the results are results, too."""
    kind = subclass_of(package)
    outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
    args, kwargs = arguments(package, call, bases)
    wrap = lambda v: v.as_subclass(kind) if isinstance(v, package.Tensor) else v  # noqa: E731
    args, kwargs = [map_leaves(v, wrap) for v in args], {k: map_leaves(v, wrap) for k, v in kwargs.items()}
    outcome.results = opened(function_of(package, call)(*args, **kwargs))
    outcome.results += [type(t).__name__ for t in outcome.results]


@functools.cache
def subclass_of(package: Any) -> type:
    return type("Sub", (package.Tensor,), {})


def autocast(package: Any, call: Call, outcome: Outcome) -> None:
    with package.autocast("cpu", dtype=package.bfloat16):
        plain(package, call, outcome)


def with_default(dtype: str) -> Callable[[Any, Call, Outcome], None]:
    """The call with another default type."""

    def run(package: Any, call: Call, outcome: Outcome) -> None:
        before = package.get_default_dtype()
        package.set_default_dtype(getattr(package, dtype))
        try:
            plain(package, call, outcome)
        finally:
            package.set_default_dtype(before)

    return run


def meta(package: Any, call: Call, outcome: Outcome) -> None:
    bases = [base_tensor(package, m).to("meta") for m in call.memories]
    args, kwargs = arguments(package, call, bases)
    if "device" in kwargs or not call.views():
        kwargs["device"] = package.device("meta")
    outcome.results = opened(function_of(package, call)(*args, **kwargs))


def gradients(package: Any, call: Call, outcome: Outcome, order: int) -> None:
    leaves = []
    bases = []
    for memory in call.memories:
        t = base_tensor(package, memory)
        if kind_of(memory.dtype) in "fc":
            t.requires_grad_()
            leaves.append(t)
            t = t.clone()
        bases.append(t)
    outcome.memories = bases
    if not leaves:
        raise NoComparison("nothing to differentiate")
    args, kwargs = arguments(package, call, bases)
    outcome.results = opened(function_of(package, call)(*args, **kwargs))
    outcome.stage = "first derivative"
    outputs = differentiable(package, outcome.results)
    outcome.derivatives = [len(outputs)]
    if not outputs:
        return
    found = package.autograd.grad(outputs, leaves, [weights(package, t) for t in outputs], allow_unused=True, create_graph=order > 1)
    outcome.derivatives += list(found)
    if order > 1:
        outcome.stage = "second derivative"
        outputs = differentiable(package, list(found))
        outcome.derivatives.append(len(outputs))
        if outputs:
            outcome.derivatives += list(package.autograd.grad(outputs, leaves, [weights(package, t) for t in outputs], allow_unused=True))


def jvp(package: Any, call: Call, outcome: Outcome) -> None:
    bases = [base_tensor(package, m) for m in call.memories]
    which = [i for i, m in enumerate(call.memories) if kind_of(m.dtype) in "fc"]
    if not which or call.written:
        raise NoComparison("nothing to differentiate")
    function = function_of(package, call)

    def f(*primals: Any) -> Any:
        mixed = list(bases)
        for i, t in zip(which, primals):
            mixed[i] = t
        args, kwargs = arguments(package, call, mixed)
        return tuple(tensors(package, function(*args, **kwargs)))

    primals = tuple(bases[i] for i in which)
    values, changes = package.func.jvp(f, primals, tuple(weights(package, t) for t in primals))
    outcome.results, outcome.derivatives = list(values), list(changes)


def of_floats(package: Any, call: Call) -> tuple[Callable[..., Any], list[int]]:
    """The call as a function of all its tensors that gives its floating results, and which of the tensors are floating."""
    if call.random or call.written:
        raise NoComparison("nothing to differentiate")
    function = traced_function(package, call)
    which = [i for i, v in enumerate(call.views()) if kind_of(call.memories[v.memory].dtype) in "fc"]
    if not which:
        raise NoComparison("nothing to differentiate")
    return lambda *ts: tuple(t for t in function(*ts) if t.is_floating_point() or t.is_complex()), which


def pulled(package: Any, f: Callable[..., Any], which: list[int], ts: Any) -> Callable[..., Any]:
    """The gradients of f as a function of its floating tensors, with fixed cotangents."""

    def gradients(*floats: Any) -> Any:
        def of(*floats: Any) -> Any:
            mixed = list(ts)
            for i, t in zip(which, floats):
                mixed[i] = t
            found = f(*mixed)
            if not found:
                raise NoComparison("nothing to differentiate")
            return found

        values, pull = package.func.vjp(of, *floats)
        return pull(tuple(weights(package, t) for t in values))

    return gradients


def examples(package: Any, call: Call, outcome: Outcome) -> None:
    """Gradients of each example: vmap of vjp."""
    f, which = of_floats(package, call)
    bases = [base_tensor(package, m) for m in call.memories]
    views = call.views()
    given = [view_of(package, bases[v.memory], v) for v in views]
    one = lambda *ts: pulled(package, f, which, ts)(*[ts[i] for i in which])  # noqa: E731
    outcome.results = list(package.func.vmap(one, in_dims=tuple(v.batch for v in views))(*given))


def pull(package: Any, call: Call, outcome: Outcome) -> None:
    """What `examples` does for each example."""
    f, which = of_floats(package, call)
    bases = [base_tensor(package, m) for m in call.memories]
    ts = [view_of(package, bases[v.memory], v) for v in call.views()]
    outcome.results = list(pulled(package, f, which, ts)(*[ts[i] for i in which]))


def example(call: Call, number: int) -> Call:
    """The call for one example of a batch."""

    def leaf(v: Any) -> Any:
        if not isinstance(v, View) or v.batch is None:
            return v
        at = v.batch
        return View(v.memory, v.shape[:at] + v.shape[at + 1 :], v.strides[:at] + v.strides[at + 1 :], v.offset + number * v.strides[at], v.conj)

    mode = "plain" if call.mode == "vmap" else "pull"
    return replace(call, mode=mode, args=[map_leaves(v, leaf) for v in call.args], kwargs={k: map_leaves(v, leaf) for k, v in call.kwargs.items()})


def hvp(package: Any, call: Call, outcome: Outcome) -> None:
    """Forward over reverse: the tangent of the gradient."""
    f, which = of_floats(package, call)
    bases = [base_tensor(package, m) for m in call.memories]
    ts = [view_of(package, bases[v.memory], v) for v in call.views()]
    floats = tuple(ts[i] for i in which)
    values, changes = package.func.jvp(pulled(package, f, which, ts), floats, tuple(weights(package, t) for t in floats))
    outcome.results, outcome.derivatives = list(values), list(changes)


def vmap(package: Any, call: Call, outcome: Outcome) -> None:
    if call.random:
        raise NoComparison("random")
    bases = [base_tensor(package, m) for m in call.memories]
    views = call.views()
    function = function_of(package, call)
    given = [view_of(package, bases[v.memory], v) for v in views]
    if call.written:
        outcome.memories = bases

    def f(*ts: Any) -> Any:
        items = iter(ts)
        pick = lambda v: next(items) if isinstance(v, View) else named(package, v) if isinstance(v, Name) else v  # noqa: E731
        args, kwargs = [map_leaves(v, pick) for v in call.args], {k: map_leaves(v, pick) for k, v in call.kwargs.items()}
        return tuple(tensors(package, function(*args, **kwargs)))

    outcome.results = list(package.func.vmap(f, in_dims=tuple(v.batch for v in views))(*given))


def source_of(call: Call) -> str:
    """The call as a function of a script."""
    number = iter(range(1000))
    parameters: list[str] = []

    def text(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(text(v) for v in value) + "]"
        if isinstance(value, View):
            parameters.append(f"x{next(number)}")
            return parameters[-1]
        if isinstance(value, Name):
            return f"torch.{value.value}" if value.kind != "device" else f"torch.device({value.value!r})"
        if isinstance(value, float) and not np.isfinite(value):
            return f"float('{value}')"
        return repr(value)

    shown = [text(v) for v in call.args] + [f"{k}={text(v)}" for k, v in call.kwargs.items()]
    name = call.operator.removeprefix("aten::").partition(".")[0]
    return f"def f({', '.join(f'{p}: Tensor' for p in parameters)}):\n    return torch.ops.aten.{name}({', '.join(shown)})\n"


def script(package: Any, call: Call, outcome: Outcome) -> None:
    if call.random or any(isinstance(v, complex) for v in call.leaves()):
        raise NoComparison("no literal")
    outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
    views = [view_of(package, bases[v.memory], v) for v in call.views()]
    outcome.stage = "compilation"
    # A text sees the names of who compiles it: here `torch` is the package.
    space = {"torch": package, "source": source_of(call)}
    f = eval("torch.jit.CompilationUnit(source)", space).f
    outcome.stage = "call"
    outcome.results = opened(f(*views))


def traced_function(package: Any, call: Call) -> Callable[..., Any]:
    function = function_of(package, call)

    def f(*ts: Any) -> Any:
        items = iter(ts)
        pick = lambda v: next(items) if isinstance(v, View) else named(package, v) if isinstance(v, Name) else v  # noqa: E731
        args, kwargs = [map_leaves(v, pick) for v in call.args], {k: map_leaves(v, pick) for k, v in call.kwargs.items()}
        return tuple(tensors(package, function(*args, **kwargs)))

    return f


def check_traceable(package: Any, call: Call) -> None:
    if call.random or call.written or not call.views():
        raise NoComparison("nothing to trace")


def trace(package: Any, call: Call, outcome: Outcome) -> None:
    check_traceable(package, call)
    bases = [base_tensor(package, m) for m in call.memories]
    views = tuple(view_of(package, bases[v.memory], v) for v in call.views())
    f = package.jit.trace(traced_function(package, call), views, check_trace=False)
    outcome.results = opened(f(*views))


def freeze(package: Any, call: Call, outcome: Outcome) -> None:
    check_traceable(package, call)
    bases = [base_tensor(package, m) for m in call.memories]
    views = tuple(view_of(package, bases[v.memory], v) for v in call.views())
    function = traced_function(package, call)

    class Wrapped(package.nn.Module):
        def forward(self, *ts: Any) -> Any:
            return function(*ts)

    module = package.jit.freeze(package.jit.trace(Wrapped().eval(), views, check_trace=False))
    outcome.results = opened(module(*views))


def fx(package: Any, call: Call, outcome: Outcome) -> None:
    """PyTorch's plain call, and ours as a graph that make_fx records and that runs on new tensors."""
    (plain if package is PYTORCH or call.random else recorded)(package, call, outcome)
    outcome.results = tensors(package, outcome.results)  # a graph gives no others


def recorded(package: Any, call: Call, outcome: Outcome) -> None:
    make_fx = importlib.import_module(f"{package.__name__}.fx.experimental.proxy_tensor").make_fx
    made = lambda bases: [view_of(package, bases[v.memory], v) for v in call.views()]  # noqa: E731
    graph = make_fx(traced_function(package, call))(*made([base_tensor(package, m) for m in call.memories]))
    outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
    outcome.results = opened(graph(*made(bases)))


def compiled(package: Any, call: Call, outcome: Outcome) -> None:
    """PyTorch's plain call, and ours in a function that is compiled, called twice."""
    if package is PYTORCH or call.random or any(isinstance(v, complex) for v in call.leaves()):
        return plain(package, call, outcome)
    text = source_of(call).replace(": Tensor", "")
    linecache.cache["<call>"] = (len(text), None, text.splitlines(keepends=True), "<call>")
    space = {"torch": package}
    exec(compile(text, "<call>", "exec"), space)
    f = package.compile(space["f"])
    for _ in range(2):
        outcome.memories = bases = [base_tensor(package, m) for m in call.memories]
        outcome.results = opened(f(*[view_of(package, bases[v.memory], v) for v in call.views()]))


def simulated(package: Any, call: Call, outcome: Outcome) -> None:
    """PyTorch on the CPU, Cresset on the device in software."""
    if package is PYTORCH or call.random:
        return plain(package, call, outcome)
    names = [a["name"] for a in operators_by_name()[call.operator].data["arguments"]]
    base = call.operator.removeprefix("aten::").partition(".")[0]
    host = {n for n in names if n in samples.HOST_ARGUMENTS or f"{base}.{n}" in samples.HOST_ARGUMENTS}
    bases = [base_tensor(package, m) for m in call.memories]
    there = [t.to("simulated") for t in bases]

    def place(name: str, value: Any) -> Any:
        def build(v: Any) -> Any:
            if isinstance(v, View):
                return view_of(package, (bases if name in host else there)[v.memory], v)
            return named(package, Name("device", "simulated") if v.kind == "device" else v) if isinstance(v, Name) else v

        return map_leaves(value, build)

    args = [place(n, v) for n, v in zip(names, call.args)]
    kwargs = {k: place(k, v) for k, v in call.kwargs.items()}
    try:
        results = opened(function_of(package, call)(*args, **kwargs))
        outcome.results = [t.cpu() if isinstance(t, package.Tensor) else t for t in results]
        outcome.memories = [t.cpu() for t in there]
    finally:
        with contextlib.suppress(RuntimeError):  # what a kernel raised late belongs to this call
            package.accelerator.synchronize(package.device("simulated"))


MODES: dict[str, Callable[[Any, Call, Outcome], None]] = {
    "plain": plain, "function": plain, "meta": meta, "grad": lambda p, c, o: gradients(p, c, o, 1),
    "grad2": lambda p, c, o: gradients(p, c, o, 2), "jvp": jvp, "vmap": vmap, "script": script, "trace": trace, "freeze": freeze,
    "simulated": simulated, "spelled": spelled, "leaves": leaves, "subclass": subclass, "autocast": autocast, "double": with_default("float64"),
    "half": with_default("bfloat16"), "examples": examples, "hvp": hvp, "fx": fx, "compile": compiled,
    "recorded": recorded, "pull": pull,  # what other modes ask
}  # fmt: skip
