"""Collectives that return new tensors, for programs that are traced or differentiated.

Each begins at once and gives an AsyncCollectiveTensor, which waits when it is first used. A group is a ProcessGroup, its name, a list of ranks,
a mesh of one dimension, or (mesh, dimension). Gradients flow through all of them where the reduction is a sum.
"""

import contextlib

import cresset
from cresset import _C
from cresset.utils._pytree import tree_map_only

from . import _groups
from ._collective_operators import ops, wait
from ._observed import gives_graph_or_no_values
from ._reductions import REDUCTIONS
from ._world import _resolve_process_group, current
from .device_mesh import DeviceMesh

__all__ = [
    "AsyncCollectiveTensor", "all_gather_into_tensor_coalesced", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce", "all_reduce_coalesced",
    "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced", "wait_tensor",
]

REDUCE_OP_TO_STR = {op: name for name, op in REDUCTIONS.items()}


# --- groups

def _mesh_group(mesh, dim):
    if not isinstance(dim, int):
        raise ValueError("Invalid tuple for group must be (DeviceMesh, int)")
    return mesh.get_group(dim)


def _ranks_group(ranks, tag):
    if ranks and isinstance(ranks[0], (list, tuple)):
        if len({len(part) for part in ranks}) > 1:
            raise ValueError("group sizes must be identical found " + ", ".join(str(len(part)) for part in ranks))
        mine = next((part for part in ranks if _groups.get_rank() in part), None)
        if mine is None:
            raise ValueError(f"rank {_groups.get_rank()} is in none of the groups {ranks}")
        ranks = mine
    for group, places in current().pg_group_ranks.items():
        if list(places) == list(ranks):
            return group
    raise ValueError(f"There is no process group of the ranks {ranks}: new_group makes one.")


def _process_group(group, tag=""):
    if isinstance(group, _groups.ProcessGroup):
        return group
    if isinstance(group, DeviceMesh):
        assert group.ndim == 1, "Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D"
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return _mesh_group(*group)
    if isinstance(group, list):
        return _ranks_group(group, tag)
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _resolve_group_name(group, tag=""):
    """The name of a group."""
    return group if isinstance(group, str) else _process_group(group, tag).group_name


def _expand_group(group, tag=""):
    """(tag, all ranks, size of the group)."""
    if isinstance(group, list):
        if group and isinstance(group[0], (list, tuple)):
            sizes = {len(part) for part in group}
            if len(sizes) > 1:
                raise ValueError(f"group sizes must be identical found {sorted(sizes)}")
            return tag, [rank for part in group for rank in part], sizes.pop()
        return tag, list(group), len(group)
    resolved = _resolve_process_group(group) if isinstance(group, str) else _process_group(group, tag)
    ranks = _groups.get_process_group_ranks(resolved)
    return tag or _groups._get_group_tag(resolved), ranks, len(ranks)


def _size(name):
    return _resolve_process_group(name).size()


# --- results that wait

def _are_we_tracing():
    """Is a mode active that records operators, or one whose tensors have no values?"""
    return gives_graph_or_no_values()


class AsyncCollectiveTensor(cresset.Tensor):
    """The result of a collective that may be under way: any operator on it waits first, a view does not."""

    __slots__ = ["elem", "completed"]
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem):
        self = cresset.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, layout=elem.layout, device=elem.device,
            requires_grad=elem.requires_grad,
        )  # fmt: skip
        self.elem, self.completed = elem, False
        return self

    def __tensor_flatten__(self):
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors, meta, outer_size, outer_stride):
        return AsyncCollectiveTensor(inner_tensors["elem"])

    def tolist(self):
        """The nested list of the elements."""
        return self.trigger_wait().tolist()

    def numpy(self, *args, **kwargs):
        """The result as an array."""
        return self.trigger_wait().numpy(*args, **kwargs)

    def trigger_wait(self):
        """Wait, and give the tensor itself."""
        if not self.completed:
            self.completed = True
            return wait_tensor(self.elem)
        return self.elem

    def wait(self):
        """Wait, and give the tensor itself."""
        return wait_tensor(self.elem)

    def __repr__(self):
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is cresset.ops.aten.view.default:
            return _wrapped(func(args[0].elem, *args[1:]))
        is_wait = func is ops.wait_tensor.default

        def plain(tensor):
            if not is_wait:
                tensor.trigger_wait()
            return tensor.elem

        return func(*tree_map_only(AsyncCollectiveTensor, plain, args), **tree_map_only(AsyncCollectiveTensor, plain, kwargs or {}))


