"""Adaptive softmax (Grave et al. 2017): rare classes in clusters with smaller projections."""

from typing import NamedTuple

import cresset
from cresset import Tensor
from cresset.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of `n_classes` classes, sorted by falling frequency, with clusters beginning at `cutoffs`.

    The head scores the classes before the first cutoff and the clusters; the projection of cluster i has
    in_features / div_value ** (i + 1) values. Input (N, in_features) or (in_features,), target (N,) or ().
    """

    def __init__(
        self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None
    ):  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):  # fmt: skip
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 "
                "and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        new = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **new)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(Linear(in_features, hidden, bias=False, **new), Linear(hidden, high - low, bias=False, **new))
            )

    def reset_parameters(self):
        """Draw the weights of all projections again."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """(log-probability of each target, their mean with the sign changed)."""
        input, target = input_, target_
        dim = target.dim()
        if dim == 1:
            if input.size(0) != target.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input.dim() != 2:
                raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {input.size()}")
        elif dim == 0:
            if input.dim() != 1:
                raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input.size()}")
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = dim == 1
        if not batched:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        if target.numel() > 0 and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{int(target.min())}, {int(target.max())}] "
                "were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = input.new_zeros([target.size(0)])
        # Each target is a column of the head, its own or that of its cluster, inside which the tail tells it from the others.
        columns = cresset.zeros_like(target)
        rows = (target < self.cutoffs[0]).nonzero().squeeze(1)
        if rows.numel() > 0:
            columns = columns.index_copy(0, rows, target.index_select(0, rows))
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() > 0:
                index = target.index_select(0, rows) - low
                inside = F.log_softmax(cluster(input.index_select(0, rows)), dim=1).gather(1, index.unsqueeze(1)).squeeze(1)
                columns = columns.index_fill(0, rows, self.shortlist_size + i)
                output = output.index_copy(0, rows, inside.to(output.dtype))
        output += head.gather(1, columns.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _full(self, input: Tensor, head: Tensor) -> Tensor:
        head = F.log_softmax(head, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return cresset.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes: (N, n_classes)."""
        return self._full(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row; clusters are looked into only where the head prefers one."""
        head = self.head(input)
        output = head.argmax(1)
        if bool((output < self.shortlist_size).all()):
            return output
        clustered = output >= self.shortlist_size
        rows = clustered.nonzero().squeeze(1)
        best = self._full(input.index_select(0, rows), head.index_select(0, rows)).argmax(1)
        return output.index_copy(0, rows, best)
