"""Compiled functions: captures beside their guards, tried one after the other, a new one where none stands for a call; and what there is to say of them."""

import functools
import importlib
import sys
import threading
import warnings
import weakref

import cresset
from cresset import _C, _settings
from cresset.nn.modules import _hooks

from . import backends, marks
from . import dynamo_errors as exc
from .capture import capture

__all__ = ["CompiledFunction", "capturing", "everything", "forget", "report", "stance", "wrapped"]


class _Here(threading.local):
    depth = 0  # captures that this thread makes


_here = _Here()
_all = weakref.WeakSet()
_GROUPS, _COLLECTIVES = "cresset.distributed._groups", "cresset.distributed._captured"
_SETTINGS, _DEFAULT_LIMIT = "cresset._dynamo.config", 8


class _Stance:
    name, backend = "default", None


stance = _Stance()


def capturing():
    """Is this thread evaluating a function for a capture?"""
    return _here.depth > 0


def _limit():
    settings = sys.modules.get(_SETTINGS)
    if settings is None:
        return _DEFAULT_LIMIT
    return settings.recompile_limit if settings.recompile_limit != _DEFAULT_LIMIT else settings.cache_size_limit


def _state():
    """What operators do depends on this as well: the mode for gradients, inference mode, the default dtype, whether only deterministic operators are wanted.
    None where somebody sees or changes a call's operators."""
    state = _C._call_state()
    if state is None or _global_hooks[0] or _global_hooks[1] or _global_hooks[2] or _global_hooks[3] or _hooks.module_tracers:
        return None
    return ~state if _settings._state["deterministic"] else state


_global_hooks = (_hooks._global_forward_hooks, _hooks._global_forward_pre_hooks, _hooks._global_backward_hooks, _hooks._global_backward_pre_hooks)


def _what_looks_on():
    """What would see or change a call's operators, in words."""
    if _C._len_torch_dispatch_stack():
        return "a __torch_dispatch__ mode is on"
    if _C._len_torch_function_stack():
        return "a __torch_function__ mode is on"
    if _C._is_tracing():
        return "a trace is being made"
    if _hooks.module_tracers:
        return "modules are being traced"
    if _autocasts():
        return "autocast is on"
    if _transforms():
        return "a transform such as vmap or grad is on"
    return "there are hooks of all modules"


def _autocasts():
    return cresset.is_autocast_enabled() or cresset.is_autocast_enabled("cpu")


def _transforms():
    level = getattr(_C._functorch, "maybe_current_level", None)
    return level is not None and level() is not None


class _Entry:
    """One capture of a function. `reason`: what the ones before it did not stand for."""

    def __init__(self, found, state, reason):
        self.capture, self.state, self.reason = found, state, reason
        self.program, self.how, self.calls = None, "", 0
        self.fetch = found.fetch

    @property
    def eager(self):
        """Do its calls run as they are?"""
        return self.capture.problem is not None or self.capture.module is None

    def differs(self, state, args, kwargs):
        """Why a call is another one than the entry's."""
        if state != self.state:
            return "the mode for gradients, the default dtype or another setting is not the same"
        return self.capture.reason(self.fetch(args, kwargs))

    def run(self, fetched):
        """The call's result."""
        capture = self.capture
        results = self.program(capture.inputs(fetched))
        if isinstance(results, cresset.Tensor):  # of backends that unpack
            results = (results,)
        return capture.rebuild(results, fetched)


