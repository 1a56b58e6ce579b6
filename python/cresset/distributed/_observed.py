"""Collectives where somebody sees a program's operators: dispatch modes, graphs that are recorded, tensors of classes of their own.

make_fx and modes see PyTorch's `c10d` operators, which write to their arguments. Programs of torch.export and scripts of traces get the functional
ones and a copy, since what these make of a graph moves and drops operators by what their schemas say.
"""

import sys

import cresset
from cresset import _C
from cresset.futures import Future

from ._reductions import reduction_name
from ._works import FutureWork, collecting

__all__ = ["gives_graph_of_calls", "gives_graph_or_no_values", "observe", "observed"]

_Tensor, _Parameter = cresset.Tensor, cresset.nn.Parameter
_modes, _tracing, _modules = _C._len_torch_dispatch_stack, _C._is_tracing, sys.modules
# The modules of modes that record and of tensors without values; whatever uses one has loaded them.
_RECORDERS, _FAKES = "cresset.fx.experimental.proxy_tensor", "cresset._subclasses.fake_tensor"


def gives_graph_of_calls():
    """Are operators recorded as the program calls them: by a trace, or for a program of torch.export?"""
    if _C._is_tracing():
        return True
    recorders = sys.modules.get(_RECORDERS)
    return recorders is not None and recorders.recorder_of_calls() is not None


def gives_graph_or_no_values():
    """Is a mode active that records operators, or one whose tensors have no values?"""
    if gives_graph_of_calls():
        return True
    recorders, fakes = sys.modules.get(_RECORDERS), sys.modules.get(_FAKES)
    return recorders is not None and recorders.get_proxy_mode() is not None or fakes is not None and fakes.active_mode() is not None


def observed(*tensors):
    """Does somebody see what operators do with these tensors?"""
    if _modes() or _tracing():  # in front of each message: quick where nobody does
        return True
    recorders = _modules.get(_RECORDERS)
    if recorders is not None and recorders.recorder_of_calls() is not None:
        return True
    for t in tensors:
        kind = type(t)
        if kind is not _Tensor and kind is not _Parameter and kind.__torch_dispatch__ is not _Tensor.__torch_dispatch__:
            return True
    return False


def _done(tensors):
    future = Future()
    future.set_result(tensors)
    return FutureWork(future)


def observe(name, arguments, group, async_op, functional=None, op=None):
    """One collective: the operator c10d::`name` of (*arguments before the group, group, reduction `op`, *arguments after it), or where that
    does, `functional(its module, the group's name, the reduction's)`. A Work with `async_op`, else None.
    """
    before, after = arguments
    name_of_op = () if op is None else (reduction_name(op),)
    if functional is not None and gives_graph_of_calls():
        functional(cresset.distributed._functional_collectives, group.group_name, *name_of_op)
        return _done([]) if async_op else None
    if _C._is_tracing():
        raise RuntimeError(f"jit.trace: a trace cannot hold {name.strip('_')} as it is called here. Name the rank that sends, or call it outside of what is traced.")
    with collecting() as works:
        getattr(cresset.ops.c10d, name)(*before, group.group_name, *name_of_op, *after)
    work = works[-1] if works else _done(list(before))
    if async_op:
        return work
    work.wait()
    return None


# --- functional forms that write to the collective's arguments


def wait_for_all(f, group):
    """Of barrier: a sum that all ranks wait for."""
    f.wait_tensor(f.ops.all_reduce(cresset.zeros(1), "sum", group))


def wait_for_sent(tensor, destination, tag):
    """Of send."""
    return lambda f, group: f.wait_tensor(f.ops.isend(tensor, destination, tag, group))


def copy_received(tensor, source, tag):
    """Of recv."""
    return lambda f, group: tensor.copy_(f.wait_tensor(f.ops.irecv(cresset.empty_like(tensor), source, tag, group)))


def copy_broadcast(tensor, root):
    """Of broadcast."""
    return lambda f, group: tensor.copy_(f.broadcast(tensor, root, group))


def copy_reduced(tensor):
    """Of all_reduce."""
    return lambda f, group, op: tensor.copy_(f.all_reduce(tensor, op, group))


def copy_reduced_at(tensor, is_root):
    """Of reduce: all ranks have the result, and the root keeps it."""

    def run(f, group, op):
        result = f.all_reduce(tensor, op, group)
        return tensor.copy_(result) if is_root else None

    return run


def copy_gathered_at(outputs, tensor, is_root):
    """Of gather."""

    def run(f, group):
        rows = f.all_gather_tensor(tensor.unsqueeze(0), 0, group)
        for i, output in enumerate(outputs if is_root else ()):
            output.copy_(rows[i])

    return run


def copy_gathered_parts(outputs, tensor):
    """Of all_gather: the parts of one result."""

    def run(f, group):
        result, places = f.all_gather_tensor(tensor, 0, group), [0]
        for output in outputs:
            places.append(places[-1] + (int(output.shape[0]) if output.dim() else 1))
        parts = [result[start:end] for start, end in zip(places, places[1:])]
        for output, part in zip(outputs, parts):
            output.copy_(part if output.dim() else part[0])

    return run


def copy_scattered(output, inputs, root, group_size, rank):
    """Of scatter: the root's list goes everywhere."""

    def run(f, group):
        rows = cresset.stack(inputs) if inputs else output.new_zeros((group_size, *output.shape))
        output.copy_(f.broadcast(rows, root, group)[rank])

    return run


def copy_reduced_parts(output, inputs):
    """Of reduce_scatter of a list."""
    return lambda f, group, op: output.copy_(f.reduce_scatter_tensor(cresset.stack(inputs), op, 0, group).reshape(output.shape))


def copy_reduced_part(output, input, group_size):
    """Of reduce_scatter_tensor."""
    return lambda f, group, op: output.copy_(f.reduce_scatter_tensor(_of_rows(input, group_size), op, 0, group).reshape(output.shape))


def _of_rows(tensor, count):
    return tensor if tensor.dim() and tensor.shape[0] % count == 0 else tensor.reshape(-1)


def copy_gathered(output, input):
    """Of all_gather_into_tensor."""
    return lambda f, group: output.copy_(f.all_gather_tensor(input, 0, group).reshape(output.shape))


def copy_exchanged(output, input, output_split_sizes, input_split_sizes):
    """Of all_to_all_single; sizes may be missing on one side."""

    def run(f, group):
        received, sent = output_split_sizes, input_split_sizes
        if received or sent:
            size = f._size(group)
            received, sent = received or [int(output.shape[0]) // size] * size, sent or [int(input.shape[0]) // size] * size
        output.copy_(f.all_to_all_single(input, received or None, sent or None, group))

    return run


def copy_exchanged_parts(outputs, inputs):
    """Of all_to_all of lists."""

    def run(f, group):
        sizes = [int(t.numel()) for t in outputs]
        all_parts = f.all_to_all_single(cresset.cat([t.reshape(-1) for t in inputs]), sizes, [int(t.numel()) for t in inputs], group)
        for output, part in zip(outputs, all_parts.split(sizes)):
            output.copy_(part.reshape(output.shape))

    return run


def copy_each(outputs, function):
    """Of collectives of several tensors: each result into its tensor."""

    def run(f, *names):
        for output, result in zip(outputs, function(f, *names)):
            output.copy_(result.reshape(output.shape))

    return run
