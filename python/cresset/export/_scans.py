"""map, scan and associative_scan in exported and recorded programs: one graph for a step, whatever the size of the dimension is."""

import cresset
from cresset._higher_order_ops.associative_scan import associative_scan
from cresset._higher_order_ops.map import map, outputs_of_map
from cresset._higher_order_ops.scan import in_steps
from cresset._subclasses.fake_tensor import FakeTensor
from cresset.fx.proxy import Proxy
from cresset.utils import _pytree as pytree

from ._control_flow import Operator, _installed, _recorded, _results, record_cond, record_while_loop

__all__ = ["map_operator", "scan_operator", "associative_scan_operator", "PLAIN", "RECORDERS"]


class _Map(Operator):
    """A graph of one part of each of `xs`, along their first dimension, and of the operands: its results stacked, a tuple."""

    def __init__(self):
        super().__init__("map_impl")

    def run(self, f, xs, pos_args):
        """See the class."""
        return tuple(map(lambda parts: tuple(f(*parts, *pos_args)), list(xs)))


class _Scan(Operator):
    """A graph of carried tensors, one part of each of `xs` and the operands, which gives the next carried tensors and outputs: the last carried ones
    and the outputs stacked, a tuple."""

    def __init__(self):
        super().__init__("scan")

    def run(self, combine_fn, init, xs, additional_inputs=()):
        """See the class."""
        count = len(init)

        def step(carried, parts):
            results = list(combine_fn(*carried, *parts, *additional_inputs))
            return results[:count], results[count:]

        recorders = cresset._rare_functions._recorders
        carried, outputs = (in_steps if recorders is None else recorders["scan"])(step, list(init), list(xs))
        return (*carried, *outputs)


class _AssociativeScan(Operator):
    """A graph of two parts of each of `xs` and the operands, an associative function: its running results, a tuple."""

    def __init__(self):
        super().__init__("associative_scan")

    def run(self, combine_fn, xs, additional_inputs=()):
        """See the class."""
        return tuple(associative_scan(lambda a, b: list(combine_fn(*a, *b, *additional_inputs)), list(xs), 0))


map_operator, scan_operator, associative_scan_operator = _Map(), _Scan(), _AssociativeScan()


def _copy(recorder, tensor, original):
    """The tensor as one of its own: in each step it is another one."""
    copy = recorder.tracer.fake_mode.snapshot(tensor) if isinstance(tensor, FakeTensor) else tensor.detach().clone()
    return copy.requires_grad_(original.requires_grad)


def _first(recorder, leaves):
    with cresset.no_grad():
        return [_copy(recorder, leaf[0], leaf) for leaf in leaves]


def _nodes(tracer, leaves):
    return tuple(tracer.create_arg(tracer.proxy_of(x)) if isinstance(x, cresset.Tensor) else x for x in leaves)


def _operands(tracer, outer):
    return [Proxy(node, outer) for _, node, _ in tracer.operands.values()]


def _stacked(recorder, leaves, size):
    """Fakes of results of `size` steps."""
    mode = recorder.tracer.fake_mode

    def grown(x):
        fake = x if isinstance(x, FakeTensor) else mode.from_tensor(x)
        with cresset.no_grad():
            return fake.new_empty((size, *fake.shape)).requires_grad_(x.requires_grad)

    return [grown(x) if isinstance(x, cresset.Tensor) else x for x in leaves]


def record_map(recorder, f, xs, *args):
    """What `map` gives while a program is recorded: a node for all parts. RuntimeError for results that are no tensors, UserError where the function writes."""
    with recorder.switched(False):
        return _record_map(recorder, f, xs, args)


