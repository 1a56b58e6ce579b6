"""A call as a graph of operators, with what must hold for it to stand for other calls, and how its result is put together."""

import types

import cresset
from cresset.fx import GraphModule

from .errors import Unsupported
from .evaluator import Evaluator
from .recorder import Recorder, is_constant
from .values import Known, Results, Sizes, SizeVar, TensorVar

__all__ = ["Capture", "capture"]


class Capture:
    """`fetch(args, kwargs)`: the graph's inputs and other things from outside as a list; something else, whose words are `reason()`'s, where the capture
    does not stand for a call.

    module: the GraphModule, None where the call stays eager for `problem` or where it has no operators. examples: this call's inputs.
    results: this call's outputs of the graph. own: does the graph have operators of the library alone? held: the positions of inputs that are
    parameters and buffers of modules.
    """

    def __init__(self):
        self.fetch = self.module = self.problem = self.reason = None
        self.examples, self.results, self.own, self.held = [], [], True, []
        self.guard_reasons = []  # what later calls fail by, in words
        self._form, self._inputs = None, 0
        self.communicates = False  # its graph has collectives: `results` are none

    def inputs(self, fetched):
        """The graph's inputs of what fetch() gave."""
        return fetched if len(fetched) == self._inputs else fetched[: self._inputs]

    def rebuild(self, results, fetched):
        """The call's result of the graph's outputs."""
        return self._form(results, fetched)


class _Form:
    """The shape of a result, and what the graph must give for it."""

    def __init__(self, recorder):
        self.rec, self.outputs, self.values, self.extras, self._places = recorder, [], [], [], {}

    def of(self, v):
        """A function (results, fetched) -> object."""
        if isinstance(v, TensorVar) and v.path is not None:
            return self._fetched(v.path)
        if isinstance(v, (TensorVar, SizeVar)):
            place = self._places.get(id(v))
            if place is None:
                place = self._places[id(v)] = len(self.outputs)
                self.outputs.append(v.node)
                self.values.append(v)
            return lambda results, fetched: results[place]
        if isinstance(v, Known):
            return self._of_object(v)
        if isinstance(v, dict):
            items = [(k, self.of(one)) for k, one in v.items()]
            return lambda results, fetched: {k: make(results, fetched) for k, make in items}
        if isinstance(v, (list, tuple)):
            parts = [self.of(one) for one in v]
            kind = v.kind if isinstance(v, Results) else cresset.Size if isinstance(v, Sizes) else type(v)
            return lambda results, fetched: kind([make(results, fetched) for make in parts])
        raise Unsupported(f"the result holds a {type(v).__name__.lower()}")

    def _of_object(self, v):
        obj = v.obj
        if is_constant(v):
            return lambda results, fetched: obj
        if v.path is not None:
            return self._fetched(v.path)
        if type(obj) in (set, frozenset, list, dict):
            return lambda results, fetched: type(obj)(obj)
        raise Unsupported(f"the result holds a {type(v.obj).__name__}")

    def _fetched(self, path):
        if path.startswith("c"):
            path = self.rec.guards.read(path)
        if path not in self.extras:
            self.extras.append(path)
        extras, place = self.extras, self.extras.index(path)
        return lambda results, fetched: fetched[len(fetched) - len(extras) + place]


def _names_of(function, count):
    code = getattr(function, "__code__", None) if isinstance(function, types.FunctionType) else None
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    return [names[i] if i < len(names) else f"args_{i}" for i in range(count)]


def _arguments(evaluator, function, args, kwargs):
    guards = evaluator.rec.guards
    guards.check(f"len(args) == {len(args)}", f"{len(args)} arguments are not given")
    guards.check(f"tuple(kwargs) == {tuple(kwargs)!r}", "other keywords are given")
    values = [evaluator.wrap(a, guards.read(f"args[{i}]"), name) for (i, a), name in zip(enumerate(args), _names_of(function, len(args)))]
    return values, {k: evaluator.wrap(a, guards.read(f"kwargs[{k!r}]"), k) for k, a in kwargs.items()}


def capture(function, args, kwargs, *, dynamic, gradients):
    """The Capture of function(*args, **kwargs). It runs the operators of the call, and nothing else of it."""
    recorder = Recorder(dynamic=dynamic, gradients=gradients)
    evaluator, out, form = Evaluator(recorder), Capture(), _Form(recorder)
    try:
        values, named = _arguments(evaluator, function, args, kwargs)
        result = evaluator.invoke(Known(function, recorder.guards.constant(function)), values, named)
        out._form = form.of(result)
        recorder.finish(form.outputs)
    except Unsupported as problem:
        out.problem = problem
    except RecursionError:
        out.problem = Unsupported("the code is nested too deep")
    if out.problem is None:
        out._inputs, out.own, out.communicates = len(recorder.inputs), not recorder.watch.others, recorder.communicates
        out.held = [i for i, v in enumerate(recorder.inputs) if v.held]
        out.examples, out.results = [v.value for v in recorder.inputs], [v.value for v in form.values]
        if any(node.op not in ("placeholder", "output") for node in recorder.graph.nodes):
            out.module = GraphModule(cresset.nn.Module(), recorder.graph).eval()
    out.guard_reasons, out.reason = recorder.guards.reasons, recorder.guards.reason
    out.fetch = recorder.guards.build([*(v.path for v in recorder.inputs), *form.extras] if out.problem is None else [])
    return out
