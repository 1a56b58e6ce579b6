"""Runs a Call in PyTorch and in Cresset and says what differs. Runs where both can be imported."""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cresset
import numpy as np
import torch
from cresset.testing import samples
from differential_calls import BITS, Call, Memory, Name, Operator, View, contiguous, count, kind_of, operators, with_outs
from differential_numbers import extremes
from side_by_side import as_numpy, difference, opened, same_class

PYTORCH, CRESSET = torch, cresset
# Values that are uninitialised or not unique (signs of vectors, orders of equal elements); random ones are known by their tag.
SHAPES_ONLY = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "_efficientzerotensor", "svd", "_linalg_svd",
    "linalg_svd", "linalg_eig", "_linalg_eigh", "linalg_eigh", "linalg_qr", "qr", "geqrf", "linalg_lstsq", "linalg_householder_product", "orgqr",
    "ormqr", "svd_lowrank", "pca_lowrank", "linalg_eigvals", "fractional_max_pool2d", "fractional_max_pool3d", "empty_quantized",
    "_linalg_eigvals", "_unsafe_view",
}  # fmt: skip


ABOUT_OUT = re.compile(r"Expected out tensor to have dtype|unsupported operation|result type .* can't be cast|Trying to resize storage|output with shape")
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


@dataclass
class Difference:
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


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

    return tuple(map_leaves(v, build) for v in call.args), {k: map_leaves(v, build) for k, v in call.kwargs.items()}


def map_leaves(value: Any, leaf: Callable[[Any], Any]) -> Any:
    return [map_leaves(v, leaf) for v in value] if isinstance(value, list) else leaf(value)


def function_of(package: Any, call: Call) -> Callable[..., Any]:
    """The operator, or for the mode `function` its public function or method."""
    if call.mode != "function":
        return overload(package, call.operator)
    name = call.operator.removeprefix("aten::").partition(".")[0]
    places = [(package._C._VariableFunctions, name), (package._C._nn, name), (package._C._linalg, name), (package._C._special, name), (package._C._fft, name)]
    for place, key in places:
        found = getattr(place, key, None)
        if found is not None:
            return found
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
    "simulated": simulated,
}  # fmt: skip


# ---- what differs


def completed(call: Call, out_names: list[str], rng: np.random.Generator) -> Call:
    """The call of an out form with out tensors that PyTorch's functional result asks for."""
    if not out_names:
        return call
    functional = functional_call(call)
    results: list[tuple[tuple[int, ...], str]] = [((2, 3), "float32")] * len(out_names)
    base, _, _ = call.operator.removeprefix("aten::").partition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bases = [base_tensor(torch, m) for m in call.memories]
            args, kwargs = arguments(torch, functional, bases)
            found = tensors(torch, getattr(torch.ops.aten, base)(*args, **kwargs))
            if len(found) == len(out_names):
                results = [(tuple(t.shape), str(t.dtype).split(".")[-1]) for t in found]
        except Exception:
            pass
    if any(count(shape) > 100_000 for shape, _ in results):
        raise NoComparison("too large")
    return with_outs(call, out_names, results, rng)


def described(error: Exception) -> str:
    text = str(error)
    if "failed in the TorchScript interpreter" in text:  # and then a traceback with the error's line behind it
        text = ([line for line in text.split("\n") if re.match(r"(\w+Error|RuntimeError|\w+Exception): ", line)] or [text])[-1]
        text = re.sub(r"^\w+Error: ", "", text)
    text = " ".join(text.split())
    return f"{type(error).__name__}: {text[:150]}"


def slack(call: Call) -> Callable[[], float]:
    """How far PyTorch's results in single precision lie from those in double precision."""
    wide = {"float32": "float64", "complex64": "complex128"} | dict.fromkeys((*BITS, "float16"), "float32") | {"complex32": "complex64"}

    def measure() -> float:
        memories = []
        for m in call.memories:
            values = torch.from_numpy(m.array.copy())
            values = values.view(getattr(torch, m.dtype)) if m.dtype in BITS else values
            to = wide.get(m.dtype, m.dtype)
            memories.append(Memory(values.to(getattr(torch, to)).numpy(), to))
        with np.errstate(all="ignore"):
            exact, rough = run(torch, replace(call, memories=memories)), run(torch, call)
        errors = []
        for a, b in zip([*exact.results, *exact.derivatives], [*rough.results, *rough.derivatives]):
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.shape == b.shape and a.numel():
                errors.append(float(np.nanmax(np.nan_to_num(np.abs(as_numpy(a) - as_numpy(b)), posinf=0.0, nan=0.0))))
        return max(errors, default=0.0)

    return measure


