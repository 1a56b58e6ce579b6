"""The evaluator: a function's tree, statement by statement, with values in place of objects."""

import contextlib
import linecache

import cresset

from .attributes import Attributes
from .calls import Calls
from .errors import Unsupported
from .expressions import Expressions
from .sources import assigned_names, tree_of
from .statements import Returned, Statements
from .values import Known, Scope

__all__ = ["Evaluator"]

_MOST_STEPS, _MOST_FRAMES = 200_000, 60


class _Frame:
    __slots__ = ("filename", "line", "name")

    def __init__(self, filename, line, name):
        self.filename, self.line, self.name = filename, line, name


class Evaluator(Attributes, Expressions, Statements, Calls):
    """Evaluates calls and writes what operators do into a Recorder."""

    def __init__(self, recorder):
        self.rec = recorder
        self.names = {}  # path -> what errors call it
        self.frames = []
        self.steps = 0

    def step(self, node, scope):
        """Notes where the evaluation is."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise Unsupported("the code is too long")
        if self.frames:
            self.frames[-1].line = node.lineno

    def trace(self):
        """The places of the calls, as tracebacks write them."""
        return "".join(
            f'  File "{f.filename}", line {f.line}, in {f.name}\n    {linecache.getline(f.filename, f.line).strip()}\n' for f in self.frames
        )

    def record(self, op, target, args, kwargs=None, trace=None):
        """Recorder.record, for what holds lists from outside as well."""
        return self.rec.record(op, target, [self._opened(a) for a in args], {k: self._opened(v) for k, v in (kwargs or {}).items()}, trace=trace)

    def _opened(self, v):
        if isinstance(v, Known) and type(v.obj) in (list, tuple):
            return type(v.obj)(self._opened(one) for one in self.iterate(v))
        if isinstance(v, (list, tuple)) and type(v) in (list, tuple):
            return type(v)(self._opened(one) for one in v)
        return v

    # ---- functions

    def inline(self, function, args, kwargs):
        """A call of a Python function."""
        tree, guards = tree_of(function), self.rec.guards
        c = guards.constant(function)
        guards.check(f"{c}.__code__ is {guards.constant(function.__code__)}", f"{function.__name__} has other code")
        for part in ("__defaults__", "__kwdefaults__"):
            held = getattr(function, part)
            guards.check(f"{c}.{part} is {'None' if held is None else guards.constant(held)}", f"{function.__name__} has other defaults")
        defaults = [self.wrap(d, guards.read(f"{c}.__defaults__[{i}]"), "a default") for i, d in enumerate(function.__defaults__ or ())]
        kwdefaults = {k: self.wrap(d, guards.read(f"{c}.__kwdefaults__[{k!r}]"), k) for k, d in (function.__kwdefaults__ or {}).items()}
        scope = Scope(assigned_names(tree), None, function, c, function.__code__.co_filename)
        return self._run(tree, scope, function.__name__, args, kwargs, defaults, kwdefaults)

    def inline_closure(self, f, args, kwargs):
        """A call of a function that the code itself made."""
        scope = Scope(assigned_names(f.tree), f.scope, None, None, f.scope.filename)
        return self._run(f.tree, scope, f.name, args, kwargs, f.defaults, f.kwdefaults)

    def _run(self, tree, scope, name, args, kwargs, defaults, kwdefaults):
        if len(self.frames) >= _MOST_FRAMES:
            raise Unsupported(f"{name} is called too deep inside of itself or others")
        frame = _Frame(scope.filename, tree.lineno, name)
        self.frames.append(frame)
        try:
            scope.names.update(_bind(tree.args, name, args, kwargs, defaults, kwdefaults))
            if not isinstance(tree.body, list):
                return self.evaluate(tree.body, scope)
            self.block(tree.body, scope)
        except Returned as done:
            return done.value
        except Unsupported as error:
            raise error.at(frame.filename, frame.line, name) from None
        except (TypeError, ValueError, IndexError, KeyError, RuntimeError, AttributeError, ZeroDivisionError, NotImplementedError) as error:
            reason = Unsupported(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
            raise reason.at(frame.filename, frame.line, name) from error
        finally:
            self.frames.pop()
        return Known(None)

    def enter(self, item, scope):
        """Begins a `with` block of a mode for gradients, or one that does nothing. Returns what ends it."""
        node = item.context_expr
        manager, args = None, []
        if hasattr(node, "func") and not node.keywords:
            found = self.evaluate(node.func, scope)
            manager = found.obj if isinstance(found, Known) else None
            args = [self.constant(self.evaluate(a, scope), "a mode") for a in node.args]
        wanted = {cresset.no_grad: False, cresset.enable_grad: True}.get(manager) if not args else None
        if manager is cresset.set_grad_enabled and len(args) == 1 and isinstance(args[0], bool):
            wanted = args[0]
        if wanted is None and not (manager is contextlib.nullcontext and not args):
            raise Unsupported("a with block is not captured")
        if item.optional_vars is not None:
            self.assign(item.optional_vars, Known(None), scope)
        before = cresset.is_grad_enabled()
        if wanted is None or wanted is before or (not self.rec.gradients and not wanted):
            return lambda: None
        if not self.rec.gradients:
            raise Unsupported("gradients are wanted in a part of the code")
        self._grad_mode(wanted)
        return lambda: self._grad_mode(before)

    def _grad_mode(self, on):
        cresset._C._set_grad_enabled(on)
        self.rec.graph.call_function(cresset._C._set_grad_enabled, (on,))


def _bind(spec, name, args, kwargs, defaults, kwdefaults):
    """Names of parameters with their values. TypeError where Python's call would raise one."""
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    out, left = dict(zip(positional, args)), dict(kwargs)
    if len(args) > len(positional) and spec.vararg is None:
        raise TypeError(f"{name} takes {len(positional)} arguments; {len(args)} were given")
    if spec.vararg is not None:
        out[spec.vararg.arg] = tuple(args[len(positional) :])
    by_name = [a.arg for a in (*spec.args, *spec.kwonlyargs)]
    for key in list(left):
        if key in by_name:
            if key in out:
                raise TypeError(f"{name} got {key} twice")
            out[key] = left.pop(key)
    first_default = len(positional) - len(defaults)
    for i, key in enumerate(positional):
        if key not in out and i >= first_default:
            out[key] = defaults[i - first_default]
    for a in spec.kwonlyargs:
        if a.arg not in out and a.arg in kwdefaults:
            out[a.arg] = kwdefaults[a.arg]
    if spec.kwarg is not None:
        out[spec.kwarg.arg] = left
    elif left:
        raise TypeError(f"{name} takes no {next(iter(left))}")
    missing = [key for key in (*positional, *(a.arg for a in spec.kwonlyargs)) if key not in out]
    if missing:
        raise TypeError(f"{name} was not given {', '.join(missing)}")
    return out
