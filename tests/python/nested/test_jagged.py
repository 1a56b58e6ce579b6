"""Jagged nested tensors: every function equals what it gives for each component, with gradients; facts, shapes and refusals."""

import copy
import functools
import io
import pickle

import pytest

import cresset as torch
from cresset import nested
from cresset.nested import masked_select, nested_tensor_from_jagged, to_padded_tensor

F = torch.nn.functional

nested_tensor, as_nested_tensor, narrow = (
    functools.partial(make, layout=torch.jagged) for make in (nested.nested_tensor, nested.as_nested_tensor, nested.narrow)
)


def parts(dtype=torch.float64):
    torch.manual_seed(3)
    return [torch.randn(n, 4, dtype=dtype) for n in (3, 1, 5)]


def flows(made, expected, sources, others):
    """Both give the same numbers and gradients."""
    assert len(made) == len(expected)
    for a, b in zip(made, expected, strict=True):
        assert a.shape == b.shape and torch.allclose(a, b), (a, b)
    weights = [torch.randn_like(b) for b in expected]
    got = torch.autograd.grad(sum((a * w).sum() for a, w in zip(made, weights, strict=True)), sources)
    want = torch.autograd.grad(sum((b * w).sum() for b, w in zip(expected, weights, strict=True)), others)
    for a, b in zip(got, want, strict=True):
        assert torch.allclose(a, b)


