"""Which operators `run_decompositions` takes apart, and the table that says it."""

import functools
import itertools

import cresset
from cresset import Tag, _C
from cresset._decomp import core_aten_decompositions
from cresset._ops import OpOverload

__all__ = ["CustomDecompTable"]

# Composite here, elementary in PyTorch's graphs: nothing takes them apart.
_ELEMENTARY = (
    "__lshift__.Scalar", "__lshift__.Tensor", "__rshift__.Scalar", "__rshift__.Tensor", "_addmm_activation.default", "_is_all_true.default", "_is_any_true.default", "_native_batch_norm_legit.default",
    "_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_no_training.default", "_trilinear.default", "addbmm.default",
    "bucketize.Scalar", "dist.default", "narrow_copy.default", "native_group_norm.default", "searchsorted.Scalar",
    "triangular_solve.default", "upsample_bilinear2d.vec", "upsample_nearest2d.vec",
)  # fmt: skip


@functools.cache
def elementary():
    """Composite overloads that stay whole in every program."""
    found = (name.split(".") for name in _ELEMENTARY)
    return frozenset(getattr(getattr(cresset.ops.aten, packet), overload) for packet, overload in found)


def _says_all(schema):
    """Does the schema say what is written, and whose memory the results have?"""
    return not schema.is_mutable and not any(a.alias_info for a in (*schema.arguments, *schema.returns))


@functools.cache
def preservable():
    """Composite overloads that stay whole unless a table has them: their results are new, and they write nothing."""
    found = set()
    for schema in _C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and _says_all(schema):
            overload = getattr(getattr(cresset.ops.aten, schema.name[6:]), schema.overload_name or "default")
            if overload.has_kernel_for_dispatch_key("CompositeImplicitAutograd") and Tag.maybe_aliasing_or_mutating not in overload.tags:
                found.add(overload)
    return frozenset(found - elementary())


def is_preservable(op):
    """Does a composite overload stay whole unless a table has it? Those of programs' own libraries do as well."""
    return op in preservable() or isinstance(op, OpOverload) and op.namespace not in _OWN_NAMESPACES and _is_composite(op) and _says_all(op._schema)


_OWN_NAMESPACES = ("aten", "autocast", "cresset", "prim", "prims")


def _is_composite(op):
    key = _C.DispatchKey.CompositeImplicitAutograd
    return key in op.py_kernels or op.has_kernel_for_dispatch_key("CompositeImplicitAutograd")


def _of_libraries():
    """Composite overloads that libraries of programs have defined by now."""
    for schema in _C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace not in _OWN_NAMESPACES and not schema.is_mutable:
            op = getattr(getattr(getattr(cresset.ops, namespace), name), schema.overload_name or "default")
            if is_preservable(op):
                yield op


class CustomDecompTable(dict):
    """{overload: function} of all that leaves core operators: `core_aten_decompositions`, and composite operators by their own kernels, those of
    programs' libraries too.

    What is taken out of it stays whole in `run_decompositions(table)`; another function takes an operator apart in its own way.
    """

    has_materialized = property(lambda self: True, doc="True: all entries are there from the start.")

    def __init__(self):
        super().__init__({op: op.decompose for op in itertools.chain(preservable(), _of_libraries())})
        self.update(core_aten_decompositions())
        self._taken_out = set()

    def __missing__(self, op):
        raise KeyError(f"{op} is not in the table of decompositions")

    def __delitem__(self, op):
        self.pop(op)

    def pop(self, op, *default):
        """Take an entry out, and give it."""
        self._taken_out.add(op)
        return super().pop(op, *default) if default or op in self else self[op]

    def copy(self):
        """Another table with the same entries."""
        new = CustomDecompTable.__new__(CustomDecompTable)
        new.update(self)
        new._taken_out = set(self._taken_out)
        return new

    def materialize(self):
        """The entries as a dict, with those of operators that libraries have defined since."""
        return {**{op: op.decompose for op in _of_libraries() if op not in self._taken_out}, **self}
