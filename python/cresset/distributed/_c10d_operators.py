"""PyTorch's collectives as operators: what modes, graphs and tensors of classes of their own see of `all_reduce` and the others.

A group stands in them by its name and a reduction by its own, so that graphs can be written to files. There is no Work among the results: who begins
a collective inside of `_works.collecting()` finds it in the list; without, the operator waits, since nobody else can.
"""

from datetime import timedelta

import cresset
from cresset import _C_distributed as _C

from ._reductions import reduction
from ._works import begun
from ._world import _resolve_process_group

__all__ = []

_GROUP, _REDUCED, _LATER = "Any process_group", "Any process_group, Any reduce_op", "bool async_op=True, int timeout=-1"
_SCHEMAS = f"""
broadcast_(Tensor[] tensors, {_GROUP}, int root_rank, int root_tensor, {_LATER}) -> (Tensor[], Any)
allreduce_(Tensor[] tensors, {_REDUCED}, Tensor? sparse_indices, {_LATER}) -> (Tensor[], Any)
allreduce_coalesced_(Tensor[] tensors, {_REDUCED}, {_LATER}) -> Any
allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, {_LATER}) -> (Tensor[][], Any)
_allgather_base_(Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_LATER}) -> (Tensor, Any)
allgather_coalesced_(Tensor[][] output_lists, Tensor[] input_list, {_GROUP}, bool async_op=True) -> Any
allgather_into_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, {_GROUP}, bool async_op=True) -> Any
reduce_scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, {_REDUCED}, {_LATER}) -> (Tensor[], Any)
_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, {_REDUCED}, {_LATER}) -> (Tensor, Any)
reduce_scatter_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, {_REDUCED}, {_LATER}) -> Any
reduce_(Tensor[] tensors, {_REDUCED}, int root_rank, int root_tensor, {_LATER}) -> Any
gather_(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, int root_rank, {_LATER}) -> Any
scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP}, int root_rank, {_LATER}) -> (Tensor[], Any)
alltoall_(Tensor[] output_tensors, Tensor[] input_tensors, {_GROUP}, {_LATER}) -> (Tensor[], Any)
alltoall_base_(Tensor output, Tensor input, {_GROUP}, int[] output_split_sizes, int[] input_split_sizes, {_LATER}) -> Any
barrier(Tensor tensor, {_GROUP}, int[] device_ids, {_LATER}) -> Any
send(Tensor[] tensors, {_GROUP}, int dst, int tag) -> Any
recv_(Tensor[] tensors, {_GROUP}, int src, int tag) -> Any
recv_any_source_(Tensor[] tensors, {_GROUP}, int tag) -> Any
""".strip().splitlines()


def _options(kind, async_op, timeout=-1, **values):
    opts = kind()
    opts.asyncOp = async_op
    if timeout >= 0:
        opts.timeout = timedelta(milliseconds=timeout)
    for name, value in values.items():
        setattr(opts, name, value)
    return opts


# --- kernels, which give the Work


def _reduced(kind, op, async_op, timeout, **values):
    return _options(kind, async_op, timeout, reduceOp=reduction(op), **values)


def _broadcast_(tensors, group, root_rank, root_tensor, async_op=True, timeout=-1):
    return group.broadcast(tensors, _options(_C.BroadcastOptions, async_op, timeout, rootRank=root_rank, rootTensor=root_tensor))


def _allreduce_(tensors, group, op, sparse_indices=None, async_op=True, timeout=-1):
    return group.allreduce(tensors, _reduced(_C.AllreduceOptions, op, async_op, timeout))


def _allreduce_coalesced_(tensors, group, op, async_op=True, timeout=-1):
    return group.allreduce_coalesced(tensors, _reduced(_C.AllreduceCoalescedOptions, op, async_op, timeout))


def _allgather_(outputs, inputs, group, async_op=True, timeout=-1):
    return group.allgather(outputs, inputs, _options(_C.AllgatherOptions, async_op, timeout))


