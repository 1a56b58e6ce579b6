"""Sparsity: masks that are learnt while a model trains, and what removes the rows they leave empty (docs/guide/pruning.md)."""

from ._mappings import get_dynamic_sparse_quantized_mapping, get_static_sparse_quantized_mapping  # noqa: F401
from .scheduler.base_scheduler import BaseScheduler  # noqa: F401
from .scheduler.cubic_scheduler import CubicSL  # noqa: F401
from .scheduler.lambda_scheduler import LambdaSL  # noqa: F401
from .sparsifier.base_sparsifier import BaseSparsifier  # noqa: F401
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier  # noqa: F401
from .sparsifier.utils import FakeSparsity, fqn_to_module, get_arg_info_from_tensor_fqn, module_to_fqn  # noqa: F401
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier  # noqa: F401