def aliases(package: Any, outcome: Outcome) -> list[list[int]]:
    """For every result the memories that it shares."""
    places = [m.untyped_storage().data_ptr() if m.numel() else -1 for m in outcome.memories]
    found = []
    for t in outcome.results:
        if isinstance(t, package.Tensor) and t.numel() and t.layout is package.strided:
            at = t.untyped_storage().data_ptr()
            found.append([i for i, place in enumerate(places) if place == at])
        else:
            found.append([])
    return found


def functional_call(call: Call) -> Call:
    """The call of an out form without its out tensors."""
    return replace(call, mode="plain", kwargs={k: v for k, v in call.kwargs.items() if k not in call.written})


def contradicts_itself(call: Call, ours: Outcome) -> str | None:
    """Says how PyTorch's result differs from its own one of the same numbers, when that one is ours and nothing else was written."""
    operator = operators_by_name()[call.operator]
    out = operator.data["form"] == "out"
    if ours.error is not None or call.mode in ("meta", "vmap") or (call.written and not out):
        return None
    simple = functional_call(call)
    for view in simple.views():
        simple = densified(simple, view, shared=True) or simple
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bases = [base_tensor(torch, m) for m in simple.memories]
            args, kwargs = arguments(torch, simple, bases)
            results = tensors(torch, overload(torch, operator.data["row"] if out else call.operator)(*args, **kwargs))
        except Exception:
            return None
    have = tensors(cresset, ours.results)
    outs = [call.kwargs[name] for name in call.written if isinstance(call.kwargs.get(name), View)]
    if len(results) != len(have) or len(outs) != (len(have) if out else 0):
        return None
    for want, got in zip(results, have):
        if difference(want.to(getattr(torch, str(got.dtype).split(".")[-1])), got, call.operator, True, slack(simple)):
            return None
    for want, view in zip(results, outs):
        if tuple(want.shape) == view.shape and (now := flat_bits(ours.memories[view.memory], call.memories[view.memory])) is not None:
            inside = np.zeros(now.shape, dtype=bool)
            for other in outs:
                if other.memory == view.memory and count(other.shape):
                    np.lib.stride_tricks.as_strided(inside[other.offset :], other.shape, other.strides)[...] = True
            before = np.frombuffer(call.memories[view.memory].array.tobytes(), dtype=now.dtype)
            if (now != before)[~inside].any():
                return None
    return "their out" if out else "their strides"


def flat_bits(now: Any, memory: Memory) -> np.ndarray | None:
    """The elements of a memory after the call as rows of bytes that can be compared, NaN included."""
    t = now.detach()
    t = t.view(getattr(cresset, BITS[memory.dtype])) if memory.dtype in BITS else t
    if t.numel() != len(memory.array):
        return None
    return np.frombuffer(t.numpy().tobytes(), dtype=f"V{memory.array.itemsize}")


@functools.cache
def operators_by_name() -> dict[str, Operator]:
    return {o.name: o for o in operators()}


def compare(call: Call, theirs: Outcome, ours: Outcome) -> Difference | None:
    """The first difference between two outcomes, or None."""
    found = first_difference(call, theirs, ours)
    values = found is not None and found.kind in ("value", "gradient", "tangent", "memory")
    singular = found is not None and found.kind == "raises" and re.search("singular|is zero|not positive-definite", str(ours.error))
    if (values or singular) and (extreme := extremes(call)):
        found.text = f"[{extreme}] {found.text}"
    if values and shares_an_out(call):
        found.text = f"{found.text} (an out is an input)"
    if found is not None and call.mode not in ("plain", "function"):
        found.text = f"[{call.mode}] {found.text}"
    if found is not None and found.kind in ("value", "memory", "shape") and (how := contradicts_itself(call, ours)):
        return Difference(how, f"PyTorch's result differs from its own: {found}")
    if found is not None and found.kind in ("raises", "no error", "error class"):
        return other_refusal(call, theirs, ours, found)
    if found is not None and found.kind in ("value", "gradient", "tangent", "memory") and agrees_without_ties(call):
        return Difference("ties", f"with other numbers there is none: {found}")
    return found