class CompiledFunction:
    """Calls `function` through captures. `backend`: as given to compile()."""

    def __init__(self, function, *, backend, fullgraph, dynamic, options):
        self.function, self.backend, self.fullgraph, self.dynamic = function, backend, fullgraph, dynamic
        self.plain = function  # what runs where nothing was captured
        self.options = options
        self.builder = backends.lookup(backend)
        self.entries, self.over, self.aside = [], None, {}
        self._lock = threading.RLock()
        _all.add(self)

    @property
    def name(self):
        """How reports call it."""
        f = self.function
        return getattr(f, "__qualname__", None) or type(getattr(f, "__self__", f)).__name__

    @property
    def place(self):
        """file:line of the definition, or nothing."""
        code = getattr(getattr(self.function, "__func__", self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else ""

    def __call__(self, args, kwargs):
        state = _state()
        if state is None or _here.depth or stance.name == "force_eager":
            return self._aside(args, kwargs)
        for entry in self.entries:
            if entry.state == state:
                fetched = entry.fetch(args, kwargs)
                if type(fetched) is list:
                    return self._go(entry, fetched, args, kwargs)
        return self._miss(state, args, kwargs)

    def _aside(self, args, kwargs):
        why = "a capture is being made" if capturing() else "the stance is force_eager" if stance.name == "force_eager" else _what_looks_on()
        self.aside[why] = self.aside.get(why, 0) + 1
        return self.plain(*args, **kwargs)

    def _go(self, entry, fetched, args, kwargs):
        entry.calls += 1
        if entry.program is None:
            return self.plain(*args, **kwargs)
        if self.builder is not None or entry.capture.communicates:  # once
            return entry.run(fetched)
        try:
            return entry.run(fetched)
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
            return self.plain(*args, **kwargs)  # raises what the function raises, in its words

    def _miss(self, state, args, kwargs):
        if self.over is not None and len(self.entries) >= _limit():
            return self.plain(*args, **kwargs)
        reason = self.entries[-1].differs(state, args, kwargs) if self.entries else None
        if self.entries and stance.name in ("eager_on_recompile", "fail_on_recompile"):
            if stance.name == "fail_on_recompile":
                raise RuntimeError(f"Detected recompile when torch.compile stance is 'fail_on_recompile'. {self.name}: {reason}.")
            return self.plain(*args, **kwargs)
        if len(self.entries) >= _limit():
            self.over = reason
            warnings.warn(f"compile: {self.name} reached the limit of {_limit()} captures (_dynamo.config.recompile_limit); other calls stay eager. The last "
                          f"one differed: {reason}.", stacklevel=4)
            return self.plain(*args, **kwargs)
        with self._lock:
            entry = self._captured(state, reason, args, kwargs)
        found = entry.capture
        if entry.eager:
            return self._go(entry, [], args, kwargs)
        fetched = entry.fetch(args, kwargs)
        if type(fetched) is not list:  # the guards do not even hold for the call that made them
            found.problem, entry.program = exc.Unsupported(f"its own guard fails: {found.reason(fetched)}"), None
            return self._go(entry, [], args, kwargs)
        if self.builder is None and not found.communicates:
            entry.calls += 1
            results, found.results = found.results, []
            return found.rebuild(results, fetched)
        found.results = []
        return self._go(entry, fetched, args, kwargs)

    def _captured(self, state, reason, args, kwargs):
        groups = sys.modules.get(_GROUPS)
        if groups is not None and groups.is_initialized():
            importlib.import_module(_COLLECTIVES)  # says what becomes of collectives
        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            dynamic = self.dynamic if self.builder is not None else self.dynamic is not False
            found = capture(self.function, args, kwargs, dynamic=bool(dynamic), gradients=self.builder is not None)
        finally:
            _here.depth -= 1
        entry = _Entry(found, state, reason)
        if found.problem is not None:
            self._refuse(found.problem)
        elif not entry.eager:
            entry.program, entry.how = backends.build(self.builder, found, self.options)
        found.examples = []
        self.entries.append(entry)
        return entry

    def _refuse(self, problem):
        if not self.fullgraph:
            return
        if problem.breaks:
            raise exc.Unsupported(f"compile: fullgraph: {problem}")
        warnings.warn(f"compile: fullgraph: {self.name} stays eager: {problem}.", stacklevel=6)

    def reset(self):
        """Forgets the captures."""
        self.entries, self.over, self.aside = [], None, {}

    # ---- words

    def describe(self):
        """Lines about this function."""
        place = self.place
        lines = [self.name + (f" ({place})" if place else "")]
        for entry in self.entries:
            problem, module = entry.capture.problem, entry.capture.module
            calls = f"{entry.calls} {'call' if entry.calls == 1 else 'calls'}"
            if problem is not None:
                lines.append(f"  eager, {calls}: {problem}")
            elif module is None:
                lines.append(f"  eager, {calls}: it has no operators")
            else:
                count = sum(node.op not in ("placeholder", "output") for node in module.graph.nodes)
                lines.append(f"  captured, {calls}: {count} {'operator' if count == 1 else 'operators'}, {entry.how}")
            if entry.reason:
                lines.append(f"    made again since {entry.reason}")
        if self.over is not None:
            lines.append(f"  eager, other calls: the limit of captures is reached; the last one differed: {self.over}")
        lines += [f"  eager, {n} {'call' if n == 1 else 'calls'}: {why}" for why, n in self.aside.items()]
        return lines if len(lines) > 1 else [*lines, "  not called yet"]


def wrapped(function, compiled):
    """A function that calls through a CompiledFunction and looks like the one that it is made of."""

    @functools.wraps(function, assigned=[n for n in functools.WRAPPER_ASSIGNMENTS if hasattr(function, n)], updated=())
    def call(*args, **kwargs):
        return compiled(args, kwargs)

    call.__dict__[marks.COMPILED] = function
    call.__dict__["_cresset_compiled"] = compiled
    return marks.mark(call, "compiled")


def everything():
    """All CompiledFunctions that live."""
    return list(_all)


def forget():
    """Forgets all captures."""
    for one in everything():
        one.reset()


def report(compiled=None):
    """Text about one compiled callable, or about all."""
    chosen = everything() if compiled is None else [compiled]
    return "\n".join(line for one in sorted(chosen, key=lambda c: (c.place, c.name)) for line in one.describe())