class _Wrap(cresset.autograd.Function):
    """AsyncCollectiveTensor around a result, for gradients, which pass through."""

    @staticmethod
    def forward(ctx, tensor):
        return AsyncCollectiveTensor(tensor.detach())

    @staticmethod
    def backward(ctx, grad):
        return grad.trigger_wait() if isinstance(grad, AsyncCollectiveTensor) else grad


def _wrapped(tensor):
    return _Wrap.apply(tensor) if tensor.requires_grad and cresset.is_grad_enabled() else AsyncCollectiveTensor(tensor.detach())


def _maybe_wrap_tensor(tensor):
    if _are_we_tracing() or tensor.device.type == "meta":
        return wait_tensor(tensor)
    return _wrapped(tensor)


def wait_tensor(tensor):
    """Wait until the collective that makes `tensor` is done; the tensor."""
    return ops.wait_tensor(tensor)


# --- collectives

def broadcast(self, src, group, tag=""):
    """What rank `src` of the group has, on all of its ranks."""
    return _maybe_wrap_tensor(ops.broadcast(self, src, _resolve_group_name(group, tag)))


def all_reduce(self, reduceOp, group, tag=""):
    """The tensors of all ranks reduced ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")."""
    return _maybe_wrap_tensor(ops.all_reduce(self, reduceOp.lower(), _resolve_group_name(group, tag)))


def all_gather_tensor(self, gather_dim, group, tag=""):
    """The tensors of all ranks, of one shape, behind each other along a dimension."""
    name = _resolve_group_name(group, tag)
    size = _size(name)
    result = _maybe_wrap_tensor(ops.all_gather_into_tensor(self, size, name))
    if gather_dim in (0, -self.dim()):
        return result
    if isinstance(result, AsyncCollectiveTensor):
        result = result.trigger_wait() if not result.requires_grad else result + 0
    return cresset.cat(cresset.chunk(result, size, dim=0), dim=gather_dim)


all_gather_tensor_autograd = all_gather_single = all_gather_single_autograd = all_gather_tensor


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """The tensors of all ranks reduced; rank r has the r-th part along a dimension, whose size is a multiple of the group's."""
    name = _resolve_group_name(group, tag)
    size = _size(name)
    assert self.size(scatter_dim) % size == 0, f"input dimension {scatter_dim} ({self.size(scatter_dim)} must be a multiple of group_size {size})"
    if scatter_dim not in (0, -self.dim()):
        self = cresset.cat(cresset.chunk(self, size, dim=scatter_dim))
    return _maybe_wrap_tensor(ops.reduce_scatter_tensor(self, reduceOp.lower(), size, name))


reduce_scatter_tensor_autograd = reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    """all_reduce of each tensor of a list."""
    return [_maybe_wrap_tensor(t) for t in ops.all_reduce_coalesced(self, reduceOp.lower(), _resolve_group_name(group, tag))]


def all_gather_into_tensor_coalesced(self, group, tag=""):
    """all_gather_tensor of each tensor of a list, along dimension 0."""
    name = _resolve_group_name(group, tag)
    return [_maybe_wrap_tensor(t) for t in ops.all_gather_into_tensor_coalesced(self, _size(name), name)]


def reduce_scatter_tensor_coalesced(inputs, reduceOp, scatter_dim, group, tag=""):
    """reduce_scatter_tensor of each tensor of a list; `scatter_dim` has a dimension for each."""
    name = _resolve_group_name(group, tag)
    size = _size(name)
    assert len(scatter_dim) == len(inputs)
    for i, (dim, tensor) in enumerate(zip(scatter_dim, inputs)):
        assert tensor.size(dim) % size == 0, f"input dimension {dim} ({tensor.size(dim)} must be a multiple of group_size {size} for tensor at index {i}"
    inputs = [t if dim == 0 else cresset.cat(cresset.chunk(t, size, dim=dim)) for dim, t in zip(scatter_dim, inputs)]
    return [_maybe_wrap_tensor(t) for t in ops.reduce_scatter_tensor_coalesced(inputs, reduceOp.lower(), size, name)]


all_gather_single_coalesced, reduce_scatter_single_coalesced = all_gather_into_tensor_coalesced, reduce_scatter_tensor_coalesced


