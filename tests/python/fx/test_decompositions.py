"""_decomp: the operators that PyTorch 2.13's decompositions leave, and results that are those of the operators."""

import pytest

import cresset
from cresset._decomp import (
    core_aten_decompositions, decomposition_table, decompositions, get_decompositions, global_decomposition_table, register_decomposition, remove_decompositions,
)  # fmt: skip
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.testing import assert_close

aten = cresset.ops.aten


def numbers(*shape):
    count = cresset.Size(shape).numel()
    return (cresset.arange(count, dtype=cresset.float64) * 0.7391 % 2.3 - 1.1).reshape(shape).float()


Y, X, P, V = numbers(3, 6), numbers(2, 4, 5, 5), numbers(3, 6).abs() * 0.5 + 0.05, numbers(6)
T = cresset.tensor([1, 5, 2])

# What PyTorch 2.13 records with core_aten_decompositions().
GRAPHS = [
    (aten.silu, (Y,), "sigmoid.default mul.Tensor"),
    (aten.hardsigmoid, (Y,), "add.Tensor clamp.default clamp.default div.Tensor"),
    (lambda x: aten.gelu_backward(x, x), (Y,), "mul.Tensor erf.default add.Tensor mul.Tensor mul.Tensor mul.Tensor exp.default mul.Tensor mul.Tensor add.Tensor mul.Tensor"),
    (lambda x: aten.threshold_backward(x, x, 0), (Y,), "le.Scalar scalar_tensor.default where.self"),
    (lambda x: aten._softmax_backward_data(x, x, 1, x.dtype), (Y,), "mul.Tensor sum.dim_IntList mul.Tensor sub.Tensor"),
    (lambda x: aten._log_softmax_backward_data(x, x, 1, x.dtype), (Y,), "exp.default sum.dim_IntList mul.Tensor sub.Tensor"),
    (lambda x: aten.masked_fill(x, x > 0, 1.0), (Y,), "gt.Scalar scalar_tensor.default where.self"),
    (lambda x: aten.mse_loss(x, x), (Y,), "sub.Tensor pow.Tensor_Scalar mean.default"),
    (lambda x: aten.huber_loss(x, x), (Y,), "sub.Tensor abs.default lt.Scalar mul.Tensor mul.Tensor sub.Tensor mul.Tensor where.self mean.default"),
    (lambda x: aten.addcmul(x, x, x, value=2), (Y,), "mul.Tensor mul.Tensor add.Tensor"),
    (lambda x: aten.stack([x, x], 1), (Y,), "cat.default view.default"),
    (lambda x: aten.t(x), (Y,), "permute.default"),
    (lambda x: aten.std(x, [1], correction=1), (Y,), "var.correction sqrt.default"),
    (lambda x: aten.norm(x, 2, [1]), (Y,), "linalg_vector_norm.default"),
    (lambda x: aten.slice_backward(x, [5, 6], 0, 1, 4, 1), (Y,), "full.default slice_scatter.default"),
    (lambda x: aten.select_backward(x, [3, 5, 6], 1, 4), (Y,), "full.default arange.start_step view.default eq.Scalar unsqueeze.default expand.default where.self"),
    (lambda x: aten.new_ones(x, [2]), (Y,), "full.default"),
    (lambda x: aten.zeros_like(x), (Y,), "full_like.default"),
    (lambda x: aten.roll(x, [1], [1]), (Y,), "arange.start_step add.Tensor fmod.Scalar index_select.default"),
    (lambda x: aten.gelu(x), (Y,), "gelu.default"),
    (lambda x: aten.native_layer_norm(x, [6], None, None, 1e-5), (Y,), "native_layer_norm.default"),
]  # fmt: skip


def operators(graph_module):
    targets = [str(n.target).removeprefix("aten.") for n in graph_module.graph.nodes if n.op == "call_function"]
    return " ".join(t for t in targets if "getitem" not in t)


@pytest.mark.parametrize(("function", "arguments", "expected"), GRAPHS, ids=[e[:40] + str(i) for i, (_, _, e) in enumerate(GRAPHS)])
def test_core_graphs(function, arguments, expected):
    graph = make_fx(function, decomposition_table=core_aten_decompositions())(*arguments)
    assert operators(graph) == expected


