"""`cresset.compile`, and what programs say to PyTorch's compiler of Python code (`torch.compiler`, `torch._dynamo`)."""

import functools
import inspect

import cresset
from cresset._capture import backends as _backends
from cresset._capture import frontend as _frontend
from cresset._capture import marks as _marks
from cresset._capture.values import Known as _Known
from cresset._scripting import is_scripting

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "compile", "compile_report", "cudagraph_mark_step_begin", "disable", "get_default_backend",
           "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region", "register_backend", "reset", "set_default_backend", "set_stance",
           "substitute_in_graph"]  # fmt: skip

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")


def disable(fn=None, recursive=True, *, reason=None):
    """`fn` itself (or, without one, a decorator): compile() leaves it and what calls it as they are."""
    if fn is None:
        return lambda f: disable(f)
    if isinstance(fn, cresset.nn.Module):
        _marks.mark(fn, "disabled")
        return fn
    return _marks.mark(fn, "disabled")


def allow_in_graph(fn):
    """`fn`, or the list of functions: graphs call them as they are, without a look inside. They must have no effects."""
    for one in fn if isinstance(fn, (list, tuple)) else (fn,):
        _marks.mark(one, "in graph")
    return fn


def assume_constant_result(fn):
    """`fn`: compile() calls it while it captures and keeps its answer."""
    return _marks.mark(fn, "constant")


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False, inputs=None, **kwargs):
    """`model`, a function or module (or, without one, a decorator), computed in engines where that is sound; the answer is always that of `model`.

    Without `inputs` a call is captured when it first comes, for what it was given: dtypes, devices, dimensions, Python values, attributes and globals that it
    read; other calls are captured again, up to `_dynamo.config.recompile_limit` times. What cannot be captured stays as it is, and compile_report() says
    why. Sizes stay values of the graph, unless dynamic=False or a backend of one's own without dynamic=True. Where gradients are needed the engines' backend
    leaves calls as they are.

    With `inputs`, Inputs or shapes of a module's arguments, it is engine.compile(model, inputs, …), which takes more keywords.

    fullgraph: Unsupported (a RuntimeError) where PyTorch would stop too; a warning where only this compiler does.
    backend: "inductor" (engines), "eager", another of list_backends(), or a function (fx.GraphModule, example inputs) -> callable; where none is given
    that of set_default_backend(), "inductor" at first.
    mode: names of PyTorch's, which change nothing. options: a dict for engine.compile, or keywords of the backend; not together with a mode.
    disable: give `model` itself.
    """
    if inputs is not None:
        return cresset.engine.compile(model, inputs, **({} if backend in (None, "inductor") else {"backend": backend}), **kwargs)
    backend = get_default_backend() if backend is None else backend
    if kwargs:
        raise TypeError(f"compile() got an unexpected keyword argument {next(iter(kwargs))!r}; without inputs=[…] it takes PyTorch's.")
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise TypeError(f"compile: a function or module was required; given: {type(model).__name__}")
    _backends.lookup(backend)
    if disable or _marks.mark_of(model) == "disabled" or isinstance(model, (cresset.jit.ScriptModule, cresset.jit.ScriptFunction)):
        return model
    if isinstance(model, cresset.library.CustomOpDef):
        return _asks_for_fakes(model) if fullgraph else model
    settings = {"backend": backend, "fullgraph": fullgraph, "dynamic": dynamic, "options": _options(backend, options)}
    if isinstance(model, cresset.nn.Module):
        return OptimizedModule(model, settings)
    original = _marks.original_of(model) if _marks.mark_of(model) == "compiled" else model
    return _frontend.wrapped(original, _frontend.CompiledFunction(original, **settings))


def compiled_in_place(module, *args, **kwargs):
    """What the module's own calls go through after module.compile(…); None where compile() would give the module itself."""
    made = compile(module, *args, **kwargs)
    if not isinstance(made, OptimizedModule):
        return None
    compiled = made._compiled
    compiled.plain = module._call_uncompiled
    return _CallsOfModule(compiled)


class _CallsOfModule:
    """What a module compiled in place keeps; copies and pickles of the module are without it."""

    def __init__(self, compiled):
        self._compiled = compiled

    def __call__(self, *args, **kwargs):
        return self._compiled(args, kwargs)

    def __reduce__(self):
        return _nothing, ()


def _nothing():
    return None


def _options(backend, options):
    """PyTorch's options of its own code generator say nothing here."""
    if options is None:
        return {}
    if isinstance(backend, str) and backend in _backends.ENGINE:
        known = ("min_block_size", "torch_executed_ops", "enabled_precisions", "pack_weights")
        return {k: v for k, v in options.items() if k in known}
    return {"options": options}


class OptimizedModule(cresset.nn.Module):
    """A compiled module: `_orig_mod` is the module, whose attributes and state it shows."""

    _own = frozenset({"_orig_mod", "_compiled", "_settings", "_is_full_backward_hook"})

    def __init__(self, module, settings):
        super().__init__()
        self.__dict__["_settings"] = settings
        self._modules["_orig_mod"] = module
        del self.__dict__["training"]
        self.__dict__["_compiled"] = _frontend.CompiledFunction(module, **settings)
        self.__dict__["__doc__"] = type(module).__doc__

    def __call__(self, *args, **kwargs):
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:  # of this object, around the compiled call
            return self._call_uncompiled(*args, **kwargs)
        return self._compiled(args, kwargs)

    def forward(self, *args, **kwargs):
        """The compiled call."""
        return self._compiled(args, kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in self._own:
            self.__dict__[name] = value
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self):
        return len(self._orig_mod)

    def __iter__(self):
        return iter(self._orig_mod)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __reduce_ex__(self, protocol):
        return OptimizedModule, (self._orig_mod, self._settings)

    def train(self, mode=True):
        """Sets the module's mode; returns self."""
        self._orig_mod.train(mode)
        return self


