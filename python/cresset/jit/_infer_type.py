"""The type that a value has in scripts, as the tracer takes it: `_C._jit_try_infer_type` and the answer's class."""

import cresset

from .. import _C


class InferredType:
    """A type, or the reason why there is none."""

    def __init__(self, found):
        self._found = found

    def success(self):
        """Is there a type?"""
        return not isinstance(self._found, str)

    def type(self):
        """The type. RuntimeError when there is none."""
        if not self.success():
            raise RuntimeError("Tried to get the type from an InferredType but the type is null.")
        return self._found

    def reason(self):
        """Why there is no type; empty when there is one."""
        return "" if self.success() else self._found


class _Unknown(Exception):
    pass


def _plain_types():
    return (
        (cresset.Tensor, _C.TensorType), (bool, _C.BoolType), (int, _C.IntType), (float, _C.FloatType), (complex, _C.ComplexType),
        (str, _C.StringType), (type(None), _C.NoneType), (cresset.device, _C.DeviceObjType),
        ((cresset.dtype, cresset.layout), _C.IntType), (cresset.Generator, _C._GeneratorType),
    )  # fmt: skip


def _merge(a, b):
    """The type of both, where None makes the other optional; None for two that differ."""
    if a.annotation_str == b.annotation_str:
        return a
    for none, other in ((a, b), (b, a)):
        if none.kind() == "NoneType":
            return other if other.kind() == "OptionalType" else _C.OptionalType(other)
        if none.kind() == "OptionalType" and none.getElementType().annotation_str == other.annotation_str:
            return none
    return None


def _element(values, different):
    found = _infer(values[0])
    for value in values[1:]:
        other = _infer(value)
        merged = _merge(found, other)
        if merged is None:
            raise _Unknown(f"{different}. Found {found} and {other}")
        found = merged
    return found


def _infer(value):
    for kinds, found in _plain_types():
        if isinstance(value, kinds):
            return found.get()
    if isinstance(value, tuple):
        return _C.TupleType([_infer(v) for v in value])
    if isinstance(value, list):
        if not value:
            raise _Unknown("List trace inputs must have elements")
        return _C.ListType(_element(value, "List inputs to traced functions must have consistent element type"))
    if isinstance(value, dict):
        if not value:
            raise _Unknown("Dictionary inputs must have entries")
        words = "Dictionary inputs to traced functions must have consistent type"
        return _C.DictType(_element(list(value), words), _element(list(value.values()), words))
    script = getattr(value, "_c", value)
    if hasattr(script, "_type"):
        return script._type()
    if isinstance(value, cresset.nn.Module):
        raise _Unknown("Cannot infer concrete type of torch.nn.Module")
    raise _Unknown(
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced functions, "
        f"but instead got value of type {type(value).__name__}."
    )


def try_infer_type(value):
    """The type of a value as the tracer takes it: numbers, strings, tensors, devices, and tuples, lists and dicts of one type of these."""
    try:
        return InferredType(_infer(value))
    except _Unknown as unknown:
        return InferredType(str(unknown))
