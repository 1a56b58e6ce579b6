"""Buckets of one parameter with sparse gradients."""

import cresset

__all__ = ["SparseBucket"]


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
