"""What a compiler's capture makes of collectives: functional operators of the graph, a wait, and a copy where PyTorch's function writes to its argument.

A capture does not communicate. Another rank may be captured at another time, or never, and this one may yet stay as it is: the operators are only
noted (`Recorder.record` gives them local results), and the call that was captured runs the graph.
"""

import inspect
import operator

import cresset
from cresset._C_distributed import ProcessGroup
from cresset._capture import marks
from cresset._capture.errors import Unsupported
from cresset._capture.values import Known

from . import _collectives, _functional_collectives, _groups
from ._collective_operators import ops
from ._reductions import reduction_name

__all__ = []


class _Call:
    """One call in a capture: its arguments by name, as values of the evaluator, where none is given the default."""

    def __init__(self, evaluator, signature, args, kwargs):
        self.evaluator, self.guards = evaluator, evaluator.rec.guards
        given = signature.bind(*args, **kwargs).arguments
        self.values = {name: given.get(name, Known(p.default)) for name, p in signature.parameters.items()}

    def known(self, name):
        """A number, a text or a ReduceOp, as it is in this call."""
        v = self.values[name]
        if isinstance(v, (list, tuple)):
            return [self.evaluator.constant(one, name) for one in v]
        if not isinstance(v, Known):
            raise Unsupported(f"{name} of a collective is no constant")
        return v.obj

    def group(self, name="group"):
        """The group, which later calls must have too."""
        v, constant = self.values[name], self.guards.constant
        group = v.obj if isinstance(v, Known) else None
        if group is None:
            group = _groups.GroupMember.WORLD
            self.guards.check(f"{constant(_groups.GroupMember)}.WORLD is {constant(group)}", "the default group is another one")
        elif isinstance(v, Known) and v.path is not None:
            self.guards.check(f"{v.path} is {constant(group)}", "the group is another one")
        if not isinstance(group, ProcessGroup):
            raise Unsupported(f"the group of a collective is a {type(group).__name__}")
        return group

    def operator(self, name, *arguments):
        """The result of an operator, waited for."""
        values = [a if not isinstance(a, (int, str)) else Known(a) for a in arguments]
        values = [[Known(n) for n in a] if isinstance(a, list) and all(isinstance(n, int) for n in a) else a for a in values]
        begun = self.record(getattr(ops, name), *values)
        return self.record(ops.wait_tensor, begun)

    def record(self, target, *values):
        return self.evaluator.record("call_function", target, list(values), trace=self.evaluator.trace())

    def method(self, name, *values):
        return self.evaluator.record("call_method", name, list(values), trace=self.evaluator.trace())

    def writes(self, *tensors):
        """For collectives that write to their arguments: no graph has those that are waited for elsewhere, or, since gradients do not flow through
        them and do flow through the functional ones, those of tensors that have some."""
        if self.known("async_op"):
            raise Unsupported("async_op=True of a collective", breaks=True)
        if cresset.is_grad_enabled() and any(t.value.requires_grad for t in tensors):
            raise Unsupported("a collective writes to a tensor that requires gradients")


def _answers(function):
    """Decorator: calls of a function are what the decorated one says of a _Call."""

    def register(give):
        signature = inspect.signature(function)
        marks.answer(function, lambda evaluator, args, kwargs: give(_Call(evaluator, signature, args, kwargs)))
        return give

    return register


