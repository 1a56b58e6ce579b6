"""Looking up, putting back, and padding."""

import cresset

from ._rules import _LOW, aten, last_first, rule


def _at(dim, index):
    return [None] * dim + [index]


@rule("embedding", core=False)
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dim() == 1:
        return weight.index_select(0, indices)
    return aten.index.Tensor(weight, [indices])


@rule("embedding_dense_backward")
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    dtype = grad_output.dtype
    grad = grad_output.to(cresset.float32) if dtype in _LOW else grad_output
    indices = indices.to(cresset.int64)
    if scale_grad_by_freq:
        counts = indices.new_zeros([num_weights])
        counts = aten.index_put.default(counts, [indices], cresset.ones_like(indices), True)
        grad = grad / counts[indices].unsqueeze(-1)
    ignored = (indices == padding_idx).unsqueeze(-1)
    grad = grad.masked_fill(ignored, 0)
    result = grad.new_zeros([num_weights, *grad.shape[indices.dim():]])
    return aten.index_put.default(result, [indices], grad, True).to(dtype)


@rule("index_add")
def index_add(self, dim, index, source, *, alpha=1):
    return _index_add(self, dim, index, source if alpha == 1 else source * alpha)


def _index_add(self, dim, index, source):
    if index.dim() > 1:
        raise RuntimeError(f"Index should have dimension 1 or 0 (got {index.dim()})")
    if not self.dim():
        return _index_add(self.unsqueeze(0), 0, index, source if source.dim() else source.unsqueeze(0)).squeeze(0)
    return aten.index_put.default(self, _at(last_first(dim, self.dim()), index if index.dim() else index.unsqueeze(0)), source, True)


@rule("index_copy")
def index_copy(self, dim, index, source):
    if not self.dim():
        return index_copy(self.unsqueeze(0), 0, index, source if source.dim() else source.unsqueeze(0)).squeeze(0)
    return aten.index_put.default(self, _at(last_first(dim, self.dim()), index if index.dim() else index.unsqueeze(0)), source)


@rule("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(self, dim, index, value):
    if isinstance(value, cresset.Tensor) and value.dim():
        raise RuntimeError(f"Only supports 0-dimensional value tensor. Got a tensor with {value.dim()} dimensions.")
    if not self.dim():
        return index_fill(self.unsqueeze(0), 0, index, value).squeeze(0)
    if not isinstance(value, cresset.Tensor):
        value = aten.scalar_tensor(value, dtype=self.dtype, device=self.device)
    shape = list(self.shape)
    shape[dim] = index.numel()
    return index_copy(self, dim, index, value.to(self.dtype).expand(shape))


@rule("index_select", core=False)
def index_select(self, dim, index):
    if not self.dim():
        return index_select(self.unsqueeze(0), 0, index).squeeze(0)
    return aten.index.Tensor(self, _at(last_first(dim, self.dim()), index if index.dim() else index.unsqueeze(0)))


@rule("take")
def take(self, index):
    return aten.index.Tensor(self.reshape([-1]), [index])


@rule("unfold_backward")
def unfold_backward(grad_in, input_sizes, dim, size, step):
    rank = len(input_sizes)
    if not rank:
        return grad_in.squeeze(0)
    dim = last_first(dim, rank)
    index = cresset.arange(input_sizes[dim], device=grad_in.device).unfold(0, size, step).flatten()
    grad = grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1)
    return aten.index_put.default(grad_in.new_zeros(input_sizes), _at(dim, index), grad, True)


def _reflected(length, left, right, device):
    """Places of the source: from `left` before its start to `right` behind its end."""
    at = cresset.arange(-left, length + right, device=device)
    return length - 1 - (length - 1 - at.abs()).abs()


def _repeated(length, left, right, device):
    return cresset.clamp(cresset.arange(-left, length + right, device=device), 0, length - 1)


def _padded(self, padding, places):
    count = len(padding) // 2
    for at in range(count):
        dim = self.dim() - count + at
        left, right = padding[2 * (count - 1 - at) : 2 * (count - at)]
        self = aten.index.Tensor(self, _at(dim, places(self.shape[dim], left, right, self.device)))
    return self


def _check_reflection(self, padding):
    count = len(padding) // 2
    for at in range(count):
        length = self.shape[self.dim() - 1 - at]
        if max(padding[2 * at : 2 * at + 2]) >= length:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({padding[2 * at]}, {padding[2 * at + 1]}) at dimension {self.dim() - 1 - at} of input {list(self.shape)}"
            )


@rule("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(self, padding):
    _check_reflection(self, padding)
    return _padded(self, padding, _reflected)


@rule("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(self, padding):
    return _padded(self, padding, _repeated)


@rule("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward")
def reflection_pad_backward(grad_output, self, padding):
    """Each place of the input gets what its copies have: along one dimension after the other."""
    grad, count = grad_output, len(padding) // 2
    for at in range(count):
        dim = self.dim() - count + at
        left, right = padding[2 * (count - 1 - at) : 2 * (count - at)]
        shape = list(grad.shape)
        shape[dim] = self.shape[dim]
        places = _reflected(self.shape[dim], left, right, self.device)
        grad = aten.index_put.default(grad.new_zeros(shape), _at(dim, places), grad, True)
    return grad


@rule("constant_pad_nd", core=False)
def constant_pad_nd(self, pad, value=0):
    shape, inside, cut = list(self.shape), [], self
    for at in range(len(pad) // 2):
        dim, (left, right) = self.dim() - 1 - at, pad[2 * at : 2 * at + 2]
        shape[dim] += left + right
        if shape[dim] < 0:
            raise RuntimeError(
                f"The input size {self.shape[dim]}, plus negative padding {left} and {right} resulted in a negative output size, "
                f"which is invalid. Check dimension {dim} of your input."
            )
        cut = cut.narrow(dim, max(0, -left), cut.shape[dim] - max(0, -left) - max(0, -right))
        inside.append((dim, max(0, left)))
    place = result = aten.full.default(shape, value, dtype=self.dtype, device=self.device)
    for dim, start in inside:
        place = place.narrow(dim, start, cut.shape[dim])
    aten.copy_(place, cut)
    return result