def _splits(tensor, sizes, group_size):
    if sizes is None:
        assert tensor.shape[0] % group_size == 0, f"First dimension of self must be divisible by group size {group_size} where no split sizes are given"
        return [int(tensor.shape[0]) // group_size] * group_size
    return list(sizes)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Each rank sends the r-th part of its rows to rank r; the parts are equal without sizes."""
    for sizes in (output_split_sizes, input_split_sizes):
        assert sizes is None or all(isinstance(size, int) for size in sizes), sizes
    name = _resolve_group_name(group, tag)
    size = _size(name)
    assert (output_split_sizes is None) == (input_split_sizes is None), "output_split_sizes and input_split_sizes must either be specified together or both set to None"
    received, sent = _splits(self, output_split_sizes, size), _splits(self, input_split_sizes, size)
    return _maybe_wrap_tensor(ops.all_to_all_single(self, received, sent, name))


all_to_all_single_autograd = all_to_all_single


def permute_tensor(self, src_dst, group, tag=""):
    """Rank r's tensor goes to rank `src_dst[r]`: a permutation of the group's ranks."""
    name = _resolve_group_name(group, tag)
    size, rank = _size(name), _resolve_process_group(name).rank()
    received, sent = [0] * size, [0] * size
    for source, destination in enumerate(src_dst):
        if source == rank:
            sent[destination] = self.shape[0]
        if destination == rank:
            received[source] = self.shape[0]
    return all_to_all_single(self, received, sent, name, tag)


# --- c10d's signatures: they write to their arguments

def all_gather_tensor_inplace(output_tensor, input_tensor, group=None, async_op=False, tag="", gather_dim=0):
    """all_gather_tensor into `output_tensor`."""
    assert not async_op, "Can't remap async version of inplace op to functional collective"
    return output_tensor.copy_(all_gather_tensor(input_tensor, gather_dim, group or _groups._get_default_group(), tag))


def reduce_scatter_tensor_inplace(output, input, op="sum", group=None, async_op=False, scatter_dim=0, tag=""):
    """reduce_scatter_tensor into `output`."""
    assert not async_op, "Can't remap async version of inplace op to functional collective"
    return output.copy_(reduce_scatter_tensor(input, op, scatter_dim, group or _groups._get_default_group(), tag))


def all_reduce_inplace(tensor, op="sum", group=None, async_op=False, tag=""):
    """all_reduce into `tensor`."""
    assert not async_op, "Can't remap async version of inplace op to functional collective"
    return tensor.copy_(all_reduce(tensor, op, group or _groups._get_default_group(), tag))


def all_to_all_inplace(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False, tag=""):
    """all_to_all_single into `output`."""
    assert not async_op, "Can't remap async version of inplace op to functional collective"
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes, group or _groups._get_default_group(), tag))


def all_gather_inplace(tensor_list, tensor, group=None, async_op=False, tag=""):
    """all_gather into a list of tensors."""
    assert not async_op, "Can't remap async version of inplace op to functional collective"
    parts = all_gather_tensor(tensor, 0, group or _groups._get_default_group(), tag).split([t.shape[0] for t in tensor_list])
    return [kept.copy_(part) for kept, part in zip(tensor_list, parts)]


def _rank_in(group, rank, group_rank):
    return group_rank if group_rank >= 0 else _groups.get_group_rank(group, rank)


def isend_inplace(tensor, dst, tag=0, group=None, group_dst=-1):
    """Begin to send; the tensor itself, for which wait_tensor waits."""
    group = group or _groups._get_default_group()
    return _maybe_wrap_tensor(ops.isend(tensor, _rank_in(group, dst, group_dst), tag, group.group_name))


def irecv_inplace(tensor, src, tag=0, group=None, group_src=-1):
    """Begin to receive into a tensor; the tensor itself, for which wait_tensor waits."""
    group = group or _groups._get_default_group()
    return _maybe_wrap_tensor(ops.irecv(tensor, _rank_in(group, src, group_src), tag, group.group_name))


def batch_p2p_ops_inplace(op_list, peer_list, tag_list, tensors, group_name):
    """Begin several messages ("isend", "irecv"); the tensors, for which wait_tensor waits."""
    return [_maybe_wrap_tensor(t) for t in ops.batch_p2p_ops(op_list, peer_list, tag_list, tensors, _resolve_group_name(group_name))]


@contextlib.contextmanager
def allow_inflight_collective_as_graph_input_ctx(value=True):
    """No effect: a collective that is under way may be an input of any graph."""
    yield


_wait = wait