W, V, ROW = (torch.randn(*s, dtype=torch.float64) for s in ((4, 2), (3, 4, 2), (4,)))
LINEAR, NORM = torch.nn.Linear(4, 3).double(), torch.nn.LayerNorm(4).double()
# name -> (function of the nested tensor, function of component i)
CASES = {
    "sin": (torch.sin, lambda x, i: x.sin()),
    "operators": (lambda t: 2 - t * t / 3 + (t > 0) * t, lambda x, i: 2 - x * x / 3 + (x > 0) * x),
    "right": (lambda t: 2.0**t - 1.0 / (t.abs() + 1), lambda x, i: 2.0**x - 1.0 / (x.abs() + 1)),
    "row": (lambda t: t + ROW, lambda x, i: x + ROW),
    "row in front": (lambda t: ROW.view(1, 1, 4) * t, lambda x, i: ROW * x),
    "a row for each": (lambda t: t * V[..., 0].unsqueeze(1), lambda x, i: x * V[i, :, 0]),
    "own mean": (lambda t: t - t.mean(1, keepdim=True), lambda x, i: x - x.mean(0, keepdim=True)),
    "own maximum": (lambda t: t - t.amax(-1, keepdim=True), lambda x, i: x - x.amax(-1, keepdim=True)),
    "where": (lambda t: torch.where(t > 0, t, t * 3), lambda x, i: torch.where(x > 0, x, x * 3)),
    "clamp": (lambda t: t.clamp(-0.5, 0.5), lambda x, i: x.clamp(-0.5, 0.5)),
    "linear": (LINEAR, lambda x, i: LINEAR(x)),
    "gelu": (lambda t: F.gelu(F.relu(t) + t), lambda x, i: F.gelu(F.relu(x) + x)),
    "layer_norm": (NORM, lambda x, i: NORM(x)),
    "rms_norm": (lambda t: F.rms_norm(t, (4,)), lambda x, i: F.rms_norm(x, (4,))),
    "dropout": (lambda t: F.dropout(t, 0.5, False), lambda x, i: x),
    "matmul": (lambda t: t @ W, lambda x, i: x @ W),
    "batch matmul": (lambda t: torch.matmul(t, V), lambda x, i: x @ V[i]),
    "over rows": (lambda t: t.transpose(1, 2) @ t, lambda x, i: x.T @ x),
    "softmax": (lambda t: t.softmax(-1), lambda x, i: x.softmax(-1)),
    "softmax over rows": (lambda t: F.softmax(t, 1), lambda x, i: x.softmax(0)),
    "log_softmax": (lambda t: F.log_softmax(t, 1), lambda x, i: x.log_softmax(0)),
    "sum over rows": (lambda t: t.sum(1), lambda x, i: x.sum(0)),
    "sum of rows": (lambda t: t.sum(-1), lambda x, i: x.sum(-1)),
    "mean over rows": (lambda t: t.mean(1), lambda x, i: x.mean(0)),
    "max over rows": (lambda t: t.max(1).values, lambda x, i: x.max(0).values),
    "min over rows": (lambda t: t.amin(1), lambda x, i: x.amin(0)),
    "prod over rows": (lambda t: t.prod(1), lambda x, i: x.prod(0)),
    "logsumexp": (lambda t: t.logsumexp(1), lambda x, i: x.logsumexp(0)),
    "norm": (lambda t: t.norm(dim=1), lambda x, i: x.norm(dim=0)),
    "view": (lambda t: t.view(3, -1, 2, 2).transpose(1, 2).transpose(1, 2).flatten(2), lambda x, i: x),
    "permute": (lambda t: t.permute(0, 2, 1) * 2, lambda x, i: x.T * 2),
    "softmax beside": (lambda t: t.transpose(1, 2).softmax(1), lambda x, i: x.T.softmax(0)),
    "unsqueeze": (lambda t: t.unsqueeze(1).squeeze(1).unsqueeze(-1), lambda x, i: x.unsqueeze(-1)),
    "select": (lambda t: t[..., 1], lambda x, i: x[:, 1]),
    "slice": (lambda t: t[..., 1:3], lambda x, i: x[:, 1:3]),
    "chunk": (lambda t: t.chunk(2, -1)[1], lambda x, i: x[:, 2:]),
    "split": (lambda t: torch.cat(t.split([1, 3], -1)[::-1], -1), lambda x, i: torch.cat([x[:, 1:], x[:, :1]], 1)),
    "narrow": (lambda t: t.narrow(-1, 1, 2).contiguous(), lambda x, i: x[:, 1:3]),
    "unflatten": (lambda t: t.unflatten(-1, (2, 2)), lambda x, i: x.view(-1, 2, 2)),
    "stack": (lambda t: torch.stack([t, t * 2], 1), lambda x, i: torch.stack([x, x * 2])),
    "padded": (lambda t: t.to_padded_tensor(0.0).sum(1), lambda x, i: x.sum(0)),
    "attention": (
        lambda t: F.scaled_dot_product_attention(*[(t * k).view(3, -1, 2, 2).transpose(1, 2) for k in (1, 2, 3)]).transpose(1, 2).flatten(-2),
        lambda x, i: F.scaled_dot_product_attention(*[(x * k).view(-1, 2, 2).transpose(0, 1) for k in (1, 2, 3)]).transpose(0, 1).flatten(-2),
    ),
    "causal attention": (
        lambda t: F.scaled_dot_product_attention(*[t.view(3, -1, 1, 4).transpose(1, 2)] * 3, is_causal=True).transpose(1, 2).squeeze(2),
        lambda x, i: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_equals_the_components(case):
    whole, one = CASES[case]
    sources, others = ([p.clone().requires_grad_() for p in parts()] for _ in range(2))
    made = whole(as_nested_tensor(sources))
    flows(list(made.unbind()), [one(x, i) for i, x in enumerate(others)], sources, others)


def test_facts():
    t = nested_tensor(parts(), layout=torch.jagged)
    assert t.is_nested and t.layout is torch.jagged and isinstance(t, torch.Tensor) and t.dim() == t.ndim == 3 and len(t) == t.size(0) == 3
    assert t.values().shape == (9, 4) and t.offsets().tolist() == [0, 3, 4, 9] and t.lengths() is None and t.numel() == 36
    j = t.shape[1]
    assert isinstance(j, torch.SymInt) and j == t.sin().shape[1] and j != nested_tensor(parts()).shape[1] and j != 3 and j > 1 and repr(2 * j) == f"2*{j}"
    assert repr(t.shape).endswith(f"Size([3, {j}, 4])") and repr(t) == f"NestedTensor(size=(3, {j}, 4), offsets=tensor([0, 3, 4, 9]), contiguous=True)"
    assert t.dtype is torch.float64 and t.half().dtype is torch.float16 and t.device.type == "cpu" and t.to(torch.float64) is t
    assert not t.transpose(1, 2).is_contiguous() and t._max_seqlen == 5 and t._min_seqlen == 1
    with pytest.raises(ValueError, match="relation is indeterminate"):
        j > 5  # noqa: B015
    with pytest.raises(TypeError, match="ragged dimension"):
        int(j)


def test_a_leaf_has_its_gradient():
    t = nested_tensor(parts(), requires_grad=True)
    assert t.is_leaf and t.requires_grad and t.grad is None
    (t * t).sum().backward()
    assert t.grad.shape == t.shape and torch.equal(t.grad.values(), 2 * t.detach().values())
    (g,) = torch.autograd.grad((t * 3).sum(), t)
    assert g.is_nested and bool((g == 3).all())
    values = torch.randn(9, 4, requires_grad=True)
    nested_tensor_from_jagged(values, t.offsets()).sum(1).sum().backward()
    assert torch.equal(values.grad, torch.ones(9, 4))


def test_makers():
    values = torch.arange(10.0).view(5, 2)
    t = nested_tensor_from_jagged(values, lengths=torch.tensor([2, 3]))
    assert t.offsets().tolist() == [0, 2, 5] and t.values().data_ptr() == values.data_ptr()
    across = nested_tensor([torch.ones(2, 3), torch.ones(2, 4)])
    assert across.values().shape == (2, 7) and across.shape[1] == 2 and [x.shape[1] for x in across.unbind()] == [3, 4]
    rows = as_nested_tensor(torch.arange(6).view(2, 3))
    assert rows.offsets().tolist() == [0, 3, 6] and rows.to_padded_tensor(0).tolist() == [[0, 1, 2], [3, 4, 5]]
    dense = torch.arange(24.0).view(2, 3, 4)
    part = narrow(dense, 1, torch.tensor([0, 1]), torch.tensor([2, 2]), layout=torch.jagged)
    assert torch.equal(part.unbind()[1], dense[1, 1:3]) and part.lengths().tolist() == [2, 2] and part.contiguous().values().shape == (4, 4)
    assert part.sum().item() == dense.sum().item()  # with what lies between the components, as in PyTorch
    assert (part * 2).unbind()[1].equal(dense[1, 1:3] * 2)
    picked = masked_select(torch.arange(6).view(2, 3), torch.tensor([[True, False, True], [False, False, True]]))
    assert [x.tolist() for x in picked.unbind()] == [[0, 2], [5]]
    picked = masked_select(torch.arange(12).view(2, 3, 2), torch.tensor([True, False]))
    assert picked.values().tolist() == [0, 2, 4, 6, 8, 10] and picked.offsets().tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True])).offsets().tolist() == [0, 2]
    assert masked_select(torch.tensor(1), torch.tensor(False)).shape[0] == 1
    assert to_padded_tensor(t, -1.0, (2, 4, 2)).shape == (2, 4, 2)