def agrees_without_ties(call: Call) -> bool:
    """Do both packages agree on the call when its numbers are all different? They are finite, and some are equal."""
    rng = np.random.default_rng(0)
    memories, repeated = [], False
    for m in call.memories:
        if kind_of(m.dtype) in "ib":
            memories.append(m)
            continue
        if m.dtype in (*BITS, "float16") or not np.isfinite(m.array).all():
            return False
        noise = rng.standard_normal(len(m.array)) + (1j * rng.standard_normal(len(m.array)) if kind_of(m.dtype) == "c" else 0)
        memories.append(Memory((m.array + 0.1 * noise).astype(m.array.dtype), m.dtype))
        repeated |= len(np.unique(m.array)) < len(m.array)
    if not repeated:
        return False
    changed = replace(call, memories=memories)
    try:
        theirs, ours = run(PYTORCH, changed), run(CRESSET, changed)
        return theirs.error is None and first_difference(changed, theirs, ours) is None
    except NoComparison:
        return False


def shares_an_out(call: Call) -> bool:
    """Has an out the memory of another argument?"""
    outs = {call.kwargs[name].memory for name in call.written if isinstance(call.kwargs.get(name), View)}
    return len([v for v in call.views() if v.memory in outs]) > len(outs)


def other_refusal(call: Call, theirs: Outcome, ours: Outcome, found: Difference) -> Difference:
    """Where PyTorch's own mode, or the out form, refuses something else than the plain call: "their mode", "their out", "several"."""
    if call.mode not in ("plain", "function") and not (call.written and found.kind == "no error"):
        plainly = run(PYTORCH, replace(call, mode="plain"))
        if found.kind == "no error" and plainly.error is None:
            return Difference("their mode", f"PyTorch's plain call works: {found}")
        if plainly.error is not None and ours.error is not None and same_class(plainly.error, ours.error):
            return Difference("their mode", f"PyTorch's plain call is refused as here: {found}")
    if operators_by_name()[call.operator].data["form"] == "out":
        functional = functional_outcome(call)
        if functional.error is not None and ours.error is not None and same_class(functional.error, ours.error):
            how = "their out" if found.kind == "raises" else "several"
            return Difference(how, f"PyTorch's call without out is refused as here: {found}")
        if functional.error is not None and theirs.error is not None and same_class(theirs.error, functional.error) and ABOUT_OUT.match(str(ours.error)):
            return Difference("several", f"PyTorch refuses the call without out too, and out does not fit: {found}")
        if functional.error is None and found.kind == "no error" and fitting_is_refused(call, functional):
            return Difference("their out", f"PyTorch's call without out works, with a fresh out it does not: {found}")
    if found.kind == "error class" and (mended := several_mistakes(call, ours)):
        return Difference("several", f"PyTorch refuses it with {mended} as here: {found}")
    if found.kind == "raises" and any(not count(v.shape) for v in call.views()):
        found.text = f"[empty] {found.text}"
    return found


