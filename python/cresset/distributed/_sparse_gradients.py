"""Sparse gradients on their way between ranks: buckets of one parameter, and sums."""

import cresset

from . import _collectives

__all__ = ["SparseBucket", "sum_of_sparse"]


class SparseBucket:
    """The sparse gradient of one parameter, which is the buffer itself."""

    sparse = True

    def __init__(self, index, parameter):
        self.indices, self.parameters, self.views = [index], [parameter], [None]
        self.reset()

    def take(self, gradient):
        """The gradient of this pass; None is one without entries."""
        p = self.parameters[0]
        if gradient is None:
            gradient = cresset.sparse_coo_tensor(cresset.zeros(1, 0, dtype=cresset.int64), p.new_empty(0, *p.shape[1:]), p.shape)
        self.buffer = gradient.to_sparse() if gradient.layout == cresset.strided else gradient.clone()

    def views_of(self, buffer):
        return [buffer]

    def reset(self):
        self.missing, self.work, self.sent, self.buffer = 1, None, None, None


def sum_of_sparse(tensor, group):
    """The sum over ranks of sparse tensors: their entries, gathered from all."""
    tensor = tensor.coalesce()
    counts = [cresset.zeros(1, dtype=cresset.int64) for _ in range(group.size())]
    _collectives.all_gather(counts, cresset.tensor([tensor._nnz()]), group=group)
    most = max(int(n) for n in counts)
    parts = []
    for part in (tensor.indices().t().contiguous(), tensor.values()):
        padded = part.new_zeros(most, *part.shape[1:])
        padded[: part.shape[0]] = part
        everyone = [cresset.empty_like(padded) for _ in counts]
        _collectives.all_gather(everyone, padded, group=group)
        parts.append(cresset.cat([theirs[: int(n)] for theirs, n in zip(everyone, counts)]))
    return cresset.sparse_coo_tensor(parts[0].t(), parts[1], tensor.shape).coalesce()