def test_embeddings_take_them():
    t = nested_tensor([torch.tensor([1, 2]), torch.tensor([0])])
    table = torch.arange(6.0).view(3, 2)
    assert [x.tolist() for x in F.embedding(t, table).unbind()] == [[[2, 3], [4, 5]], [[0, 1]]]
    assert F.embedding_bag(t, table, mode="sum").tolist() == [[6, 8], [0, 1]]
    assert torch.nn.EmbeddingBag(3, 2)(t).shape == (2, 2)


def test_files_and_copies():
    t = nested_tensor(parts(), requires_grad=True)
    f = io.BytesIO()
    torch.save({"t": t}, f)
    f.seek(0)
    for made in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), torch.load(f)["t"]):
        assert torch.equal(made, t) and made.requires_grad and made.is_leaf and made.is_nested


T = nested_tensor(parts())
REFUSED = [
    (lambda: T + nested_tensor(parts()), RuntimeError, "cannot call binary pointwise function add.Tensor with inputs of shapes"),
    (lambda: T + torch.ones(3, 4), RuntimeError, "cannot call binary pointwise function add.Tensor"),
    (lambda: T.sum(0), RuntimeError, "sum\\(\\): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"),
    (lambda: T.sum((1, 2)), RuntimeError, "sum\\(\\): reducing along a ragged and non-batch dimension"),
    (lambda: T.transpose(0, 1), ValueError, "Transpose is not supported on the batch dimension for jagged NT"),
    (lambda: T.view(-1), RuntimeError, "view\\(\\): cannot view shape"),
    (lambda: T.unsqueeze(0), RuntimeError, "unsqueeze\\(\\): not supported for NestedTensor on dim=0"),
    (lambda: torch.cat([T, T], 1), RuntimeError, "cat\\(\\): not supported for NestedTensor on ragged dim"),
    (lambda: T.softmax(0), RuntimeError, "softmax\\(\\): not supported when reducing across the batch dimension"),
    (lambda: T @ T, RuntimeError, "matmul\\(\\): not supported between inputs of shapes"),
    (lambda: T.cumsum(1), NotImplementedError, "cumsum: not supported for nested tensors"),
    (lambda: torch.vmap(torch.sin)(T), NotImplementedError, "not supported for nested tensors"),
    (lambda: nested_tensor([]), RuntimeError, "Cannot construct a nested tensor from an empty tensor list"),
    (lambda: nested_tensor([torch.ones(2), torch.ones(3, 3)]), RuntimeError, "all tensors in list must have the same dim"),
    (lambda: nested_tensor([torch.ones(2, 3), torch.ones(3, 4)]), RuntimeError, "the jagged layout only allows for a single ragged dimension"),
    (lambda: nested_tensor_from_jagged(torch.ones(2)), RuntimeError, "At least one of offsets or lengths is required"),
    (lambda: nested_tensor(parts(), layout=torch.sparse_coo), RuntimeError, "Specified layout is unsupported for nested tensors"),
    (lambda: torch.zeros(2, layout=torch.jagged), NotImplementedError, "new tensors are strided here"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number):
    run, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        run()


def test_known_lengths_as_sizes():
    import cresset

    nt = cresset.nested.nested_tensor([cresset.ones(2), cresset.ones(5)], layout=cresset.jagged)
    assert nt._max_seqlen_tensor.shape == (5, 0) and nt._min_seqlen_tensor.shape == (2, 0)
    unknown = cresset.nested.nested_tensor_from_jagged(nt.values(), nt.offsets())
    assert unknown._max_seqlen_tensor is None


def test_overloads_of_operators():
    aten, nt = torch.ops.aten, torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    assert aten.add.Tensor(nt, nt).unbind()[0].tolist() == [[0, 2, 4], [6, 8, 10]]
    assert aten.sum.dim_IntList(nt, [2], True).unbind()[0].tolist() == [[3], [12]]
    assert [c.tolist() for c in aten.select.int(nt, 2, 1).unbind()] == [[1, 4], [1]]
    assert aten._softmax.default(nt, 2, False).unbind()[1][0].tolist() == pytest.approx([1 / 3] * 3)
    assert aten.transpose.int(nt, 1, 2).unbind()[0].shape == (3, 2) and aten.detach.default(nt).is_nested
    assert aten.mean.dim(nt, [1], True).tolist() == [[[1.5, 2.5, 3.5]], [[1, 1, 1]]]
    assert aten.sum.dim_IntList(nt.transpose(1, 2), (2,)).tolist() == [[3, 5, 7], [1, 1, 1]]
    normal, mean, rstd = aten.native_layer_norm.default(nt, [3], None, None, 1e-5)
    assert normal.is_nested and not mean.is_nested and mean.tolist() == [[1], [4], [1]] and rstd.shape == (3, 1)


def test_softmax_of_components_with_holes():
    holes = nested_tensor_from_jagged(torch.ones(10, 3), torch.tensor([0, 4, 10]), lengths=torch.tensor([2, 3]))
    words = r"softmax\(\): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor"
    with pytest.raises(RuntimeError, match=words):
        torch.softmax(holes, 1)
    assert torch.softmax(holes, 2).unbind()[0].shape == (2, 3)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=["jagged", "strided"])