B = numbers(4).abs() + 0.1
CALLS = {
    "gelu": lambda: aten.gelu(Y), "gelu_tanh": lambda: aten.gelu(Y, approximate="tanh"), "gelu_backward": lambda: aten.gelu_backward(Y, Y, approximate="tanh"),
    "silu_backward": lambda: aten.silu_backward(Y, P), "tanh_backward": lambda: aten.tanh_backward(Y, P), "sigmoid_backward": lambda: aten.sigmoid_backward(Y, P),
    "hardswish_backward": lambda: aten.hardswish_backward(Y, Y * 4), "elu": lambda: aten.elu(Y, 1.5, 2.0, 0.7), "mish_backward": lambda: aten.mish_backward(Y, Y),
    "elu_backward": lambda: aten.elu_backward(Y, 1.5, 2.0, 0.7, False, Y), "softplus": lambda: aten.softplus(Y, 2.0, 1.0), "glu": lambda: aten.glu_backward(Y[:, :3], Y, 1),
    "log_sigmoid": lambda: aten.log_sigmoid_forward(Y)[0], "softmax": lambda: aten._softmax(Y, 1, False), "log_softmax": lambda: aten._log_softmax(Y, 1, False),
    "bce": lambda: aten.binary_cross_entropy(P, P, P, 1), "bce_backward": lambda: aten.binary_cross_entropy_backward(P, P, P * 0.5, P, 1),
    "smooth_l1_backward": lambda: aten.smooth_l1_loss_backward(Y.mean(), Y, Y * 2, 1, 0.5), "huber_backward": lambda: aten.huber_loss_backward(Y, Y, Y * 2, 0, 0.5),
    "nll": lambda: aten.nll_loss_forward(Y, T, V.abs(), 1, 5), "nll_backward": lambda: aten.nll_loss_backward(Y[:, 0], Y, T, V.abs(), 0, 5, V.sum()),
    "nll2d": lambda: aten.nll_loss2d_forward(X, (X[:, 0] * 1.2).abs().long(), B, 1, 0), "layer_norm": lambda: aten.native_layer_norm(Y, [6], V, V, 1e-5),
    "layer_norm_backward": lambda: aten.native_layer_norm_backward(Y, P, [6], Y[:, :1], P[:, :1], V, V, [True] * 3),
    "group_norm": lambda: aten.native_group_norm(X, B, B, 2, 4, 25, 2, 1e-5),
    "group_norm_backward": lambda: aten.native_group_norm_backward(X, X * 2, X[:, :2, 0, 0], X[:, :2, 0, 1], B, 2, 4, 25, 2, [True] * 3),
    "batch_norm": lambda: aten.native_batch_norm(X, B, B, B.clone(), B.clone(), True, 0.1, 1e-5), "batch_norm_eval": lambda: aten.native_batch_norm(X, B, None, B, B, False, 0.1, 1e-5)[0],
    "batch_norm_backward": lambda: aten.native_batch_norm_backward(X, X * 2, B, B, B, B, B, True, 1e-5, [True] * 3),
    "layer_norm_bfloat16": lambda: aten.native_layer_norm(Y.bfloat16(), [6], None, None, 1e-5), "lerp": lambda: aten.lerp(Y, P, 0.7), "rsub": lambda: aten.rsub(Y, 2),
    "nan_to_num": lambda: aten.nan_to_num((Y * 2).log() / 0), "logaddexp": lambda: aten.logaddexp(Y, P), "xlogy": lambda: aten.xlogy(cresset.arange(3), P[:, 0]),
    "logit_backward": lambda: aten.logit_backward(P, P, 0.1), "ndtr": lambda: aten.special_ndtr(Y * 3), "entr": lambda: aten.special_entr(Y), "addmm": lambda: aten.addmm(Y[:, :3], Y, Y.t(), beta=2),
    "baddbmm_nan": lambda: aten.baddbmm(X[0] / 0, X[0], X[0], beta=0), "var_mean": lambda: aten.var_mean(Y, [1], correction=2, keepdim=True),
    "var_0": lambda: aten.var(Y, None, correction=0), "logsumexp": lambda: aten.logsumexp(Y, [1]), "cross": lambda: aten.linalg_cross(Y, P, dim=0), "all_bytes": lambda: aten.all(cresset.ones(3, dtype=cresset.uint8)),
    "diag_embed": lambda: aten.diag_embed(Y, -1, 0, 1), "unbind": lambda: aten.unbind(Y, 1), "rot90": lambda: aten.rot90(Y, 3), "roll": lambda: aten.roll(X, [1, -2], [0, 3]), "triu": lambda: aten.triu(X, -1),
    "embedding_backward": lambda: aten.embedding_dense_backward(Y, cresset.tensor([1, 1, 2]), 5, 2, True), "index_add": lambda: aten.index_add(Y, 0, cresset.tensor([1, 1, 2]), P, alpha=2),
    "index_fill": lambda: aten.index_fill(Y, 1, cresset.tensor([5, 0]), 7.0), "unfold_backward": lambda: aten.unfold_backward(numbers(3, 4, 3), [3, 9], 1, 3, 2),
    "reflect": lambda: aten.reflection_pad2d(X, [2, 1, 3, 4]), "replicate": lambda: aten.replication_pad2d(X, [2, 1, 3, 6]), "pad": lambda: aten.constant_pad_nd(Y, [1, -1, 2, 0], 3.0),
    "reflect_backward": lambda: aten.reflection_pad2d_backward(numbers(2, 4, 7, 6), X, [1, 0, 1, 1]), "nearest": lambda: aten.upsample_nearest2d(X, [10, 7]),
    "nearest_exact": lambda: aten._upsample_nearest_exact2d(X, [3, 7]), "bilinear": lambda: aten.upsample_bilinear2d(X, [10, 7], False), "corners": lambda: aten.upsample_bilinear2d(X, [10, 7], True),
    "im2col": lambda: aten.im2col(X, [2, 3], [1, 2], [1, 1], [2, 1]), "col2im": lambda: aten.col2im(numbers(2, 12, 18), [6, 7], [2, 2], [1, 1], [0, 0], [2, 1]),
    "pixel_shuffle": lambda: aten.pixel_shuffle(X, 2), "renorm": lambda: aten.renorm(Y, 2, 0, 1.5), "weight_norm": lambda: aten._weight_norm_interface(Y, P[:, :1]),
    "attention": lambda: aten._scaled_dot_product_flash_attention_for_cpu(X, X, X, 0.0, True), "tril": lambda: aten.tril(Y > 0, 1),
    "attention_mask": lambda: aten._scaled_dot_product_flash_attention_for_cpu(X, X, X, attn_mask=X[:1, :1], scale=0.5), "triu_bool": lambda: aten.triu(X > 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_kernels(name):
    graph = make_fx(CALLS[name], decomposition_table=decomposition_table)()
    called = {n.target for n in graph.graph.nodes if n.op == "call_function"}
    assert not called & decomposition_table.keys(), "nothing that has an entry is left"
    assert_close(graph(), CALLS[name](), equal_nan=True)


def test_running_statistics_are_written():
    mean, var = cresset.zeros(4), cresset.ones(4)
    graph = make_fx(lambda x, m, v: aten.native_batch_norm(x, None, None, m, v, True, 0.1, 1e-5)[0], decomposition_table=get_decompositions([aten.native_batch_norm]))(X, mean, var)
    mean.zero_(), var.fill_(1)  # the trace has run the function, too
    graph(X, mean, var)
    assert_close(mean, X.mean([0, 2, 3]) * 0.1)
    assert_close(var, 0.9 + X.var([0, 2, 3]) * 0.1)


def test_packets_mean_all_their_overloads():
    found = get_decompositions([aten.silu, aten.mse_loss.default, aten.add])
    assert {str(op) for op in found} == {"aten.silu.default", "aten.silu.out", "aten.mse_loss.default"}
    graph = make_fx(lambda x: aten.silu.out(x, out=cresset.empty(0)), decomposition_table=found)(Y)
    assert operators(graph).startswith("empty.memory_format sigmoid.default mul.Tensor")
    assert_close(graph(Y), aten.silu(Y))


def test_in_place_forms_copy():
    graph = make_fx(lambda x: aten.silu_(x.clone()), decomposition_table=get_decompositions([aten.silu_]))(Y)
    assert operators(graph) == "clone.default sigmoid.default mul.Tensor copy_.default"


def test_core_leaves_core_operators():
    core = core_aten_decompositions()
    assert aten.silu.default in core and aten.gelu.default not in core and aten._softmax.default not in core
    core.clear()
    assert aten.silu.default in core_aten_decompositions()


def test_remove():
    table = get_decompositions([aten.silu, aten.mse_loss, aten.t])
    remove_decompositions(table, [aten.silu, aten.mse_loss.out, aten.gelu])
    assert {str(op) for op in table} == {"aten.mse_loss.default", "aten.t.default"}
    assert aten.silu.default in decomposition_table


def test_register():
    table = {}

    @register_decomposition([aten.sinh.default, aten.cosh], table)
    def halves(self):
        return (self.exp() + (-self).exp()) / 2

    assert table[aten.cosh.default] is halves and table[aten.cosh.out] is halves and aten.sinh.default in table
    assert aten.cosh.default not in decomposition_table
    graph = make_fx(lambda x: x.cosh(), decomposition_table=table)(Y)
    assert operators(graph) == "exp.default neg.default exp.default add.Tensor div.Tensor"
    with pytest.raises(RuntimeError, match=r"duplicate registrations for aten.cosh.default"):
        register_decomposition(aten.cosh.default, table)(halves)
    with pytest.raises(AssertionError, match=r"type must be one of \['meta', 'post_autograd', 'pre_autograd'\], got post"):
        register_decomposition(aten.cosh, type="post")


def test_table_of_another_type():
    try:
        register_decomposition(aten.cosh.default, type="meta")(lambda self: self)
        assert list(get_decompositions([aten.cosh], type="meta")) == [aten.cosh.default]
    finally:
        global_decomposition_table["meta"].clear()


def test_decompositions_are_functions_by_name():
    assert_close(decompositions.elu_backward(Y, 1.0, 1, 1, True, Y), aten.elu_backward(Y, 1.0, 1, 1, True, Y))
    assert_close(decompositions._softmax(Y, -1, False), Y.softmax(-1))
    strided = numbers(72).as_strided((2, 4, 3, 3), (9, 18, 3, 1))
    assert decompositions._softmax(strided, -1, False).stride() == decompositions._log_softmax(strided, -1, False).stride() == (36, 9, 3, 1)


def test_gradients_in_terms_of_others():
    table = get_decompositions([aten.native_layer_norm, aten.native_layer_norm_backward, aten.gelu, aten.gelu_backward, aten.mse_loss, aten.mse_loss_backward])

    def gradient(x):
        w = x.detach().requires_grad_()
        loss = cresset.nn.functional.mse_loss(cresset.nn.functional.gelu(cresset.nn.functional.layer_norm(w, [6])), x)
        return cresset.autograd.grad(loss, w)[0]

    graph = make_fx(gradient, decomposition_table=table)(Y)
    assert not {n.target for n in graph.graph.nodes} & table.keys()
    assert_close(graph(Y), gradient(Y))


def test_export_takes_the_tables():
    class Net(cresset.nn.Module):
        def forward(self, x):
            return cresset.nn.functional.silu(x).t()

    program = cresset.export.export(Net(), (Y,)).run_decompositions(core_aten_decompositions())
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"] == ["aten.sigmoid.default", "aten.mul.Tensor", "aten.permute.default"]


def test_composite_operators_are_told():
    from cresset._export.utils import _is_cia_op
    from cresset._ops import DispatchKey

    assert _is_cia_op(aten.reshape.default) and not _is_cia_op(aten.silu.default) and not _is_cia_op(aten.silu)
    assert aten.reshape.default.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)


@pytest.mark.parametrize("dtype", [cresset.uint8, cresset.int16, cresset.int64])
def test_products_of_whole_numbers(dtype):
    m, v, b = (cresset.tensor([[3, 4], [5, 6]], dtype=dtype), cresset.tensor([7, 9], dtype=dtype), cresset.tensor([[[1, 2], [3, 40]]], dtype=dtype))
    for op, args in ((aten.mv, (m, v)), (aten.dot, (v, v)), (aten.addmv, (v, m, v)), (aten.addmm, (m, m, m)), (aten.baddbmm, (b, b, b))):
        for scales in ({},) if op in (aten.mv, aten.dot) else ({}, {"beta": 2, "alpha": 3}, {"beta": 2.5, "alpha": 1.5}):
            found, expected = decomposition_table[op.default](*args, **scales), op(*args, **scales)
            assert found.dtype is dtype and found.equal(expected), (op, scales)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_with_a_weight_of_more_dimensions(training):
    x, mean, var = numbers(2, 3, 2, 2), numbers(3), numbers(3).abs() + 0.5
    args = numbers(3).view(3, 1, 1, 1), numbers(3), mean, var, training, 0.1, 1e-5
    assert_close(decompositions.native_batch_norm(x, *args[:2], mean.clone(), var.clone(), *args[4:])[0], aten.native_batch_norm(x, *args)[0])


def test_narrow_types():
    rules = get_decompositions([aten.hardtanh, aten.dot, aten.sgn])
    whole = cresset.tensor([4, -2, 0], dtype=cresset.int16)
    assert_close(rules[aten.hardtanh.default](whole, -0.5, 2.5), cresset.tensor([2, 0, 0], dtype=cresset.int16))
    half = cresset.full((2000,), 1.5, dtype=cresset.float16)
    assert_close(rules[aten.dot.default](half, half), cresset.tensor(4500.0, dtype=cresset.float16), rtol=0, atol=0)  # 2.25 two thousand times
    assert_close(rules[aten.sgn.default](cresset.tensor([3 + 4j, 0], dtype=cresset.complex32)), cresset.tensor([0.6 + 0.8j, 0], dtype=cresset.complex32))
