"""What programs say to PyTorch's compiler of Python code, which Cresset does not have: decorators give the function as it is."""

import functools

import cresset

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance"]


def disable(fn=None, recursive=True, *, reason=None):
    """`fn` itself (or, without one, a decorator): nothing compiles it."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn):
    """`fn` itself, or the list of functions."""
    return fn


def assume_constant_result(fn):
    """`fn` itself."""
    return fn


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False, **kwargs):
    """`model` itself, a function or module (or, without one, a decorator): it computes the same uncompiled.

    With `fullgraph` a custom operator is first asked by fake tensors for its result, as a compiler would: RuntimeError without a fake kernel.
    TypeError for what cannot be called; NotImplementedError for a `backend` of one's own, which would get graphs that nothing makes here. `jit.script`,
    `jit.trace` and `fx` make graphs.
    """
    if callable(backend):
        raise NotImplementedError("compile: a backend of one's own gets graphs of Python code, and nothing makes them here. Use fx.symbolic_trace or jit.script.")
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, backend=backend)
    if not callable(model):
        raise TypeError(f"compile: a function or module was required; given: {type(model).__name__}")
    return _asks_for_fakes(model) if fullgraph and isinstance(model, cresset.library.CustomOpDef) else model


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


def cudagraph_mark_step_begin():
    """There are no CUDA graphs whose step could begin."""


def is_compiling():
    """False: Python code runs as it is. `jit.is_scripting` and `jit.is_tracing` tell of scripts and traces."""
    return False


def is_dynamo_compiling():
    """False."""
    return False


def is_exporting():
    """False."""
    return False


def list_backends(exclude_tags=()):
    """No backends."""
    return []


def reset():
    """There is nothing to forget."""


class set_stance:
    """What a compiler should do from here on, as a call, a `with` block or a decorator; nothing is compiled, so nothing changes.

    `stance` is "default", "force_eager", "eager_on_recompile" or "fail_on_recompile". RuntimeError for `force_backend` with another stance
    than "default".
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None