def test_conversions_to_other_types(layout):
    nt = nested.nested_tensor([torch.tensor([[1.5, 2.0]]), torch.tensor([[3.0, -4.0], [5.0, 6.0]])], layout=layout)
    for name, dtype in {"cdouble": torch.complex128, "cfloat": torch.complex64, "chalf": torch.complex32, "short": torch.int16, "char": torch.int8}.items():
        found = getattr(nt, name)()
        assert found.is_nested and found.layout is layout and found.dtype is dtype and found.unbind()[1].tolist() == [[3, -4], [5, 6]]
    assert nt.abs().byte().unbind()[1].tolist() == [[3, 4], [5, 6]]


def holes(requires_grad=False):
    values = torch.arange(14.0).view(7, 2).requires_grad_(requires_grad)
    return values, nested_tensor_from_jagged(values, torch.tensor([0, 2, 5, 7]), lengths=torch.tensor([2, 2, 1]))


def test_what_is_a_view_of_what():
    values = torch.randn(6, 3)
    t = nested_tensor_from_jagged(values, torch.tensor([0, 2, 6]))
    assert t._is_view() and t._base is values and t.transpose(1, 2)._base is values and not t._metadata_cache
    assert all(x._base is None and not x._is_view() for x in (t.detach(), t.clone(), t * 2, torch.ops.aten._unsafe_view(t, (2, -1, 3))))
    own = t.clone()
    assert own.unsqueeze(-1)._base is own and own.unsqueeze(-1).squeeze(-1)._base is own and own.squeeze(2)._is_view()
    again = t._view_func(torch.zeros(6, 3))
    assert again.unbind()[1].tolist() == [[0, 0, 0]] * 4 and again.shape[1] == t.shape[1]
    assert t._get_max_seqlen() == 4 and list(t._metadata_cache) == ["max_seqlen"] and t._metadata_cache["max_seqlen"].shape == (4, 0)
    dense = torch.randn(2, 3, 4)
    assert as_nested_tensor(dense)._base is dense and narrow(dense, 1, 0, torch.tensor([1, 2]), layout=torch.jagged)._base is dense
    assert narrow(dense, 1, torch.tensor([1, 0]), torch.tensor([2, 2]), layout=torch.jagged).is_contiguous()


