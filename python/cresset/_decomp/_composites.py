"""Operators that PyTorch's tables name and that are composite here: they come apart as they are composed."""

from ._rules import aten, note
from ._tables import decomposition_table

NAMES = """
    _chunk_cat _unsafe_masked_index _unsafe_masked_index_put_accumulate affine_grid_generator addr block_diag celu celu_ gru.data gru.input
    hinge_embedding_loss isin.Scalar_Tensor isin.Tensor_Scalar isin.Tensor_Tensor lstm.data lstm.input margin_ranking_loss meshgrid
    meshgrid.indexing multi_margin_loss multilabel_margin_loss_forward nll_loss pad_sequence pairwise_distance pdist prelu relu6 rnn_relu.data
    rnn_relu.input rnn_tanh.data rnn_tanh.input selu std std.dim std_mean std_mean.dim upsample_bicubic2d.vec upsample_nearest1d.vec
    upsample_nearest3d.vec upsample_trilinear3d.vec _upsample_bicubic2d_aa.vec _upsample_bilinear2d_aa.vec _upsample_nearest_exact1d.vec
    _upsample_nearest_exact2d.vec _upsample_nearest_exact3d.vec var.default var.dim var_mean var_mean.dim vdot where
""".split()

for _name in NAMES:
    _packet, _, _overload = _name.partition(".")
    _op = getattr(getattr(aten, _packet), _overload or "default")
    if _op not in decomposition_table and _op.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
        note(_op, _op.decompose, True)
