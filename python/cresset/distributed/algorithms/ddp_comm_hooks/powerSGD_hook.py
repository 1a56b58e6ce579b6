"""Gradients as products of two thin matrices: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression" (2019)."""

import math

import cresset
from cresset import distributed as dist
from cresset._logging import logger_of

from . import default_hooks

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_logger = logger_of(__name__)


def _orthogonalize(matrices, epsilon=0):
    """Orthonormal columns, in place, of a batch of matrices of full column rank; `epsilon` keeps Gram-Schmidt from dividing by zero."""
    assert matrices.dim() == 3 and matrices.shape[2] <= matrices.shape[1]
    if epsilon == 0 and matrices.dtype not in (cresset.float16, cresset.bfloat16):
        matrices.copy_(cresset.linalg.qr(matrices)[0])
        return
    for i in range(matrices.shape[2]):
        column = matrices[:, :, i : i + 1]
        column /= column.norm(dim=1, keepdim=True) + epsilon
        if i + 1 < matrices.shape[2]:
            rest = matrices[:, :, i + 1 :]
            rest -= (column * rest).sum(dim=1, keepdim=True) * column


def _should_compress(num_rows, num_cols, matrix_approximation_rank, min_compression_rate):
    """(is it worth it, values before, values after)."""
    before, after = num_rows * num_cols, (num_rows + num_cols) * matrix_approximation_rank
    return after * min_compression_rate < before, before, after


class PowerSGDState:
    """What powerSGD_hook knows between passes.

    Gradients are averaged as they are until `start_powerSGD_iter` (at least 2 with error feedback or warm start), then a gradient of n x m as (n + m) *
    `matrix_approximation_rank` values, where that is less than 1 / `min_compression_rate`. `use_error_feedback` adds what was lost to the next
    gradient; `warm_start` begins with the last pass's matrices; `orthogonalization_epsilon` is for columns that are nearly zero, `random_seed`
    for the first matrices. `batch_tensors_with_same_shape` multiplies matrices of one shape together.
    """

    def __init__(self, process_group, matrix_approximation_rank=1, start_powerSGD_iter=1_000, min_compression_rate=2, use_error_feedback=True,
                 warm_start=True, orthogonalization_epsilon=0, random_seed=0, compression_stats_logging_frequency=10_000,
                 batch_tensors_with_same_shape=False):  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be applied after the "
                "first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start, self.orthogonalization_epsilon = use_error_feedback, warm_start, orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = cresset.Generator().manual_seed(random_seed)
        self.error_dict, self.p_memory_dict, self.q_memory_dict = {}, {}, {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0

    def __getstate__(self):
        """Without the process group."""
        state = {key: value for key, value in self.__dict__.items() if key != "process_group"}
        return state | {"rng": self.rng.get_state()}

    def __setstate__(self, state):
        """With the default process group."""
        self.__dict__.update(state)
        self.rng = cresset.Generator()
        self.rng.set_state(state["rng"])
        self.process_group = dist.group.WORLD

    def maybe_increase_iter(self, bucket):
        """Count a pass, at its last bucket."""
        if bucket.is_last():
            self.iter += 1
            if self.iter == self.start_powerSGD_iter:
                _logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self):
        """(values before / values sent, before, sent), of the passes that were compressed."""
        sent = self.total_numel_after_compression
        return (self.total_numel_before_compression / sent if sent > 0 else 0, self.total_numel_before_compression, sent)

    def _report(self, bucket):
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            _logger.info("Compression stats: iter %s, total before compression %s, total after compression %s, rate %s", self.iter, before, after, rate)
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _random(self, shape, dtype, device):
        return cresset.randn(shape, generator=self.rng, dtype=dtype if dtype.is_floating_point else None).to(device)


def _with_error(state, bucket, buffer):
    """Adds what was lost in the last pass; what this pass has in full, from which the loss is taken."""
    if not state.use_error_feedback:
        return None
    if bucket.index() in state.error_dict:
        buffer.add_(state.error_dict[bucket.index()])
    else:
        state.error_dict[bucket.index()] = cresset.zeros_like(buffer)
    return buffer.clone()


def _group_of(state):
    return state.process_group if state.process_group is not None else dist.group.WORLD


def _sum(group, tensor):
    """A future of the sum over the group, in place."""
    return dist.all_reduce(tensor, group=group, async_op=True).get_future().then(lambda done: done.value()[0])


def _batches(state, matrices):
    """Lists of matrices that are multiplied together."""
    if not state.batch_tensors_with_same_shape:
        return [[m] for m in matrices]
    by_shape = {}
    for m in matrices:
        by_shape.setdefault(m.shape, []).append(m)
    return list(by_shape.values())