def test_full_reductions_with_holes():
    values, t = holes()
    for name in ("sum", "mean", "amax", "argmax", "prod", "std", "nansum", "count_nonzero"):  # as in PyTorch: of all the values
        assert torch.equal(getattr(torch, name)(t), getattr(torch, name)(values))
    for name, error in (("sum", RuntimeError), ("std", NotImplementedError)):
        with pytest.raises(error, match="reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"):
            getattr(t, name)(1)
    whole = nested_tensor_from_jagged(values, torch.tensor([0, 2, 7]))
    assert torch.any(whole > 12, dim=[0, 1]).tolist() == [False, True] and torch.all(whole >= 0, dim=[0, 1, 2]).item()


def test_gradients_leave_holes_out():
    values, t = holes(True)
    one = torch.ones(1, 1, 1, requires_grad=True)
    (t * one).backward(torch.ones_like(t))
    assert one.grad.item() == sum(x.sum().item() for x in t.unbind())
    weight = torch.ones(2, requires_grad=True)
    F.rms_norm(t, (2,), weight).backward(torch.ones_like(t))
    expected = sum(F.rms_norm(x, (2,)).sum(0) for x in t.detach().unbind())
    assert torch.allclose(weight.grad, expected)


def test_index_put():
    t = nested_tensor([torch.zeros(2, 2), torch.zeros(3, 2)])
    one, at = torch.tensor(1.0), torch.tensor
    assert [x.tolist() for x in t.index_put((at([1]),), one).unbind()] == [[[0, 0]] * 2, [[1, 1]] * 3]
    assert [x.tolist() for x in t.index_put((at([0, 1]), at([1, 2]), at([0, 1])), one).unbind()] == [[[0, 0], [1, 0]], [[0, 0], [0, 0], [0, 1]]]
    assert t.index_put_((at([0]), at([0])), one) is t and t.unbind()[0].tolist() == [[1, 1], [0, 0]]
    _, gaps = holes()
    with pytest.raises(RuntimeError, match="If ragged dimension is not part of indices, this only works on contiguous NJTs"):
        gaps.index_put((at([1]),), one)
    assert gaps.index_put((at([1]), at([0]), at([0])), at(9.0)).values()[2].tolist() == [9, 5]


