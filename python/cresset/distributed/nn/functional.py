"""Collectives that gradients flow through: the backward of each is the collective that goes the other way, and can be differentiated again.

They return new tensors; every rank takes part in the backward too. ValueError without a process group.
"""

import cresset
from cresset import distributed as dist
from cresset.autograd import Function

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip

_NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


def _group(group):
    if not dist.is_initialized():
        raise ValueError(_NO_GROUP)
    return dist.group.WORLD if group is None else group


def _here(group, rank):
    """Is this process the rank, one of the default group's, of which `group` may have other numbers?"""
    return dist.get_rank(group) == dist.get_group_rank(group, rank)


def _like(tensor):
    return cresset.empty_like(tensor, memory_format=cresset.contiguous_format)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        tensor = tensor.clone()
        dist.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx, gradient):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, gradient)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, source, group, tensor):
        ctx.source, ctx.group = source, group
        tensor = tensor.clone()
        dist.broadcast(tensor, source, group)
        return tensor

    @staticmethod
    def backward(ctx, gradient):
        total = _Reduce.apply(ctx.source, dist.ReduceOp.SUM, ctx.group, gradient)
        return None, None, total if _here(ctx.group, ctx.source) else cresset.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, destination, op, group, tensor):
        ctx.destination, ctx.group = destination, group
        tensor = tensor.clone()
        dist.reduce(tensor, destination, op, group)
        return tensor

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None, _Broadcast.apply(ctx.destination, ctx.group, gradient)


class _Gather(Function):
    @staticmethod
    def forward(ctx, destination, group, tensor):
        ctx.destination, ctx.group = destination, group
        parts = [cresset.zeros_like(tensor, memory_format=cresset.contiguous_format) for _ in range(dist.get_world_size(group))]
        dist.gather(tensor, parts if _here(group, destination) else None, destination, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, _Scatter.apply(ctx.destination, ctx.group, *gradients)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, source, group, *tensors):
        ctx.source, ctx.group = source, group
        part = _like(tensors[0])
        dist.scatter(part, list(tensors) if _here(group, source) else None, source, group)
        return part

    @staticmethod
    def backward(ctx, gradient):
        return None, None, *_Gather.apply(ctx.source, ctx.group, gradient)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *tensors):
        ctx.group = group
        output = _like(output)
        dist.reduce_scatter(output, [t.contiguous() for t in tensors], op, group)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None, *_AllGather.apply(ctx.group, gradient)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        parts = [_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, tensor, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *gradients):
        mine = gradients[dist.get_rank(ctx.group)]
        return None, _ReduceScatter.apply(dist.ReduceOp.SUM, ctx.group, mine, *gradients)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, shapes, *tensors):
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        outputs = [tensors[0].new_empty(shape) for shape in shapes]
        dist.all_to_all(outputs, [t.contiguous() for t in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *gradients)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, shape, output_sizes, input_sizes, tensor):
        ctx.group, ctx.shape, ctx.sizes = group, tensor.shape, (input_sizes, output_sizes)
        output = tensor.new_empty(shape)
        dist.all_to_all_single(output, tensor.contiguous(), output_sizes, input_sizes, group)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, ctx.shape, *ctx.sizes, gradient)


def all_reduce(tensor, op=dist.ReduceOp.SUM if dist.is_available() else None, group=None):
    """The tensors of all ranks, reduced. The backward reduces gradients with the same `op`."""
    return _AllReduce.apply(op, _group(group), tensor)


def broadcast(tensor, src, group=None):
    """The tensor of rank `src`. Its gradient there is the sum of all ranks', zeros elsewhere."""
    return _Broadcast.apply(src, _group(group), tensor)


def reduce(tensor, dst, op=dist.ReduceOp.SUM if dist.is_available() else None, group=None):
    """The tensors of all ranks, reduced, on rank `dst`; others get their own back. The gradient is that of `dst`."""
    return _Reduce.apply(dst, op, _group(group), tensor)


def gather(tensor, dst=0, group=None):
    """A tuple of the tensors of all ranks on rank `dst`; zeros on others. Gradients are scattered from `dst`."""
    return _Gather.apply(dst, _group(group), tensor)


def scatter(tensors, src=0, group=None):
    """This rank's tensor of the list of rank `src`; others give a list of tensors of that shape. Gradients are gathered at `src`."""
    return _Scatter.apply(src, _group(group), *tensors)


def reduce_scatter(output, input_list, op=dist.ReduceOp.SUM if dist.is_available() else None, group=None):
    """The reduction of the tensors that all ranks have for this one; `output` gives its shape. Gradients are gathered by all."""
    return _ReduceScatter.apply(op, _group(group), output, *input_list)


def all_gather(tensor, group=None):
    """A tuple of the tensors of all ranks, of one shape. The gradient is the sum of what all ranks have for this one."""
    return _AllGather.apply(_group(group), tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """A tuple of what the ranks have for this one, in the shapes of `output_tensor_list`; the r-th input goes to rank r."""
    return _AllToAll.apply(_group(group), [t.shape for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """all_to_all of parts of one tensor along dimension 0, equal ones or of the given sizes, in the shape of `output`."""
    return _AllToAllSingle.apply(_group(group), output.shape, output_split_sizes, input_split_sizes, input)
