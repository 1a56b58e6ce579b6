"""context_parallel: attention, buffers and results over sequences that are cut among ranks."""

import contextlib

import cresset
from cresset.distributed import _functional_collectives as collectives
from cresset.nn import functional as F
from cresset.overrides import TorchFunctionMode

from ._load_balancer import _HeadTailLoadBalancer, _LoadBalancer  # noqa: F401  PyTorch's place
from ._options import (  # noqa: F401  PyTorch's place
    _CausalBehavior, _ContextParallelOptions, _cp_options, _is_causal_behavior, _RotateMethod, set_rotate_method,
)  # fmt: skip
from ._ring import ring_attention

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]


def _one_dimension(name, mesh):
    if mesh.ndim != 1:
        raise ValueError(f"{name}: a mesh of one dimension was required, not of {mesh.ndim}; mesh[name] is one of its dimensions.")
    return mesh.get_group()


class _AttentionInRing(TorchFunctionMode):
    """Attention of plain tensors goes around the ranks of a group, that of layers too."""

    def __init__(self, group):
        super().__init__()
        self.group = group

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is F.scaled_dot_product_attention:
            return ring_attention(self.group, *args, **kwargs)
        if function is not F.multi_head_attention_forward:
            return function(*args, **kwargs)
        if kwargs.get("need_weights", True):
            raise NotImplementedError("multi_head_attention_forward: weights are not possible for sequences that are cut among ranks (context_parallel); need_weights=False.")
        with self:
            return function.__wrapped__(*args, **kwargs)


def _default_balancer(length, mesh, device):
    return _HeadTailLoadBalancer(length, mesh.size(), device) if _cp_options.enable_load_balance else None


def _shard(name, tensor, dim, mesh, balancer):
    size = mesh.size()
    if tensor.shape[dim] % size:
        raise ValueError(f"{name}: a length of dimension {dim} that {size} ranks can share was required, not {tensor.shape[dim]}.")
    if balancer is not None:
        tensor = tensor.index_select(dim, balancer._generate_indices().flatten())
    return tensor.chunk(size, dim)[mesh.get_local_rank()].contiguous()


def _check(name, buffers, dims):
    if len(buffers) != len(dims):
        raise ValueError(f"{name}: a dimension for each buffer was required; there are {len(buffers)} buffers and {len(dims)} dimensions.")


def _context_parallel_shard(mesh, buffers, seq_dims, load_balancer=None):
    """This rank's part of each tensor along its dimension, in the order of a balancer if there is one; a list, or a dict for a dict."""
    _one_dimension("_context_parallel_shard", mesh)
    _check("_context_parallel_shard", buffers, seq_dims)
    if isinstance(buffers, dict):
        return {key: _shard("_context_parallel_shard", t, seq_dims[key], mesh, load_balancer) for key, t in buffers.items()}
    return [_shard("_context_parallel_shard", t, dim, mesh, load_balancer) for t, dim in zip(buffers, seq_dims)]


@cresset.no_grad()
def context_parallel_unshard(mesh, buffers, seq_dims, load_balancer=None):
    """Tensors as they are on one rank, of their parts on all ranks: what context_parallel has cut, or was computed of it.

    Without a `load_balancer` the order is that in which context_parallel cuts.
    """
    group = _one_dimension("context_parallel_unshard", mesh)
    _check("context_parallel_unshard", buffers, seq_dims)
    results = []
    for tensor, dim in zip(buffers, seq_dims):
        whole = collectives.all_gather_tensor(tensor.detach().contiguous(), dim % tensor.dim(), group)
        whole = cresset.ops._c10d_functional.wait_tensor(whole)
        balancer = load_balancer or _default_balancer(whole.shape[dim], mesh, whole.device)
        results.append(whole if balancer is None else whole.index_select(dim, balancer._generate_indices(restore=True).flatten()))
    return results


@contextlib.contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """A block in which sequences are cut among the ranks of a mesh of one dimension.

    `scaled_dot_product_attention` of this thread sees the keys of all ranks, in forward and backward; everything else works on the rank's own part. Each of
    `buffers` (inputs, targets, tables of positions: no parameters) becomes, in place, the rank's part along its entry of `buffer_seq_dims`; afterwards it is
    what it was, unless it is in `no_restore_buffers`. Rank r of n gets the parts r and 2n - 1 - r of 2n, so that causal attention costs all the same.

    ValueError for lengths that cannot be shared and for buffers that need gradients, before anything is changed; NotImplementedError for masks and dropout.
    """
    group = _one_dimension("context_parallel", mesh)
    buffers, dims, lost = list(buffers or ()), list(buffer_seq_dims or ()), set(map(id, no_restore_buffers or ()))
    _check("context_parallel", buffers, dims)
    if any(b.requires_grad for b in buffers):
        raise ValueError("context_parallel: buffers that need no gradients were required; they change in place.")
    if lost - set(map(id, buffers)):
        raise ValueError("context_parallel: `no_restore_buffers` must be a subset of `buffers`.")
    parts = [_shard("context_parallel", b, dim, mesh, _default_balancer(b.shape[dim], mesh, b.device)) for b, dim in zip(buffers, dims)]
    before = [None if id(b) in lost else b.clone() for b in buffers]
    for buffer, part in zip(buffers, parts):
        buffer.resize_(part.shape).copy_(part)
    try:
        with _AttentionInRing(group):
            yield
    finally:
        with cresset.no_grad():
            for buffer, whole in zip(buffers, before):
                if whole is not None:
                    buffer.requires_grad_(False).resize_(whole.shape).copy_(whole)
