"""Operators of `aten` that the function of the package with their name computes, for `ops.aten`."""

import cresset

__all__ = []

_POOL = "[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor"

_SCHEMAS = (
    *(f"{name}(Tensor self) -> bool" for name in ("is_conj", "is_distributed", "is_inference", "is_neg", "is_signed")),
    "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()",
    "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
    "_debug_has_internal_overlap(Tensor self) -> int",
    f"mkldnn_max_pool2d(Tensor self, int[2] kernel_size, int{_POOL}",
    f"mkldnn_max_pool3d(Tensor self, int[3] kernel_size, int{_POOL.replace('[2]', '[3]')}",
    "mkldnn_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
    "mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor",
    "_mkldnn_transpose(Tensor self, int dim0, int dim1) -> Tensor",
)


def _by_name(name):
    def call(*args, **kwargs):
        return getattr(cresset, name)(*args, **{k: v for k, v in kwargs.items() if v is not None})

    return call


_library = cresset.library.Library("aten", "FRAGMENT")
for _schema in _SCHEMAS:
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _by_name(_schema.partition("(")[0].partition(".")[0]), "CompositeImplicitAutograd")
