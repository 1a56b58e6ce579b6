"""Views and in-place writes under autograd, version counters."""

from . import raised


def _leaf(t, n=4):
    return t.arange(1.0, n + 1.0, dtype=t.float64).requires_grad_()


def n01_counters_and_bases(t):
    x = t.zeros(4)
    v = x[:2][:1]
    v.add_(1)
    d, data = x.detach(), x.data
    d.add_(1)
    data.add_(1)
    n = x.numpy()
    n[3] = 9
    return x._version, v._version, d._version, data._version, v._base is x, x._base, x, d._is_view(), x.data._is_view()


def n02_which_are_views(t):
    x = t.zeros(2, 3)
    views = {
        "T": x.T, "t": x.t(), "transpose": x.transpose(0, 1), "permute": x.permute(1, 0), "select": x.select(0, 1), "slice": x[:, 1:],
        "narrow": x.narrow(0, 0, 1), "expand": x[:1].expand(4, 3), "unfold": x.unfold(0, 2, 1), "squeeze": x[:1].squeeze(0),
        "unsqueeze": x.unsqueeze(0), "view": x.view(6), "reshape": x.reshape(6), "flatten": x.flatten(), "ravel": x.ravel(),
        "contiguous": x.t().t()[0:].contiguous(), "diagonal": x.diagonal(), "split": x.split(1)[0], "chunk": x.chunk(2)[0],
        "unbind": x.unbind()[0], "movedim": x.movedim(0, 1), "as_strided": x.as_strided((2,), (1,)), "view_dtype": x.view(t.int32),
        "detach": x.detach(), "view_as": x.view_as(x), "swapaxes": x.swapaxes(0, 1), "tensor_split": x.tensor_split(2)[0],
        "hsplit": x.hsplit(3)[0], "real": t.zeros(2, dtype=t.complex64).real, "imag": t.zeros(2, dtype=t.complex64).imag,
        "expand_as": x[:1].expand_as(x), "mT": x.mT, "unflatten": x.unflatten(1, (3, 1)),
        "index": x[t.tensor([0])], "mask": x[x > 1], "flip": x.flip(0), "clone": x.clone(), "reshape_copy": x.t().reshape(6),
        "contiguous_copy": x.t().contiguous(),
    }  # fmt: skip
    return {k: v._is_view() for k, v in views.items()}


def n03_copy_slices(t):
    out = []
    x = _leaf(t)
    y = x.clone()
    v = y[:2]
    before = y.view(2, 2)
    v.mul_(10)
    out += [type(y.grad_fn).__name__, type(v.grad_fn).__name__, type(before.grad_fn).__name__]
    (before * t.arange(4, dtype=t.float64).view(2, 2)).sum().backward()
    out.append(x.grad)
    x = _leaf(t)
    y = x.clone()
    a, b = y[:3], y[1:]
    a.mul_(b.detach()[:3] * 0 + 2)
    b.mul_(3)
    a[1:].mul_(5)
    y.sum().backward()
    out += [x.grad, y, a, b]
    x = _leaf(t)
    y = x.clone()
    y.view(2, 2)[0].mul_(x[2:])
    y.sum().backward()
    out.append(x.grad)
    return out


def n03_lazily_rebuilt(t):
    y = _leaf(t).clone()
    v = y[:2]
    first = v.grad_fn
    y.mul_(2)
    return v.grad_fn is first, type(v.grad_fn).__name__, v.grad_fn is v.grad_fn, v.requires_grad


def n03_view_of_base_without_grad(t):
    base = t.zeros(4, dtype=t.float64)
    v = base[:2]
    w = base[2:]
    x = _leaf(t, 2)
    v.copy_(x)
    base.sum().backward()
    return base.requires_grad, v.requires_grad, w.requires_grad, x.grad, type(base.grad_fn).__name__


def n04_copies_into_views(t):
    base = t.zeros(2, 3, dtype=t.float64)
    x = _leaf(t, 3)
    base[1] = x * 2
    base[0, 1] = x.sum()
    base.mul_(2)
    (base * base).sum().backward()
    return base, x.grad


def n05_errors(t):
    x = _leaf(t)
    y = x.clone()
    with t.no_grad():
        quiet = y[:2]
        pieces = y.split(2)
    saved = x.clone()
    squared = saved**2
    saved.add_(1)
    with t.no_grad():
        quiet_leaf = t.zeros(2).view(2)
    base = t.zeros(2)
    with t.inference_mode():
        inferred = base.view(2)
    outer = [v.requires_grad_().view(2) for v in (quiet_leaf, inferred)]
    data = t.ones(2, 2)
    return (
        raised(lambda: x.mul_(2), "a leaf Variable that requires grad is being used in an in-place operation"),
        raised(lambda: x[:2].mul_(2), "a view of a leaf Variable that requires grad is being used in an in-place operation"),
        raised(lambda: y.split(2)[0].mul_(2), "is a view and is being modified inplace. This view is the output of a function that returns multiple views"),
        raised(lambda: y.chunk(2)[1].mul_(2), "Output 1 of"),
        raised(lambda: y.unbind()[2].mul_(2), "Output 2 of"),
        raised(lambda: quiet.mul_(2), "A view was created in no_grad mode and is being modified inplace with grad mode enabled"),
        raised(lambda: pieces[0].mul_(2), ""),
        raised(lambda: outer[0].mul_(2), "is a view of a view which was created in no_grad mode and is being modified inplace with grad mode enabled."),
        raised(lambda: outer[1].mul_(2), "is a view of a view which was created in inference mode and is being modified inplace in normal mode."),
        raised(lambda: squared.sum().backward(), "has been modified by an inplace operation"),
        raised(lambda: data.split(1)[0].mul_(t.ones(1, 2, requires_grad=True)), "is a view and is being modified inplace"),
        raised(lambda: data.split(1)[0].mul_(2), ""),
    )


