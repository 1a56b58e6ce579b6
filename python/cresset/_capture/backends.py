"""What becomes of a captured graph: functions (graph module, example inputs) -> callable, by name."""

import warnings

import cresset

from . import weights
from .dynamo_errors import BackendCompilerFailed, InvalidBackend

__all__ = ["ENGINE", "build", "lookup", "names", "register"]

_MOST_DIFFERENCE = {"rtol": 1e-4, "atol": 1e-5}
_PACKED_DIFFERENCE = 1e-4  # of the largest number of a result: norms become part of weights, up to rounding
# They assume that nobody sees a result's strides, or that a view is possible.
_NOT_FOR_ANY_CALL = ["remove_contiguous", "view_to_reshape"]


def _eager(module, examples, **options):
    return module.forward


def _kind(example):
    """What guards say of every call's tensor: dtype and number of dimensions, and the sizes of parameters."""
    sizes = tuple(example.shape) if isinstance(example, cresset.nn.Parameter) else (-1,) * example.ndim
    try:
        return cresset.lowering.Input(sizes, dtype=example.dtype)
    except (TypeError, ValueError):  # a dtype that specifications do not have
        return None


def engine(module, examples, assume_batched=False, **options):
    """The graph in engines of the processor, the rest with the interpreter; sizes stay values, and no check goes."""
    script = cresset.jit.script(module)
    with warnings.catch_warnings(), cresset.lowering.logging.errors():
        warnings.filterwarnings("ignore", message="compile: no engine came of")
        return cresset.engine.compile(script, [_kind(e) for e in examples], remove_checks=False, assume_batched=assume_batched, assume_inference=False,
                                      disabled_passes=_NOT_FOR_ANY_CALL, **options)  # fmt: skip


_registered = {"eager": _eager, "aot_eager": _eager, "eager_noexcept": _eager, "aot_eager_decomp_partition": _eager, "aot_ts": _eager, "ts": _eager}
ENGINE = ("inductor", "cresset")
_DEBUG = frozenset(_registered)


def names(exclude_tags=("debug", "experimental")):
    """Names of backends; without those that only run the graph as it is, unless nothing is excluded."""
    return sorted([*ENGINE, *(n for n in _registered if n not in _DEBUG or not exclude_tags)])


def register(compiler_fn=None, name=None, tags=()):
    """Makes a function (graph module, example inputs) -> callable a backend by name; also a decorator."""
    if compiler_fn is None:
        return lambda fn: register(fn, name, tags)
    _registered[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup(backend):
    """The function of a name, None for engines; functions are themselves. InvalidBackend for other names."""
    if not isinstance(backend, str):
        return backend
    if backend in ENGINE:
        return None
    if backend not in _registered:
        raise InvalidBackend(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends.")
    return _registered[backend]


def _differs(got, want, most=_MOST_DIFFERENCE):
    """In words; None where results are the same up to `most`, their values at any distance where that is None."""
    if len(got) != len(want):
        return "another number of results"
    for i, (a, b) in enumerate(zip(got, want)):
        if not isinstance(b, cresset.Tensor):
            if a != b:
                return f"result {i} is {a}, not {b}"
        elif a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i} is a {a.dtype} of {tuple(a.shape)}, not a {b.dtype} of {tuple(b.shape)}"
        elif most is not None and not _close(a, b, most):
            return f"result {i} has other values"
    return None


def _close(a, b, most):
    a, b = ((t.to(cresset.complex128) if t.is_complex() else t.double()) for t in (a, b))
    scale = b.abs().nan_to_num(0, 0, 0).max().item() if b.numel() else 0.0
    return cresset.allclose(a, b, rtol=most["rtol"], atol=max(most["atol"], most.get("of_largest", 0) * scale), equal_nan=True)


def _difference_allowed(options, packed):
    """What the engine may differ by: nothing but rounding, unless the user wants it to compute in less."""
    names = {str(p).rpartition(".")[2] for p in options.get("enabled_precisions") or ()}
    if names - {"float32", "float", "f32", "fp32"}:
        return None
    return {**_MOST_DIFFERENCE, "of_largest": _PACKED_DIFFERENCE} if packed else _MOST_DIFFERENCE


def _count(made):
    engines = str(made.graph).count("cresset::execute_engine")
    return f"{engines} {'engine' if engines == 1 else 'engines'}" if engines else "a script without engines"


def _results(program, inputs):
    with cresset.no_grad():
        got = program(*inputs)
    return (got,) if isinstance(got, cresset.Tensor) else got


def _with_held_weights(capture, options):
    """(function of a list of inputs, how it runs) with the module's weights as constants; None where they cannot be that."""
    module, held = capture.module, capture.held
    if not held or not weights.can_be_held(module.graph, set(held)):
        return None
    how = []

    def build(tensors, inputs):
        rest = [x for i, x in enumerate(inputs) if i not in held]
        made = engine(weights.with_constants(module, held, tensors), rest, weights.are_batched(module.graph), **options)
        want = capture.results if inputs is capture.examples else _results(module.forward, inputs)
        if "cresset::execute_engine" not in str(made.graph) or _differs(_results(made, rest), want, _difference_allowed(options, True)):
            return None
        how[:] = [_count(made)]
        return made

    made = weights.HeldWeights(held, build, lambda inputs: _of_all_inputs(module, inputs, _results(module.forward, inputs), options)[0])
    return (made, f"{how[0]}, with {len(held)} weights packed") if made.pack(capture.examples) else None


def _spread(program):
    """A callable of tensors as a function of a list of them."""
    return lambda inputs: program(*inputs)


def _of_all_inputs(module, inputs, want, options):
    try:
        made = engine(module, inputs, **options)
        got = _results(made, inputs)
    except Exception as error:  # noqa: BLE001 - the graph itself is always there
        return _spread(module.forward), f"its graph, operator by operator: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    difference = _differs(got, want, _difference_allowed(options, False))
    if difference:
        return _spread(module.forward), f"its graph, operator by operator: of the engine, {difference}"
    return cresset._C._engine_call(made) or _spread(made), _count(made)


def _engine_or_graph(capture, options):
    """(function of a list of inputs, how it runs): the engine where it gives this call's answer."""
    if not capture.own:
        return _spread(capture.module.forward), "its graph, operator by operator: it has operators of other libraries"
    options = dict(options)
    found = None
    if options.pop("pack_weights", True):
        try:
            found = _with_held_weights(capture, options)
        except Exception:  # noqa: BLE001 - weights can always be inputs, and what is wrong is said there
            found = None
    return found or _of_all_inputs(capture.module, capture.examples, capture.results, options)


def build(backend, capture, options):
    """(function of a list of inputs, how it runs). BackendCompilerFailed when a backend of the user's raises."""
    if backend is None:
        return _engine_or_graph(capture, options)
    name = next((n for n, f in _registered.items() if f is backend), None) or getattr(backend, "__name__", type(backend).__name__)
    try:
        made = backend(capture.module, list(capture.examples), **options)
    except Exception as error:
        raise BackendCompilerFailed(f"backend={name!r} raised:\n{type(error).__name__}: {error}") from error
    if not callable(made):
        raise BackendCompilerFailed(f"backend={name!r} raised:\nTypeError: a callable was required; it gave a {type(made).__name__}")
    return _spread(made), f"backend {name}"