def _asks_for_fakes(operator):
    """The operator, called with fake tensors before arguments of another kind."""
    from cresset._subclasses.fake_tensor import FakeTensorMode
    from cresset.utils._pytree import tree_leaves, tree_map_only

    known = set()

    def key(leaf):
        return (tuple(leaf.shape), leaf.dtype, leaf.device) if isinstance(leaf, cresset.Tensor) else repr(leaf)

    @functools.wraps(operator)
    def call(*args, **kwargs):
        leaves = tuple(key(leaf) for leaf in tree_leaves((args, kwargs)))
        if leaves not in known:
            with FakeTensorMode() as mode:
                fakes, more = tree_map_only(cresset.Tensor, mode.from_tensor, (args, kwargs))
                operator(*fakes, **more)
            known.add(leaves)
        return operator(*args, **kwargs)

    return call


def compiled_of(fn):
    """The CompiledFunction of what compile() gave; ValueError for others."""
    names = getattr(fn, "__dict__", {})
    found = names.get("_cresset_compiled") or names.get("_compiled") or getattr(names.get("_compiled_call_impl"), "_compiled", None)
    if found is None:
        raise ValueError("compile_report: what compile() gave was required.")
    return found


def compile_report(compiled=None) -> str:
    """What became of the calls of a compiled function or module, or of all: captures with their backend, and what stays eager with reason and line.

    A module of engine.compile() has its partition as report.
    """
    if isinstance(compiled, cresset.jit.ScriptModule):
        return cresset.engine.report(compiled)
    return _frontend.report(None if compiled is None else compiled_of(compiled))


def cudagraph_mark_step_begin():
    """There are no CUDA graphs whose step could begin."""


_exporting = 0  # exports that run now, one inside of the other


def nested_compile_region(fn=None, *, options=None, max_reuse_entries=8, reuse_hash_fn=None):
    """The function, or a decorator without one. PyTorch's compiler makes such a part once for all places that call it; here graphs hold what it does at each."""
    del options, max_reuse_entries, reuse_hash_fn
    if fn is None:
        return nested_compile_region

    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    return inner


def is_compiling() -> bool:
    """Does export run? Where compile() captures code that asks, its graph is the one of the answer True. False in scripts."""
    if is_scripting():
        return False
    else:
        return _exporting > 0


def is_dynamo_compiling() -> bool:
    """False."""
    return False


def is_exporting() -> bool:
    """Does export run? False in scripts."""
    if is_scripting():
        return False
    else:
        return _exporting > 0


def list_backends(exclude_tags=("debug", "experimental")):
    """Names that compile() takes as backend."""
    return _backends.names(exclude_tags)


def register_backend(compiler_fn=None, name=None, tags=()):
    """Makes a function (graph module, example inputs) -> callable a backend by name; also a decorator."""
    return _backends.register(compiler_fn, name, tags)


def set_default_backend(backend):
    """What compile() takes as backend where none is given: a name, a function, or None for the first default again. InvalidBackend for other names."""
    global _default_backend
    if backend is not None:
        _backends.lookup(backend)
    _default_backend = "inductor" if backend is None else backend


def get_default_backend():
    """What compile() takes as backend where none is given."""
    return _default_backend


_default_backend = "inductor"


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator: captures look into the decorated function where a program calls `original_fn`, whose code is not to be seen (of an extension in C,
    say). Both must do the same; programs call the original. TypeError when the two take other arguments, unless skip_signature_check."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def decorator(traceable_fn):
        if not callable(traceable_fn):
            raise TypeError(f"@substitute_in_graph(...) expects a function but got {type(traceable_fn)!r}")
        if not skip_signature_check:
            _same_arguments(original_fn, traceable_fn)
        _marks.answer(original_fn, lambda evaluator, args, kwargs: evaluator.inline(traceable_fn, args, kwargs))
        return traceable_fn

    return decorator


def _same_arguments(original, other):
    """TypeError when the two take arguments of other names or kinds; what does not say what it takes is left alone."""
    try:
        theirs, ours = ([(p.name, p.kind) for p in inspect.signature(f).parameters.values()] for f in (original, other))
    except (TypeError, ValueError):
        return
    if theirs != ours:
        raise TypeError(f"Signature mismatch between {original} and {other}: {inspect.signature(original)} vs {inspect.signature(other)}")


def reset():
    """Forgets all captures: the next calls make new ones."""
    _frontend.forget()


class set_stance:
    """What compiled functions do from here on, as a call, a `with` block or a decorator.

    stance: "default"; "force_eager": run as they are; "eager_on_recompile": calls that no capture stands for run as they are; "fail_on_recompile": they
    raise RuntimeError. RuntimeError for others, and for `force_backend` with another stance than "default".
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if stance not in ("default", "force_eager", "eager_on_recompile", "eager_then_compile", "aot_eager_then_compile", "fail_on_recompile"):
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self._stance, self._before = stance, _frontend.stance.name
        _frontend.stance.name = stance

    def __call__(self, fn):
        _frontend.stance.name = self._before

        @functools.wraps(fn)
        def call(*args, **kwargs):
            with set_stance(self._stance):
                return fn(*args, **kwargs)

        return call

    def __enter__(self):
        _frontend.stance.name = self._stance

    def __exit__(self, *error):
        _frontend.stance.name = self._before


def _give(value):
    return lambda evaluator, args, kwargs: _Known(value)


for _question in (is_compiling, is_dynamo_compiling):
    _marks.answer(_question, _give(True))
for _question in (is_exporting, cresset.jit.is_tracing, cresset.jit.is_scripting):
    _marks.answer(_question, _give(False))