def several_mistakes(call: Call, ours: Outcome) -> str | None:
    """The change of the call after which PyTorch raises our class of error: it has that mistake too, and another one that is named first."""
    names = [a["name"] for a in operators_by_name()[call.operator].data["arguments"]]
    zero = lambda name, value: map_leaves(value, lambda v: 0 if isinstance(v, int) and not isinstance(v, bool) else v) if name.startswith("dim") else value  # noqa: E731
    changes = {"valid dimensions": replace(call, args=[zero(n, v) for n, v in zip(names, call.args)], kwargs={n: zero(n, v) for n, v in call.kwargs.items()})}
    for dtype in ("float32", "float64", "complex64", "int64"):
        for kinds in ("fc", "fcib"):
            memories = [retyped(m, dtype) if kind_of(m.dtype) in kinds and m.dtype != dtype else m for m in call.memories]
            changes[f"{dtype} for {kinds}"] = replace(call, memories=memories)
    zeros = lambda call: replace(call, memories=[Memory(np.zeros_like(m.array), m.dtype) if kind_of(m.dtype) == "i" else m for m in call.memories])  # noqa: E731
    changes["indices of zero"] = zeros(call)
    changes |= {f"{what}, indices of zero": zeros(changed) for what, changed in [*changes.items()][:5]}
    one = lambda name, value: 1 if name == "reduction" else value  # noqa: E731
    changes["a mean"] = replace(call, args=[one(n, v) for n, v in zip(names, call.args)], kwargs={n: one(n, v) for n, v in call.kwargs.items()})
    for what, changed in changes.items():
        outcome = run(PYTORCH, replace(changed, mode="plain" if call.mode in ("grad", "grad2", "jvp", "script", "trace", "freeze", "simulated") else call.mode))
        if outcome.error is not None and same_class(outcome.error, ours.error) and same_text(str(outcome.error), str(ours.error)):
            return what
    return None


