"""What programs say to PyTorch's compiler of Python code, which Cresset does not have: decorators give the function as it is."""

__all__ = ["allow_in_graph", "assume_constant_result", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance"]


def disable(fn=None, recursive=True, *, reason=None):
    """`fn` itself (or, without one, a decorator): nothing compiles it."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn):
    """`fn` itself, or the list of functions."""
    return fn


def assume_constant_result(fn):
    """`fn` itself."""
    return fn


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
