"""Products of eight-bit floats with scales."""

import enum

import cresset

__all__ = ["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"]


class ScalingType(enum.Enum):
    """Which elements of an operand share a scale."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """How scales of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _one(value):
    """What stands alone, or as the only one in a list."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def scaled_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None, output_dtype=cresset.bfloat16,
              contraction_dim=(), use_fast_accum=False):  # fmt: skip
    """(mat_a * scale_a) @ (mat_b * scale_b) + bias of eight-bit floats, in output_dtype; one scale for an operand, or one for each row of it.

    ValueError for other scales.
    """
    a, b, recipes = _one(scale_a), _one(scale_b), (_one(scale_recipe_a), _one(scale_recipe_b))
    if recipes[0] is not recipes[1] or recipes[0] not in (ScalingType.TensorWise, ScalingType.RowWise):
        raise ValueError(f"Invalid scaling configuration: TensorWise or RowWise for both operands was required; got {recipes[0]} and {recipes[1]}.")
    if any(_one(s) not in (None, (), [], SwizzleType.NO_SWIZZLE) for s in (swizzle_a, swizzle_b)) or tuple(contraction_dim):
        raise NotImplementedError("scaled_mm: scales that are swizzled, and other dimensions than the inner ones, have no kernel. Leave swizzle_* and contraction_dim out.")
    return cresset._scaled_mm(mat_a, mat_b, a, b, bias=bias, out_dtype=output_dtype, use_fast_accum=use_fast_accum)


def scaled_grouped_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None, offs=None,
                      output_dtype=cresset.bfloat16, contraction_dim=(), use_fast_accum=False):  # fmt: skip
    """Raises NotImplementedError: no device here has products of groups of eight-bit floats."""
    raise NotImplementedError(f"Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the '{mat_a.device.type.upper()}' backend: it has no such kernel.")