def _splits(call, name, tensor, group):
    sizes = call.known(name)
    rows = call.values[tensor].value.shape[0]
    if sizes is None:
        call.evaluator.rec.number(call.evaluator.rec.size(call.values[tensor], 0))
        return [rows // group.size()] * group.size()
    return [int(n) for n in sizes]


# --- functional collectives

@_answers(_functional_collectives.wait_tensor)
def _wait(call):
    return call.record(ops.wait_tensor, call.values["tensor"])


@_answers(_functional_collectives.all_reduce)
def _all_reduce(call):
    return call.operator("all_reduce", call.values["self"], call.known("reduceOp").lower(), call.group().group_name)


@_answers(_functional_collectives.broadcast)
def _broadcast(call):
    return call.operator("broadcast", call.values["self"], call.known("src"), call.group().group_name)


@_answers(_functional_collectives.all_gather_tensor)
def _all_gather_tensor(call):
    group, tensor = call.group(), call.values["self"]
    if call.known("gather_dim") not in (0, -tensor.value.dim()):
        raise Unsupported("all_gather_tensor along another dimension than the first")
    return call.operator("all_gather_into_tensor", tensor, group.size(), group.group_name)


@_answers(_functional_collectives.reduce_scatter_tensor)
def _reduce_scatter_tensor(call):
    group, tensor = call.group(), call.values["self"]
    if call.known("scatter_dim") not in (0, -tensor.value.dim()):
        raise Unsupported("reduce_scatter_tensor along another dimension than the first")
    return call.operator("reduce_scatter_tensor", tensor, call.known("reduceOp").lower(), group.size(), group.group_name)


@_answers(_functional_collectives.all_to_all_single)
def _all_to_all(call):
    group = call.group()
    received, sent = (_splits(call, name, "self", group) for name in ("output_split_sizes", "input_split_sizes"))
    return call.operator("all_to_all_single", call.values["self"], received, sent, group.group_name)


# --- those that write to their arguments

@_answers(_collectives.all_reduce)
def _write_all_reduce(call):
    call.writes(call.values["tensor"])
    result = call.operator("all_reduce", call.values["tensor"], reduction_name(call.known("op")), call.group().group_name)
    call.method("copy_", call.values["tensor"], result)
    return Known(None)


@_answers(_collectives.all_gather_into_tensor)
def _write_all_gather(call):
    group, out, tensor = call.group(), call.values["output_tensor"], call.values["input_tensor"]
    call.writes(out, tensor)
    if out.value.dim() != tensor.value.dim():
        raise Unsupported("all_gather_into_tensor stacks")
    call.method("copy_", out, call.operator("all_gather_into_tensor", tensor, group.size(), group.group_name))
    return Known(None)


@_answers(_collectives.reduce_scatter_tensor)
def _write_reduce_scatter(call):
    group, out, tensor = call.group(), call.values["output"], call.values["input"]
    call.writes(out, tensor)
    if out.value.dim() != tensor.value.dim():
        raise Unsupported("reduce_scatter_tensor of a stack")
    call.method("copy_", out, call.operator("reduce_scatter_tensor", tensor, reduction_name(call.known("op")), group.size(), group.group_name))
    return Known(None)


@_answers(_collectives.all_to_all_single)
def _write_all_to_all(call):
    group = call.group()
    call.writes(call.values["output"], call.values["input"])
    received, sent = _splits(call, "output_split_sizes", "output", group), _splits(call, "input_split_sizes", "input", group)
    call.method("copy_", call.values["output"], call.operator("all_to_all_single", call.values["input"], received, sent, group.group_name))
    return Known(None)


@_answers(_collectives.all_gather)
def _write_all_gather_parts(call):
    group, tensor, outputs = call.group(), call.values["tensor"], call.values["tensor_list"]
    call.writes(tensor)
    if not isinstance(outputs, list) or not tensor.value.dim() or any(o.value.shape != tensor.value.shape for o in outputs):
        raise Unsupported("all_gather of tensors of several shapes, or into a list from outside")
    result = call.operator("all_gather_into_tensor", tensor, group.size(), group.group_name)
    rows = call.evaluator.rec.number(call.evaluator.rec.size(tensor, 0)).obj
    parts = [call.record(operator.getitem, result, slice(Known(i * rows), Known((i + 1) * rows), Known(None))) for i in range(len(outputs))]
    for output, part in zip(outputs, parts):
        call.method("copy_", output, part)
    return Known(None)


def _breaks(function):
    def give(evaluator, args, kwargs):
        raise Unsupported(f"calls {function.__name__}, which no graph of a capture has", breaks=True)

    marks.answer(function, give)


for _name in (
    "all_gather_coalesced", "all_reduce_coalesced", "all_to_all", "barrier", "batch_isend_irecv", "broadcast", "gather", "irecv", "isend",
    "monitored_barrier", "recv", "reduce", "reduce_scatter", "scatter", "send",
):  # fmt: skip
    _breaks(getattr(_collectives, _name))


# --- questions

@_answers(_groups.get_rank)
def _rank(call):
    return Known(call.group().rank())


@_answers(_groups.get_world_size)
def _world_size(call):
    return Known(call.group().size())