def functional_outcome(call: Call) -> Outcome:
    """What PyTorch's functional form gives for the call of an out form."""
    outcome, simple = Outcome(), functional_call(call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bases = [base_tensor(torch, m) for m in simple.memories]
            args, kwargs = arguments(torch, simple, bases)
            outcome.results = opened(overload(torch, operators_by_name()[call.operator].data["row"])(*args, **kwargs))
        except Exception as error:
            outcome.error = error
    return outcome


def fitting_is_refused(call: Call, functional: Outcome) -> bool:
    """Does PyTorch's out form refuse new tensors of the functional result's shapes and types?"""
    results = tensors(torch, functional.results)
    if len(results) != len(call.written):
        return False
    simple = functional_call(call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bases = [base_tensor(torch, m) for m in simple.memories]
            args, kwargs = arguments(torch, simple, bases)
            overload(torch, call.operator)(*args, **kwargs, **{n: torch.empty_like(t) for n, t in zip(call.written, results)})
        except Exception:
            return True
    return False


def first_difference(call: Call, theirs: Outcome, ours: Outcome) -> Difference | None:
    where = "" if ours.stage == "call" else f" in {ours.stage}"
    if ours.error is not None:
        # What PyTorch writes before the same error is no promise of ours either.
        if call.mode in ("plain", "function", "script") and (written := changed_memory(call, ours)) and not changed_memory(call, theirs):
            return Difference("written on error", f"{written}, {described(ours.error)}")
        if theirs.error is None:
            return Difference("raises", f"{described(ours.error)}{where}")
        return None if call.loose or same_class(theirs.error, ours.error) else Difference("error class", f"{described(ours.error)}{where}, want {described(theirs.error)}")
    if theirs.error is not None:
        return Difference("no error", f"want {described(theirs.error)} in {theirs.stage}")
    name = call.operator.removeprefix("aten::").partition(".")[0].rstrip("_")
    values = not (name in SHAPES_ONLY or call.random or call.mode == "meta")
    if all(r is None for r in [*theirs.results, *ours.results]):
        theirs.results, ours.results = [], []
    if len(theirs.results) != len(ours.results):
        return Difference("results", f"{len(ours.results)}, want {len(theirs.results)}")
    extra = slack(call)
    for i, (want, got) in enumerate(zip(theirs.results, ours.results)):
        if problem := difference(want, got, name, values, extra):
            kind = problem.partition(":")[0]
            return Difference("value" if kind == "scalar" else kind, f"result {i} {problem}")
    if values and call.mode not in ("vmap", "jvp", "trace", "freeze"):
        for i, (want, got) in enumerate(zip(theirs.memories, ours.memories)):
            if i in resized(call, theirs):
                continue
            if want.shape == got.shape and (problem := difference(want, got, name, True, extra)):
                return Difference("memory", f"of tensor {i} {problem}")
    if values and call.mode in ("grad", "grad2", "jvp") and (found := compare_derivatives(call, theirs, ours, name)):
        return found
    if theirs.memories and ours.memories and call.mode in ("plain", "function", "grad", "grad2") and aliases(torch, theirs) != aliases(cresset, ours):
        of = "of conjugates, " if any(v.conj for v in call.views()) else ""
        return Difference("alias", f"{of}results share {aliases(cresset, ours)}, want {aliases(torch, theirs)}")
    return None


def resized(call: Call, outcome: Outcome) -> set[int]:
    """The memories of out tensors that have another shape after the call: how their elements lie is a matter of strides."""
    if operators_by_name()[call.operator].data["form"] != "out":
        return set()
    outs = [call.kwargs[name] for name in call.written if isinstance(call.kwargs.get(name), View)]
    results = tensors(torch, outcome.results)
    return {v.memory for v, t in zip(outs, results) if tuple(t.shape) != v.shape} if len(outs) == len(results) else set()


def compare_derivatives(call: Call, theirs: Outcome, ours: Outcome, name: str) -> Difference | None:
    kind = {"grad": "gradient", "grad2": "gradient", "jvp": "tangent"}[call.mode]
    if len(theirs.derivatives) != len(ours.derivatives):
        # A second derivative that is zero may have no graph.
        longer = max(theirs.derivatives, ours.derivatives, key=len)[min(len(theirs.derivatives), len(ours.derivatives)) :]
        if call.mode == "grad2" and not any(isinstance(t, (torch.Tensor, cresset.Tensor)) and bool((t.detach() != 0).any()) for t in longer):
            return None
        return Difference(kind, f"{len(ours.derivatives)} parts, want {len(theirs.derivatives)}: other results require grad")
    extra = slack(call)
    for i, (want, got) in enumerate(zip(theirs.derivatives, ours.derivatives)):
        if isinstance(want, int):
            if want != got:
                return Difference(kind, f"{got} results require grad, want {want}")
            continue
        if want is None or got is None:
            # PyTorch's choice between no gradient and zeros is not promised.
            other = got if want is None else want
            if other is not None and bool((other.detach() != 0).any()):
                return Difference(kind, f"part {i} is {'missing' if got is None else 'there'}, want {'none' if want is None else 'one'}")
            continue
        if call.mode == "jvp" and i < len(ours.results) and got.dtype == ours.results[i].dtype and same_type(theirs.results[i], got):
            want = want.to(theirs.results[i].dtype)  # PyTorch's tangent may have another type than its result
        # "linalg": a derivative is always a longer chain of arithmetic.
        if problem := difference(want, got, name + " linalg", True, lambda: 4 * extra()):
            return Difference(kind, f"part {i} {problem}")
    return None


def same_type(want: Any, got: Any) -> bool:
    return isinstance(want, torch.Tensor) and str(want.dtype).split(".")[-1] == str(got.dtype).split(".")[-1]


def changed_memory(call: Call, outcome: Outcome) -> str | None:
    for i, (memory, now) in enumerate(zip(call.memories, outcome.memories)):
        flat = now.detach()
        if memory.dtype in BITS:
            flat = flat.view(getattr(torch if isinstance(flat, torch.Tensor) else cresset, BITS[memory.dtype]))
        if flat.numpy().tobytes() != memory.array.tobytes():
            return f"memory {i} changed"
    return None


def other_strides(call: Call, theirs: Outcome, ours: Outcome) -> str | None:
    """Strides that differ where they matter, of results without an error."""
    for i, (want, got) in enumerate(zip(theirs.results, ours.results)):
        if isinstance(want, torch.Tensor) and isinstance(got, cresset.Tensor) and want.numel() and want.layout is torch.strided:
            if any(a != b for a, b, n in zip(want.stride(), got.stride(), want.shape) if n > 1):
                return f"result {i} of {tuple(want.shape)}: {tuple(got.stride())}, want {tuple(want.stride())}"
    return None


# ---- shorter calls


def simpler(call: Call) -> list[Call]:
    """Calls that are this one with something left out."""
    found: list[Call] = []
    if call.mode in ("function", "script", "trace", "freeze", "grad", "vmap", "simulated"):
        if call.mode != "vmap":
            found.append(replace(call, mode="plain"))
    if call.mode == "grad2":
        found.append(replace(call, mode="grad"))
    for key in call.kwargs:
        if key not in call.written:
            found.append(replace(call, kwargs={k: v for k, v in call.kwargs.items() if k != key}))
    used = {v.memory for v in call.views()}
    if len(used) < len(call.memories):
        numbers = {old: new for new, old in enumerate(sorted(used))}
        renumber = lambda v: replace(v, memory=numbers[v.memory]) if isinstance(v, View) else v  # noqa: E731
        memories = [call.memories[i] for i in sorted(used)]
        return [replace(call, args=map_leaves(call.args, renumber), kwargs={k: map_leaves(v, renumber) for k, v in call.kwargs.items()}, memories=memories), *found]
    for view in call.views():
        dense = densified(call, view)
        if dense is not None:
            found.append(dense)
        memory = call.memories[view.memory]
        if memory.dtype in ("float16", "float64", *BITS) and memory.dtype != "complex32":
            found.append(with_memory(call, view.memory, retyped(memory, "float32")))
        if memory.dtype not in BITS and memory.array.size:
            rounded = np.round(memory.array) if memory.array.dtype.kind in "fc" else memory.array
            if not np.array_equal(rounded, memory.array, equal_nan=memory.array.dtype.kind in "fc"):
                found.append(with_memory(call, view.memory, Memory(rounded, memory.dtype)))
            zeros = np.zeros_like(memory.array)
            if memory.array.any():
                found.append(with_memory(call, view.memory, Memory(zeros, memory.dtype)))
    return found


def with_memory(call: Call, at: int, memory: Memory) -> Call:
    return replace(call, memories=[*call.memories[:at], memory, *call.memories[at + 1 :]])


def retyped(memory: Memory, dtype: str) -> Memory:
    t = torch.from_numpy(memory.array.copy())
    t = t.view(getattr(torch, memory.dtype)) if memory.dtype in BITS else t
    return Memory(t.to(getattr(torch, dtype)).numpy(), dtype)


def densified(call: Call, view: View, shared: bool = False) -> Call | None:
    """The call with one tensor contiguous and without margins; `shared`: also where another one shares its memory."""
    if view.batch is not None or (not shared and sum(v.memory == view.memory for v in call.views()) > 1):
        return None
    strides = contiguous(view.shape)
    memory = call.memories[view.memory]
    if view.strides == strides and len(memory.array) == count(view.shape) and not view.conj:
        return None
    items = np.lib.stride_tricks.as_strided(memory.array[view.offset :], view.shape, [s * memory.array.itemsize for s in view.strides])
    values = np.ascontiguousarray(items).reshape(-1).copy()
    if view.conj:
        values = values.conj()
    if shared:
        call, at = replace(call, memories=[*call.memories, Memory(values, memory.dtype)]), len(call.memories)
    else:
        call, at = with_memory(call, view.memory, Memory(values, memory.dtype)), view.memory
    dense = View(at, view.shape, strides, 0)
    swap = lambda v: dense if v is view else v  # noqa: E731
    return replace(call, args=map_leaves(call.args, swap),
                   kwargs={k: map_leaves(v, swap) for k, v in call.kwargs.items()})


def checked(call: Call) -> Difference | None:
    """Runs a call in both packages and compares."""
    theirs = run(PYTORCH, call)
    ours = run(CRESSET, call)
    return compare(call, theirs, ours)


def shortened(call: Call, found: Difference, attempts: int = 60) -> tuple[Call, Difference]:
    """A simpler call with a difference of the same kind."""
    while attempts > 0:
        for candidate in simpler(call):
            attempts -= 1
            try:
                other = checked(candidate)
            except Exception:
                continue
            if other is not None and other.kind == found.kind and same_text(other.text, found.text):
                call, found = candidate, other
                break
            if attempts <= 0:
                return call, found
        else:
            return call, found
    return call, found


def same_text(a: str, b: str) -> bool:
    strip = lambda s: re.sub(r"[\d.e+-]+|'\w+'|\b(Float|Double|Half|BFloat16|Long|Int|Bool|Byte|Char|Short|Complex\w+)\b", "", s)[:60]  # noqa: E731
    return strip(a) == strip(b)