def test_masked_select_where_and_extremes():
    t = nested_tensor([torch.tensor([3.0, -1.0]), torch.tensor([2.0, -5.0, 4.0])])
    assert [x.tolist() for x in t.masked_select(t > 0).unbind()] == [[3], [2, 4]]
    assert torch.where(t > 0, t, 0.0).values().tolist() == [3, 0, 2, 0, 4]
    with pytest.raises(ValueError, match="expected condition to be a jagged layout NestedTensor"):
        torch.where(torch.tensor(True), t, t)
    assert torch.max(torch.tensor(1.0), t).values().tolist() == [3, 1, 2, 1, 4] and torch.min(t, other=t * 2).values().tolist() == [3, -2, 2, -10, 4]
    for refused in (lambda: t * t.shape[1], lambda: t + t.shape[1]):
        with pytest.raises(RuntimeError, match="invalid argument"):
            refused()


def test_layer_norm_over_the_ragged_dimension():
    t = nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])
    made = F.layer_norm(t, t.shape[1:])
    assert all(torch.allclose(a, F.layer_norm(b, b.shape)) for a, b in zip(made.unbind(), t.unbind(), strict=True))
    for refused, words in (
        (lambda: F.layer_norm(t, t.shape), "not supported when normalizing over the batch dimension for NestedTensor"),
        (lambda: F.layer_norm(t[:, :, 0], (t.shape[1],)), "not supported for NestedTensor objects with 2 or fewer dimensions"),
        (lambda: F.layer_norm(holes()[1], (holes()[1].shape[1], 2)), "expected input with shape"),
    ):
        with pytest.raises(RuntimeError, match=words):
            refused()
    _, gaps = holes()
    with pytest.raises(RuntimeError, match="not supported where lengths is not None if operating on the ragged dimension"):
        F.layer_norm(gaps, gaps.shape[1:])


def test_what_does_not_fit():
    t, (_, gaps) = nested_tensor([torch.randn(2, 3), torch.randn(4, 3)]), holes()
    for refused, error, words in (
        (lambda: t.permute(0, 1), ValueError, r"number of dimensions in the tensor input \(3\) does not match the length of the desired ordering of dimensions \(2\)"),
        (lambda: t.permute(0, 2, -1), ValueError, r"permute\(\): duplicate dims are not allowed."),
        (lambda: t.split([1, 2], 1), RuntimeError, r"split_with_sizes\(\): not supported for NestedTensor on ragged dim"),
        (lambda: gaps.chunk(2, 1), ValueError, "expected self to be a contiguous jagged layout NestedTensor"),
        (lambda: t.unflatten(0, (1, 2)), RuntimeError, "cannot view shape"),
        (lambda: t.clone().copy_(nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])), RuntimeError, "same size and the exact same offset tensor"),
        (lambda: F.linear(gaps, torch.ones(2, 2)), ValueError, "expected input to be a contiguous jagged layout NestedTensor"),
        (lambda: torch.ops.aten.size.default(t), RuntimeError, "directly calling torch.ops.aten.size"),
        (lambda: torch.fx.symbolic_trace(lambda x, y: nested_tensor_from_jagged(x, y)), RuntimeError, "does not support tracing with fx.symbolic_trace"),
        (lambda: nested_tensor_from_jagged(torch.ones(2, 3), torch.tensor([0, 2]), lengths=torch.tensor([3])).unbind(), RuntimeError, "offsets and lengths do not match"),
    ):
        with pytest.raises(error, match=words):
            refused()


def test_operators_between_padded_and_packed():
    values, offsets = torch.randn(10, 5), torch.tensor([0, 1, 3, 8, 10])
    padded = torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [5], 1.5)
    assert padded.shape == (4, 5, 5) and bool((padded[0, 1:] == 1.5).all()) and torch.equal(padded[2], values[3:8])
    assert torch.equal(torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets], 10), values)
    assert torch.equal(torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [4], 1.5), padded[:, :4])
    for refused, words in (
        (lambda: torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets] * 2, [5, 5]), "only a single jagged dim is supported"),
        (lambda: torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets[:, None]], [5]), "expected 1D offsets"),
        (lambda: torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets], 11), "final offset should match total_L value"),
        (lambda: torch.ops.aten._padded_dense_to_jagged_forward(padded[:, :3], [offsets], 10), "found batch item of length 5"),
        (lambda: torch.ops.aten._padded_dense_to_jagged_forward(padded.flatten(), [offsets], 10), "expected padded dim >= 2"),
    ):
        with pytest.raises(RuntimeError, match=words):
            refused()
