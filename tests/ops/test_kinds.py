"""Which operators a backend gets: those that PyTorch 2.13 does not compose of others (operator_kinds.json, by record_kinds.py) are none here either."""

import json
from pathlib import Path

import pytest

import cresset

RECORDED = {kind: set(names.split()) for kind, names in json.loads(Path(__file__).with_name("operator_kinds.json").read_text()).items()}
HERE = {
    name[6:]: cresset._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    for name in cresset._C._dispatch_get_all_op_names()
    if name.startswith("aten::") and name not in cresset._ops.declared_in_python
}

# Composed of others here, by reason.
COMPOSED = {
    "the other name of an operator that a backend gets": """
        __lshift__.Tensor __lshift__.Tensor_out __lshift__.Scalar __lshift__.Scalar_out __rshift__.Tensor __rshift__.Tensor_out __rshift__.Scalar __rshift__.Scalar_out
        __ilshift__.Tensor __ilshift__.Scalar __irshift__.Tensor __irshift__.Scalar _conj polygamma_ _convolution _convolution.out _ctc_loss.Tensor _ctc_loss.Tensor_out
        _ctc_loss_backward.Tensor _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback.out _batch_norm_no_update _batch_norm_no_update.out _batch_norm_with_update
        _batch_norm_with_update.out batch_norm_backward _native_batch_norm_legit _native_batch_norm_legit.out _native_batch_norm_legit.no_stats
        _native_batch_norm_legit.no_stats_out _embedding_bag_backward
        _foreach_addcdiv.Tensor _foreach_addcdiv.Tensor_out _foreach_addcdiv_.Tensor _foreach_addcmul.Tensor _foreach_addcmul.Tensor_out _foreach_addcmul_.Tensor _foreach_mm""",
    "the out form of a composite, which backends get in PyTorch": """
        adaptive_avg_pool1d.out adaptive_avg_pool2d.out adaptive_avg_pool3d.out avg_pool1d.out linear.out softmax.int_out log_softmax.int_out upsample_bilinear2d.vec_out
        upsample_nearest2d.vec_out""",
    "asks, and computes nothing": "is_pinned is_same_size _fused_sdp_choice",
    "packs for the CPU only": "_convert_weight_to_int4pack_for_cpu _scaled_mm _scaled_mm.out _pack_padded_sequence",
    "programs in C++ call it; backends get the parts, which are their operators": """
        _batch_norm_with_update_functional _conv_depthwise2d _index_put_impl _logcumsumexp _nnpack_spatial_convolution _reshape_copy _stack
        batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
        batch_norm_stats batch_norm_update_stats conv_depthwise3d glu_backward_jvp glu_jvp is_set_to lift max_pool2d_backward native_norm
        native_norm.ScalarOpt_dim_dtype rrelu_with_noise.out rrelu_with_noise_functional slice_inverse slow_conv_dilated2d slow_conv_dilated3d
        slow_conv_transpose2d slow_conv_transpose3d""",
    "chooses between leaky_relu and noise": "rrelu_with_noise rrelu_with_noise_",
}
# Kernels of their own here.
WHOLE = set(
    "conj_physical empty.out isclose isfinite isreal linalg_eigvals mish_backward rand.generator_out randn.generator_out randn.out silu_backward special_ndtr "
    "special_ndtr.out where.Scalar where.ScalarOther where.ScalarSelf".split()
)


def test_backends_get_what_they_get_in_pytorch():
    composed = {name for name, composite in HERE.items() if composite and name in RECORDED["backend"]}
    assert composed == {name for names in COMPOSED.values() for name in names.split()}


def test_composites_are_composites():
    assert {name for name, composite in HERE.items() if not composite and name in RECORDED["composite"]} == WHOLE


F = cresset.nn.functional
CALLS = {
    "glu": lambda x: F.glu(x),
    "celu": lambda x: F.celu(x, 1.5),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(1, 4, 2, 2), 2),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x.reshape(1, 1, 4, 4), 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x.reshape(1, 4, 2, 2), 2),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, cresset.full_like(x.detach(), 0.25)),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, x.detach().sign()),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x, cresset.tensor([0, 1, 2, 3])),
    "multilabel_margin_loss_forward": lambda x: F.multilabel_margin_loss(x, cresset.zeros(4, 4, dtype=cresset.int64)),
    "nll_loss2d_forward": lambda x: cresset.ops.aten.nll_loss2d_forward(x.reshape(1, 4, 2, 2), cresset.zeros(1, 2, 2, dtype=cresset.int64), None, 1, -100)[0],
    "vdot": lambda x: cresset.vdot(x.flatten(), x.flatten() * 2),
    "trace": lambda x: x.trace(),
    "dist": lambda x: cresset.dist(x, x * 2),
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    "addr": lambda x: cresset.addr(x, x[0], x[1]),
    "addbmm": lambda x: cresset.addbmm(x, x.reshape(1, 4, 4), x.reshape(1, 4, 4)),
    "block_diag": lambda x: cresset.block_diag(x, x),
    "cholesky": lambda x: cresset.cholesky(x @ x.t() + 5 * cresset.eye(4, dtype=x.dtype)),
    "conv_tbc": lambda x: cresset.conv_tbc(x.reshape(4, 2, 2), x.reshape(2, 2, 4), x[0]),
}  # fmt: skip


def seen(call, x):
    from cresset.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__.partition(".")[0])
            return func(*args, **(kwargs or {}))

    Seen.names = []
    with Seen():
        result = call(x)
    return Seen.names, result


@pytest.mark.parametrize("name", CALLS)
def test_what_runs_whole_is_differentiated_all_the_same(name):
    """Without a graph a mode sees one operator. Gradients, tangents, gradients of gradients and batches are those of its parts, or its own."""
    cresset.manual_seed(0)
    x = cresset.randn(4, 4, dtype=cresset.float64)
    names, plain = seen(CALLS[name], x)
    assert name in names
    recorded = x.clone().requires_grad_()
    result = CALLS[name](recorded)
    assert cresset.equal(result, plain) or cresset.allclose(result, plain, rtol=1e-12)
    assert cresset.autograd.gradcheck(CALLS[name], (recorded,), check_forward_ad=True, check_batched_grad=True)
    assert cresset.autograd.gradgradcheck(CALLS[name], (recorded,))
    many = cresset.stack([x, 2 * x])
    assert cresset.allclose(cresset.vmap(CALLS[name])(many), cresset.stack([CALLS[name](row) for row in many]))


def test_composed_operators_have_no_batching_rules():
    """But for those whose parts vmap must not see: values (PyTorch has rules of these three too), and the choice between a vector and a batch of them."""
    registered = cresset._C._dispatch_get_registrations_for_dispatch_key
    both = set(registered("CompositeImplicitAutograd")) & set(registered("FuncTorchBatched"))
    assert both == {"aten::item", "aten::is_nonzero", "aten::one_hot", "aten::linalg_solve"}
    assert registered("FuncTorchBatchedDecomposition") == []