def _allgather_base_(output, input, group, async_op=True, timeout=-1):
    return group._allgather_base(output, input, _options(_C.AllgatherOptions, async_op, timeout))


def _allgather_coalesced_(outputs, inputs, group, async_op=True):
    return group.allgather_coalesced(outputs, inputs, _options(_C.AllgatherOptions, async_op))


def _allgather_into_tensor_coalesced_(outputs, inputs, group, async_op=True):
    return group.allgather_into_tensor_coalesced(outputs, inputs, _options(_C.AllgatherOptions, async_op))


def _reduce_scatter_(outputs, inputs, group, op, async_op=True, timeout=-1):
    return group.reduce_scatter(outputs, inputs, _reduced(_C.ReduceScatterOptions, op, async_op, timeout))


def _reduce_scatter_base_(output, input, group, op, async_op=True, timeout=-1):
    return group._reduce_scatter_base(output, input, _reduced(_C.ReduceScatterOptions, op, async_op, timeout))


def _reduce_scatter_tensor_coalesced_(outputs, inputs, group, op, async_op=True, timeout=-1):
    return group.reduce_scatter_tensor_coalesced(outputs, inputs, _reduced(_C.ReduceScatterOptions, op, async_op, timeout))


def _reduce_(tensors, group, op, root_rank, root_tensor, async_op=True, timeout=-1):
    return group.reduce(tensors, _reduced(_C.ReduceOptions, op, async_op, timeout, rootRank=root_rank, rootTensor=root_tensor))


def _gather_(outputs, inputs, group, root_rank, async_op=True, timeout=-1):
    return group.gather(outputs, inputs, _options(_C.GatherOptions, async_op, timeout, rootRank=root_rank))


def _scatter_(outputs, inputs, group, root_rank, async_op=True, timeout=-1):
    return group.scatter(outputs, inputs, _options(_C.ScatterOptions, async_op, timeout, rootRank=root_rank))


def _alltoall_(outputs, inputs, group, async_op=True, timeout=-1):
    return group.alltoall(outputs, inputs, _options(_C.AllToAllOptions, async_op, timeout))


def _alltoall_base_(output, input, group, output_split_sizes, input_split_sizes, async_op=True, timeout=-1):
    return group.alltoall_base(output, input, list(output_split_sizes), list(input_split_sizes), _options(_C.AllToAllOptions, async_op, timeout))


def _barrier(tensor, group, device_ids, async_op=True, timeout=-1):
    return group.barrier(_options(_C.BarrierOptions, async_op, timeout, device_ids=list(device_ids)))


def _send(tensors, group, dst, tag):
    return group.send(tensors, dst, tag)


def _recv_(tensors, group, src, tag):
    return group.recv(tensors, src, tag)


def _recv_any_source_(tensors, group, tag):
    return group.recv_anysource(tensors, tag)


# --- the operators

_library = cresset.library.Library("c10d", "FRAGMENT")


def _define(schema):
    name = schema.partition("(")[0]
    begin = globals()[name if name.startswith("_") else "_" + name]
    place = [part.split()[1] for part in schema[len(name) + 1 : schema.index(") ->")].split(", ")].index("process_group")
    gives_tensors = not schema.endswith("-> Any")

    def kernel(*args):
        args = list(args)
        if isinstance(args[place], str):
            args[place] = _resolve_process_group(args[place])
        if not isinstance(args[place], _C.ProcessGroup):
            raise RuntimeError(
                f"c10d::{name}() Expected a value of type '__torch__.torch.classes.c10d.ProcessGroup' for argument 'process_group' but instead "
                f"found type '{type(args[place]).__name__}'."
            )
        begun(begin(*args))
        return (args[0], None) if gives_tensors else None

    def without_values(*args):
        return (args[0], None) if gives_tensors else None

    _library.define(schema, "CONSERVATIVE")  # their marks do not say what they write
    _library.impl(name, kernel, "CompositeExplicitAutograd")
    _library.impl(name, without_values, "Meta")


for _schema in _SCHEMAS:
    _define(_schema)