def n05_printing_a_view_without_node(t):
    a, b = _leaf(t).clone().split(2)
    with t.no_grad():
        a.mul_(2)
    return repr(a).replace("cresset.", "torch.")


def n06_overlap(t):
    e = t.zeros(1).expand(3)
    x = t.arange(6.0)
    return (
        raised(lambda: e.add_(1), "refers to a single memory location"),
        raised(lambda: x[1:].copy_(x[:-1]), "refer to a single memory location"),
        raised(lambda: t.add(x[:-1], 1, out=x[1:]), "refer to a single memory location"),
        raised(lambda: e.copy_(t.ones(3)), "refers to a single memory location"),
        raised(lambda: e.fill_(1), "refers to a single memory location"),
        raised(lambda: x.add_(x), "refer"),
    )


def n07_view_dtype(t):
    x = t.arange(4.0)
    return (
        x.view(t.int32), x.view(t.int16).shape, x.view(t.float64).shape, x.view(t.uint8).shape,
        raised(lambda: t.zeros(3).view(t.float64), "must be divisible by"),
        raised(lambda: t.zeros(4, 4).t().view(t.float64), "must be 1"),
        raised(lambda: t.zeros(()).view(t.float64), ""),
        raised(lambda: t.zeros(4)[1:3].view(t.float64), "divisible"),
    )  # fmt: skip


def n08_errors(t):
    x = t.zeros(2, 3)
    return (
        raised(lambda: x.view(4), "shape '[4]' is invalid for input of size 6"),
        raised(lambda: x.view(-1, -1), "only one dimension can be inferred"),
        raised(lambda: x.t().view(6), "view size is not compatible with input tensor's size and stride"),
        raised(lambda: x.expand(2, 4), "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1"),
        raised(lambda: x.expand(3), "must be greater or equal to the number of dimensions"),
        raised(lambda: x.reshape(5), "shape '[5]' is invalid for input of size 6"),
        raised(lambda: x.view(-1, 4), "shape '[-1, 4]' is invalid for input of size 6"),
        raised(lambda: t.zeros(0).view(-1, 0), "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension size -1 can be any value"),
        raised(lambda: x.view(-2, 3), "invalid shape dimension -2"),
        raised(lambda: x[::-1], "step must be greater than zero"),
    )


def n09_storage(t):
    x = t.arange(4.0)
    pointer = x.data_ptr()
    x.resize_(2)
    kept = x.data_ptr() == pointer
    y = t.zeros(2)
    y.set_(t.arange(6.0).untyped_storage(), 2, (2, 2), (2, 1))
    return (
        kept, x.untyped_storage().nbytes(), y,
        raised(lambda: t.zeros(3).as_strided((4,), (1,)), "out of bounds for storage"),
        raised(lambda: t.from_numpy(__import__("numpy").zeros(2)).resize_(10), "Trying to resize storage that is not resizable"),
    )  # fmt: skip


def n10_strides(t):
    a = t.zeros(2, 3, 4).permute(2, 0, 1)
    b = t.zeros(2, 3, 4, 5).to(memory_format=t.channels_last)
    return (
        (a + 1).stride(), (b * 2).stride(), (t.zeros(1, 3).expand(2, 3) + 1).stride(), t.zeros(2, 0, 3).stride(), (a + t.zeros(4, 2, 3)).stride(),
        a.clone().stride(), t.empty_like(b).stride(), (a[:, :, 0] + 1).stride(), a.exp().stride(), t.zeros_like(a).stride(),
    )  # fmt: skip


def n11_multi_output_and_copies(t):
    x = _leaf(t)
    y = x.clone()
    parts = t.unsafe_split(y, 2)
    parts[0].mul_(2)
    (parts[0].sum() + parts[1].sum()).backward()
    chunks = t.unsafe_chunk(_leaf(t).clone(), 2)
    chunks[0].add_(1)
    copy = t.view_copy(y.detach(), [2, 2])
    return x.grad, chunks[0], copy, copy._is_view(), t.t_copy(copy), t.slice_copy(y.detach(), 0, 1, 3), t.select_copy(copy, 0, 1)
