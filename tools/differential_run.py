"""Runs a Call in PyTorch and in Cresset and says what differs. Runs where both can be imported."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cresset
import numpy as np
import torch
from differential_calls import BITS, Call, Memory, View, contiguous, count, kind_of, map_leaves, with_outs
from differential_modes import CRESSET, PYTORCH, NoComparison, Outcome, arguments, base_tensor, example, operators_by_name, overload, run, tensors
from differential_numbers import extremes
from side_by_side import as_numpy, difference, opened, same_class

# Values that are uninitialised or not unique (signs of vectors, orders of equal elements); random ones are known by their tag.
SHAPES_ONLY = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "_efficientzerotensor", "svd", "_linalg_svd",
    "linalg_svd", "linalg_eig", "_linalg_eigh", "linalg_eigh", "linalg_qr", "qr", "geqrf", "linalg_lstsq", "linalg_householder_product", "orgqr",
    "ormqr", "svd_lowrank", "pca_lowrank", "linalg_eigvals", "fractional_max_pool2d", "fractional_max_pool3d", "empty_quantized",
    "_linalg_eigvals", "_unsafe_view",
}  # fmt: skip


# Modes in which what is refused is a matter of the mode itself, not of the plain call.
OWN_WAYS = ("plain", "function", "spelled", "leaves", "subclass", "autocast", "double", "half")
ABOUT_OUT = re.compile(r"Expected out tensor to have dtype|unsupported operation|result type .* can't be cast|Trying to resize storage|output with shape")


@dataclass
class Difference:
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


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
    if found is not None and found.kind in ("value", "shape", "dtype", "results") and call.mode in ("vmap", "examples") and is_that_of_single_calls(call, ours):
        return Difference("their mode", f"PyTorch's calls for single examples give what is given here: {found}")
    if found is not None and found.kind in ("shape", "dtype") and call.mode == "meta" and is_that_of_the_cpu(call, ours):
        return Difference("their mode", f"PyTorch's plain call gives what is given here: {found}")
    if found is not None and found.kind in ("value", "memory", "shape") and (how := contradicts_itself(call, ours)):
        return Difference(how, f"PyTorch's result differs from its own: {found}")
    if found is not None and found.kind in ("raises", "no error", "error class"):
        return other_refusal(call, theirs, ours, found)
    if found is not None and found.kind in ("value", "gradient", "tangent", "memory") and agrees_without_ties(call):
        return Difference("ties", f"with other numbers there is none: {found}")
    return found


def is_that_of_single_calls(call: Call, ours: Outcome) -> bool:
    """Are our results of a batch what PyTorch gives for its examples?"""
    singles = [run(PYTORCH, example(call, i)) for i in range(2)]
    if call.written or any(s.error is not None or len(tensors(torch, s.results)) != len(ours.results) for s in singles):
        return False
    pairs = zip(*[tensors(torch, s.results) for s in singles], ours.results)
    name = call.operator.removeprefix("aten::")
    return all(a.shape == b.shape and not difference(torch.stack([a, b]), got, name, True, lambda: 0.0) for a, b, got in pairs)


def is_that_of_the_cpu(call: Call, ours: Outcome) -> bool:
    """Have our results on meta the shapes and types of PyTorch's plain ones?"""
    plainly = tensors(torch, run(PYTORCH, replace(call, mode="plain")).results)
    have = tensors(cresset, ours.results)
    return len(plainly) == len(have) and not any(difference(a, b, "", False, lambda: 0.0) for a, b in zip(plainly, have))


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
    if call.mode not in OWN_WAYS and not (call.written and found.kind == "no error"):
        plainly = run(PYTORCH, replace(call, mode="recorded") if call.mode == "fx" and found.kind == "raises" else plainer(call))
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
        outcome = refused(plainer(changed))
        if outcome.error is not None and same_class(outcome.error, ours.error) and same_text(str(outcome.error), str(ours.error)):
            return what
    return None


def plainer(call: Call) -> Call:
    """The call without its mode, where that is one of derivatives, batches or programs."""
    if call.mode in ("vmap", "examples"):
        return example(call, 0)
    return call if call.mode in OWN_WAYS else replace(call, mode="plain")


def refused(call: Call) -> Outcome:
    try:
        return run(PYTORCH, call)
    except NoComparison:
        return Outcome()


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
    if values and call.mode not in ("vmap", "jvp", "trace", "freeze", "examples", "hvp"):
        for i, (want, got) in enumerate(zip(theirs.memories, ours.memories)):
            if i in resized(call, theirs):
                continue
            if want.shape == got.shape and (problem := difference(want, got, name, True, extra)):
                return Difference("memory", f"of tensor {i} {problem}")
    if values and call.mode in ("grad", "grad2", "jvp", "hvp") and (found := compare_derivatives(call, theirs, ours, name)):
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
    kind = {"grad": "gradient", "grad2": "gradient"}.get(call.mode, "tangent")
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
        if call.mode in ("jvp", "hvp") and i < len(ours.results) and got.dtype == ours.results[i].dtype and same_type(theirs.results[i], got):
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