def _record_map(recorder, f, xs, args):
    outer = recorder.tracer
    leaves, spec = pytree.tree_flatten(xs)
    parts, given = _first(recorder, leaves), [x for x in pytree.tree_leaves(args) if isinstance(x, cresset.Tensor)]
    tracer, result = _recorded(recorder, lambda *values: f(pytree.tree_unflatten(values[: len(parts)], spec), *args), (*parts, *given), (*leaves, *given))
    outputs_of_map(result)
    found, out_spec = pytree.tree_flatten(result)
    graphs = _installed(outer, ("body_graph", tracer, _nodes(tracer, found)), place="map: the function")
    outside = _operands(tracer, outer)
    proxy = outer.create_proxy("call_function", map_operator, (*graphs, outside[: len(parts)], outside[len(parts) :]), {}, name="map_impl")
    values = recorder.values(lambda: pytree.tree_leaves(map(f, xs, *args)), [*leaves, *given, *(x for x in found if x is not None)])
    fakes = _stacked(recorder, found, leaves[0].shape[0]) if values is None else values
    return pytree.tree_unflatten(_results(outer, fakes, proxy, values is None), out_spec)


def record_scan(recorder, step, carried, leaves):
    """What `in_steps` gives while a program is recorded: a node for all steps."""
    with recorder.switched(False):
        return _record_scan(recorder, step, carried, leaves)


def _record_scan(recorder, step, carried, leaves):
    outer, count = recorder.tracer, len(carried)
    copies = [_copy(recorder, x, x) for x in carried]
    tracer, result = _recorded(recorder, lambda *values: step(list(values[:count]), list(values[count:])), (*copies, *_first(recorder, leaves)), (*carried, *leaves))
    outputs, spec = pytree.tree_flatten(result[1])
    graphs = _installed(outer, ("scan_combine_graph", tracer, list(_nodes(tracer, (*result[0], *outputs)))), place="scan: the function")
    outside = _operands(tracer, outer)
    arguments = (*graphs, outside[:count], outside[count : count + len(leaves)], tuple(outside[count + len(leaves) :]))
    proxy = outer.create_proxy("call_function", scan_operator, arguments, {}, name="scan")
    values = recorder.values(lambda: pytree.tree_leaves(in_steps(step, carried, leaves)), [*carried, *leaves, *result[0], *outputs])
    fakes = [*result[0], *_stacked(recorder, outputs, leaves[0].shape[0])] if values is None else values
    results = _results(outer, fakes, proxy, values is None)
    return results[:count], pytree.tree_unflatten(results[count:], spec)


def record_associative_scan(recorder, combine, leaves):
    """What `combine`, a function of two lists of tensors, gives along their first dimension while a program is recorded: a node, and a list of its results."""
    with recorder.switched(False):
        return _record_associative_scan(recorder, combine, leaves)


def _record_associative_scan(recorder, combine, leaves):
    outer, count = recorder.tracer, len(leaves)
    pairs = (*_first(recorder, leaves), *_first(recorder, leaves))
    tracer, result = _recorded(recorder, lambda *values: combine(list(values[:count]), list(values[count:])), pairs, (*leaves, *leaves))
    graphs = _installed(outer, ("associative_scan_combine_graph", tracer, list(_nodes(tracer, result))), place="associative_scan: the function")
    outside = _operands(tracer, outer)
    proxy = outer.create_proxy("call_function", associative_scan_operator, (*graphs, outside[:count], tuple(outside[2 * count :])), {}, name="associative_scan")
    values = recorder.values(lambda: associative_scan(combine, leaves, 0), [*leaves, *result])
    fakes = _stacked(recorder, result, leaves[0].shape[0]) if values is None else values
    return _results(outer, fakes, proxy, values is None)


# What runs in the place of the functions of these names while a program is recorded, with the recorder in front.
RECORDERS = {"cond": record_cond, "while_loop": record_while_loop, "map": record_map, "scan": record_scan, "associative_scan": record_associative_scan}
# The same, not recorded.
PLAIN = {"cond": cresset.cond, "while_loop": cresset.while_loop, "map": map, "scan": in_steps, "associative_scan": lambda combine, leaves: associative_scan(combine, leaves, 0)}
