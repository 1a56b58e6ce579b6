"""Tags: promises that operators make about themselves."""

import enum

__all__ = ["Tag"]


class Tag(str, enum.Enum):
    """A property of an operator; equal to its name."""

    core = "core"
    cudagraph_unsafe = "cudagraph_unsafe"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    flexible_layout = "flexible_layout"
    generated = "generated"
    inplace = "inplace"
    inplace_view = "inplace_view"
    maybe_aliasing_or_mutating = "maybe_aliasing_or_mutating"
    needs_contiguous_strides = "needs_contiguous_strides"
    needs_exact_strides = "needs_exact_strides"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    nondeterministic_bitwise = "nondeterministic_bitwise"
    nondeterministic_seeded = "nondeterministic_seeded"
    out = "out"
    out_variant = "out_variant"
    pointwise = "pointwise"
    pt2_compliant_tag = "pt2_compliant_tag"
    reduction = "reduction"
    view_copy = "view_copy"

    def __int__(self):
        return list(Tag).index(self)

    def __str__(self):
        return f"Tag.{self.name}"

    def __repr__(self):
        return f"<Tag.{self.name}: {int(self)}>"


def as_tag(name):
    """The Tag of a name; names of other tags stay strings."""
    return Tag.__members__.get(name, name)


def name_of(tag):
    """The text by which the dispatcher keeps a tag."""
    return tag.value if isinstance(tag, Tag) else str(tag)
