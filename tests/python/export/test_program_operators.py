"""The operators of exported programs as PyTorch 2.13 names them: as they were called, with an empty table, and with the core operators' one."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.export import default_decompositions, export
from cresset.export.decomp_utils import CustomDecompTable

aten, ones = cresset.ops.aten, cresset.ones


class Program(nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *args):
        return self.function(*self.parts, *args)


# name, module and arguments, and the operators: called, functional, core
PROGRAMS = [
    ("linear+batch_norm", lambda: (Program(lambda l, b, x: b(l(x)), nn.Linear(3, 3), nn.BatchNorm1d(3)).eval(), (ones(4, 3),)),
     "linear.default batch_norm.default",
     "linear.default _native_batch_norm_legit_no_training.default",
     "permute.default addmm.default _native_batch_norm_legit_no_training.default"),
    ("conv+pool", lambda: (Program(lambda c, x: F.max_pool2d(F.relu(c(x)), 2), nn.Conv2d(3, 4, 3)), (ones(1, 3, 8, 8),)),
     "conv2d.default relu.default max_pool2d.default",
     "conv2d.default relu.default max_pool2d.default",
     "convolution.default relu.default max_pool2d_with_indices.default"),
    ("group_norm", lambda: (Program(lambda g, x: g(x), nn.GroupNorm(2, 4)), (ones(1, 4, 3, 3),)),
     "group_norm.default",
     "group_norm.default",
     "native_group_norm.default"),
    ("instance_norm", lambda: (Program(lambda g, x: g(x), nn.InstanceNorm2d(4, affine=True)), (ones(2, 4, 3, 3),)),
     "instance_norm.default",
     "instance_norm.default",
     "repeat.default repeat.default view.default _native_batch_norm_legit.no_stats view.default"),
    ("pool to one", lambda: (Program(lambda x: F.adaptive_avg_pool2d(x, 1)), (ones(1, 4, 6, 6),)),
     "adaptive_avg_pool2d.default",
     "adaptive_avg_pool2d.default",
     "mean.dim"),
    ("hardswish", lambda: (Program(lambda x: F.hardswish(x)), (ones(3),)),
     "hardswish.default",
     "hardswish.default",
     "add.Tensor clamp.default clamp.default mul.Tensor div.Tensor"),
    ("softmax", lambda: (Program(lambda x: F.softmax(x, -1)), (ones(2, 3),)),
     "softmax.int",
     "softmax.int",
     "_softmax.default"),
    ("tril of bool", lambda: (Program(lambda x: (x > 0).tril()), (ones(3, 3),)),
     "gt.Scalar tril.default",
     "gt.Scalar tril.default",
     "gt.Scalar arange.start_step unsqueeze.default arange.start_step unsqueeze.default sub.Tensor le.Scalar logical_and.default"),
    ("logsumexp", lambda: (Program(lambda x: cresset.logsumexp(x, 1)), (ones(2, 3),)),
     "logsumexp.default",
     "logsumexp.default",
     "amax.default abs.default eq.Scalar scalar_tensor.default where.self squeeze.dims sub.Tensor exp.default sum.dim_IntList log.default add.Tensor"),
    ("resize", lambda: (Program(lambda x: F.interpolate(x, scale_factor=2.,mode="bilinear")), (ones(1, 1, 2, 2),)),
     "upsample_bilinear2d.vec",
     "upsample_bilinear2d.vec",
     "upsample_bilinear2d.vec"),
    ("std", lambda: (Program(lambda x: (x.std(0), x.var(1, keepdim=True), cresset.var_mean(x, 0)[0])), (ones(3, 4),)),
     "std.dim var.dim var_mean.dim",
     "std.dim var.dim var_mean.dim",
     "var.correction sqrt.default var.correction var_mean.correction"),
    ("bits", lambda: (Program(lambda x: (x & 1, x | 2, x ^ 3, x << 1, x >> 1)), (cresset.arange(4),)),
     "__and__.Scalar __or__.Scalar __xor__.Scalar __lshift__.Scalar __rshift__.Scalar",
     "__and__.Scalar __or__.Scalar __xor__.Scalar __lshift__.Scalar __rshift__.Scalar",
     "bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar __lshift__.Scalar __rshift__.Scalar"),
    ("pad+where", lambda: (Program(lambda x: cresset.where(x>0, F.pad(x, (1, 0))[:,1:], x.new_zeros(x.shape))), (ones(2, 3),)),
     "gt.Scalar pad.default slice.Tensor new_zeros.default where.self",
     "gt.Scalar pad.default slice.Tensor new_zeros.default where.self",
     "gt.Scalar constant_pad_nd.default slice.Tensor full.default where.self"),
    ("split", lambda: (Program(lambda x: cresset.cat(cresset.chunk(x, 2, 1), 0)), (ones(2, 4),)),
     "chunk.default cat.default",
     "split.Tensor cat.default",
     "split_with_sizes.default cat.default"),
    ("layer_norm+gelu", lambda: (Program(lambda n, x: F.gelu(n(x)), nn.LayerNorm(4)), (ones(2, 4),)),
     "layer_norm.default gelu.default",
     "layer_norm.default gelu.default",
     "native_layer_norm.default gelu.default"),
    ("prelu", lambda: (Program(lambda p, x: p(x), nn.PReLU()), (ones(2, 4),)),
     "prelu.default",
     "prelu.default",
     "view.default gt.Scalar mul.Tensor where.self"),
    ("dropout in eval", lambda: (Program(lambda p, x: p(x)+1, nn.Dropout()).eval(), (ones(2, 4),)),
     "dropout.default add.Tensor",
     "clone.default add.Tensor",
     "clone.default add.Tensor"),
]  # fmt: skip


def names(program):
    found = (str(n.target).removeprefix("aten.") for n in program.graph.nodes if n.op == "call_function")
    return sorted(name for name in found if "getitem" not in name)


@pytest.mark.parametrize(("program", "called", "functional", "core"), [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS])
def test_operators_of_programs(program, called, functional, core):
    module, arguments = program()
    exported = export(module, arguments)
    assert names(exported) == sorted(called.split())
    expected = module(*arguments)
    for decomposed, operators in ((exported.run_decompositions({}), functional), (exported.run_decompositions(), core)):
        assert names(decomposed) == sorted(operators.split())
        cresset.testing.assert_close(decomposed.module()(*arguments), expected)


def test_tables_say_what_comes_apart():
    table = default_decompositions()
    assert isinstance(table, CustomDecompTable) and aten.linear.default in table and aten.silu.default in table and aten.add.Tensor not in table
    program = export(Program(lambda x, w: F.silu(F.linear(x, w))), (ones(2, 3), ones(4, 3)))
    kept = table.copy()
    assert kept.pop(aten.linear.default) is not None and aten.linear.default in table
    assert names(program.run_decompositions(kept)) == ["linear.default", "mul.Tensor", "sigmoid.default"]
    kept[aten.linear.default] = lambda x, w, b=None: cresset.mm(x, w.t()) * 1
    assert names(program.run_decompositions(kept)) == ["mm.default", "mul.Tensor", "mul.Tensor", "permute.default", "sigmoid.default"]
    assert table.materialize() == dict(table)
