"""nn.functional: the stateless forms of the layers. Operators that need nothing in front are the operators themselves."""

from typing import TYPE_CHECKING, Callable, Optional  # noqa: F401  likewise

import cresset
from cresset import Tensor  # noqa: F401  likewise
from cresset import dtype as DType  # noqa: F401, N812  likewise
from cresset._C import _nn
from cresset._script_forms import BroadcastingList1, BroadcastingList2, BroadcastingList3, boolean_dispatch  # noqa: F401  likewise
from cresset.overrides import handle_torch_function  # noqa: F401  likewise
from cresset.overrides import has_torch_function, has_torch_function_unary, has_torch_function_variadic  # noqa: F401  where PyTorch has them

from ._functional import activation as _activation
from ._functional import attention as _attention
from ._functional import dropout as _dropout
from ._functional import embedding as _embedding
from ._functional import grouped as _grouped
from ._functional import loss as _loss
from ._functional import normalization as _normalization
from ._functional import pooling as _pooling
from ._functional import resize as _resize
from ._functional import scaled as _scaled
from ._functional import vision as _vision
from ._functional.activation import *  # noqa: F403
from ._functional.attention import *  # noqa: F403
from ._functional.attention import _canonical_mask, _check_key_padding_mask, _in_projection, _in_projection_packed  # noqa: F401  (attention of others imports them from here)
from ._functional.attention import _mha_shape_check, _none_or_dtype  # noqa: F401  likewise
from ._functional.dropout import *  # noqa: F403
from ._functional.embedding import *  # noqa: F403
from ._functional.grouped import *  # noqa: F403
from ._functional.loss import *  # noqa: F403
from ._functional.normalization import *  # noqa: F403
from ._functional.normalization import _verify_batch_size, _verify_spatial_size  # noqa: F401  (layers of others ask them)
from ._functional.pooling import *  # noqa: F403
from ._functional.resize import *  # noqa: F403
from ._functional.scaled import *  # noqa: F403
from ._functional.vision import *  # noqa: F403
from . import _reduction as _Reduction  # noqa: E402, F401, N812  where PyTorch has it
from . import grad  # noqa: E402, F401  (gradients of convolutions by themselves)

# Operators that are offered unchanged; those a build does not have are not offered either.
_OPERATORS = {
    cresset: (
        "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc", "avg_pool1d",
        "adaptive_avg_pool1d", "relu_", "threshold_", "celu_", "selu_", "rrelu_", "prelu", "hardshrink", "bilinear",
        "cosine_similarity", "pairwise_distance", "pdist",
        "native_channel_shuffle", "channel_shuffle", "pixel_shuffle", "pixel_unshuffle",
    ),
    _nn: (
        "linear", "gelu", "softplus", "softshrink", "avg_pool2d", "avg_pool3d", "elu_", "hardtanh_", "leaky_relu_", "one_hot",
        "scaled_dot_product_attention",
    ),
}  # fmt: skip

# Numbers by which operators know the modes of grid_sample.
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}

__all__ = []
for _family in (
    _activation, _attention, _dropout, _embedding, _grouped, _loss, _normalization, _pooling, _resize, _scaled, _vision,
):  # fmt: skip
    for _name in _family.__all__:
        getattr(_family, _name).__module__ = __name__
    __all__ += _family.__all__
for _where, _names in _OPERATORS.items():
    for _name in _names:
        if hasattr(_where, _name):
            globals()[_name] = getattr(_where, _name)
            __all__.append(_name)
if hasattr(_nn, "log_sigmoid"):
    logsigmoid = _nn.log_sigmoid
    __all__.append("logsigmoid")

del _family, _name, _names, _where

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def assert_int_or_pair(arg, arg_name, message):
    """AssertionError with the message, which has a place for the name, unless `arg` is an integer or two of them."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))
