"""all_reduce of sparse tensors: everybody's entries go to everybody, and those at one place are added."""

import cresset
from cresset import _C_distributed as _C

from ._works import FutureWork

__all__ = ["sum_sparse"]


def _gather(group, tensor, opts):
    """Start to gather tensors of one shape; the Work and the list that it fills."""
    everyone = [cresset.empty_like(tensor) for _ in range(group.size())]
    return group.allgather([everyone], [tensor], opts), everyone


def sum_sparse(tensor, op, group, async_op):
    """Make the COO tensor the sum of those of all ranks, coalesced; they have one size and one number of sparse dimensions.

    A Work with `async_op`, else None. RuntimeError for another operation than SUM, another layout, and on all ranks where sizes differ.
    """
    if tensor.layout != cresset.sparse_coo:
        raise RuntimeError("ProcessGroupGloo::allreduce: unsupported layout")
    if op != _C.ReduceOp.SUM:
        raise RuntimeError("ProcessGroupGloo::allreduce: unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)")
    with cresset.no_grad():
        own = tensor.coalesce()
        counts = _entries_of_all(own, group)
        opts = _C.AllgatherOptions()
        opts.asyncOp = async_op
        gathered = [_gather(group, _padded(part, max(counts)), opts) for part in (own.indices().t(), own.values())]

    def add(_=None):
        with cresset.no_grad():
            indices, entries = (cresset.cat([theirs[:n] for theirs, n in zip(everyone, counts)]) for _, everyone in gathered)
            tensor.copy_(cresset.sparse_coo_tensor(indices.t(), entries, own.shape, check_invariants=False).coalesce())
        return [tensor]

    if async_op:
        return FutureWork(cresset.futures.collect_all([work.get_future() for work, _ in gathered]).then(add))
    for work, _ in gathered:
        work.wait()
    add()
    return None


def _padded(rows, most):
    out = rows.new_zeros(most, *rows.shape[1:])
    out[: rows.shape[0]] = rows
    return out


def _entries_of_all(tensor, group):
    """How many entries each rank has."""
    sizes = [tensor._nnz(), tensor.sparse_dim(), tensor.dim(), *tensor.shape]
    head = cresset.zeros(8 + 64, dtype=cresset.int64)
    if len(sizes) > len(head):
        raise RuntimeError(f"all_reduce: a sparse tensor of up to {len(head) - 3} dimensions was required; one of {tensor.dim()} was given.")
    head[: len(sizes)] = cresset.tensor(sizes)
    work, everyone = _gather(group, head, _C.AllgatherOptions())
    work.wait()
    for rank, theirs in enumerate(everyone):
        if not theirs[1:].equal(everyone[0][1:]):
            raise RuntimeError(f"all_reduce: sparse tensors of one size were required on all ranks; that of rank {rank} differs from that of rank 0.")
    return [int(theirs[0]) for theirs in everyone]