def _memory(state, index, batches, dtype, device):
    """The views of P and Q for each batch, [matrices, rows, rank] and [matrices, columns, rank]; Q filled for the start."""
    shapes = [(len(b), *b[0].shape, min(*b[0].shape, state.matrix_approximation_rank)) for b in batches]
    fresh = not state.warm_start or index not in state.p_memory_dict
    if fresh:
        state.p_memory_dict[index] = cresset.empty(sum(k * n * r for k, n, m, r in shapes), dtype=dtype, device=device)
        state.q_memory_dict[index] = cresset.empty(sum(k * m * r for k, n, m, r in shapes), dtype=dtype, device=device)
    ps = state.p_memory_dict[index].split([k * n * r for k, n, m, r in shapes])
    qs = state.q_memory_dict[index].split([k * m * r for k, n, m, r in shapes])
    ps = [p.view(k, n, r) for p, (k, n, m, r) in zip(ps, shapes)]
    qs = [q.view(k, m, r) for q, (k, n, m, r) in zip(qs, shapes)]
    for q in qs:
        if fresh:
            q.copy_(state._random(q.shape, dtype, device))
        _orthogonalize(q, state.orthogonalization_epsilon)
    return ps, qs


def _uncompressed(state, group, bucket):
    """The average as it is, of the first iterations."""
    state.maybe_increase_iter(bucket)
    return default_hooks.allreduce_hook(group, bucket)


def powerSGD_hook(state, bucket):
    """The average of a bucket; each gradient that is worth it as a product of thin matrices, the rest as it is.

    A gradient of shape [n, ...] counts as n x m. P = M Q is summed over ranks and made orthonormal, Q = M' P is averaged, and P Q' is the result.
    """
    group = _group_of(state)
    if state.iter < state.start_powerSGD_iter:
        return _uncompressed(state, group, bucket)
    size, buffer = dist.get_world_size(group), bucket.buffer()
    whole, index = _with_error(state, bucket, buffer), bucket.index()
    plain, matrices = [], []
    for gradient in bucket.gradients():
        matrix = gradient.reshape(gradient.shape[0], -1) if gradient.dim() else gradient.view(1, 1)
        worth, before, after = _should_compress(*matrix.shape, state.matrix_approximation_rank, state.min_compression_rate)
        state.total_numel_before_compression += before
        state.total_numel_after_compression += after if worth else before
        (matrices if worth else plain).append(matrix if worth else gradient)
    state._report(bucket)
    batches = _batches(state, matrices)
    ps, qs = _memory(state, index, batches, buffer.dtype, buffer.device)
    stacked = [b[0].unsqueeze(0) if len(b) == 1 else cresset.stack(b) for b in batches]
    for m, p, q in zip(stacked, ps, qs):
        p.copy_(cresset.bmm(m, q))
    rest = cresset.cat([g.reshape(-1) for g in plain]) if plain else buffer.new_empty(0)

    def send_p(done):
        at = 0
        averaged = done.value().div_(size)
        for g in plain:
            g.copy_(averaged[at : at + g.numel()].view_as(g))
            at += g.numel()
        return _sum(group, state.p_memory_dict[index]).wait()

    def send_q(done):
        done.value()
        for m, p, q in zip(stacked, ps, qs):
            _orthogonalize(p, state.orthogonalization_epsilon)
            q.copy_(cresset.bmm(m.transpose(1, 2), p))
        return _sum(group, state.q_memory_dict[index]).wait().div_(size)

    def restore(done):
        done.value()
        for batch, p, q in zip(batches, ps, qs):
            for matrix, product in zip(batch, cresset.bmm(p, q.transpose(1, 2))):
                matrix.copy_(product)
        _finish(state, bucket, whole, buffer)
        return buffer

    return _sum(group, rest).then(send_p).then(send_q).then(restore)


def _finish(state, bucket, whole, buffer):
    if state.use_error_feedback:
        state.error_dict[bucket.index()] = whole - buffer
    if not state.warm_start:
        state.p_memory_dict.clear()
        state.q_memory_dict.clear()
    state.maybe_increase_iter(bucket)


def batched_powerSGD_hook(state, bucket):
    """As powerSGD_hook with the whole bucket as one square matrix: quicker and less exact."""
    group = _group_of(state)
    if state.iter < state.start_powerSGD_iter:
        return _uncompressed(state, group, bucket)
    size, buffer = dist.get_world_size(group), bucket.buffer()
    whole, index = _with_error(state, bucket, buffer), bucket.index()
    side = math.ceil(math.sqrt(buffer.numel()))
    square = cresset.nn.functional.pad(buffer, (0, side * side - buffer.numel())).view(side, side)
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += side * state.matrix_approximation_rank * 2
    state._report(bucket)
    (p,), (q,) = _memory(state, index, [[square]], buffer.dtype, buffer.device)
    p.copy_(cresset.matmul(square, q))

    def send_q(done):
        done.value()
        _orthogonalize(p, state.orthogonalization_epsilon)
        q.copy_(cresset.matmul(square.t(), p))
        return _sum(group, q).wait().div_(size)

    def restore(done):
        done.value()
        buffer.copy_(cresset.matmul(p[0], q[0].t()).reshape(-1)[: buffer.numel()])
        _finish(state, bucket, whole, buffer)
        return buffer

    return _sum(group, p).then(send_q).then(restore)
