"""Translations of operators to ONNX's, as libraries declare them for PyTorch's exporter.

Cresset writes no ONNX files. What libraries do while they are imported works: they register how their operators are written
(`register_custom_op_symbolic`), with the graph's operators of `symbolic_opset9` and its successors, and ask whether an export goes on. The
translations are kept by name and version, and `symbolic_helper.find` gives them to an exporter that a program brings along.
"""

import enum

import cresset

from . import symbolic_helper, symbolic_opset9, symbolic_opset10, symbolic_opset11
from .errors import OnnxExporterError

__all__ = [
    "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "export", "is_in_onnx_export", "producer_name", "producer_version",
    "register_custom_op_symbolic", "symbolic_helper", "symbolic_opset10", "symbolic_opset11", "symbolic_opset9", "unregister_custom_op_symbolic",
]  # fmt: skip

producer_name, producer_version = "cresset", cresset.__version__  # by which files name who wrote them


class TensorProtoDataType(enum.IntEnum):
    """The numbers of ONNX's element types."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = range(12)
    UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ = range(12, 21)


class OperatorExportTypes(enum.IntEnum):
    """What an exporter does with operators that ONNX does not have."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(enum.IntEnum):
    """In which mode an exporter puts the model."""

    EVAL, PRESERVE, TRAINING = range(3)


def is_in_onnx_export():
    """False: no export goes on."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Keep `symbolic_fn(graph, *args)` as the translation of the operator `symbolic_name` ("domain::name") from this version of the
    operator set on. Raises OnnxExporterError for a name of another form."""
    symbolic_helper.register(symbolic_name, symbolic_fn, opset_version)


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Forget the translation that was registered for this name and version; without one, nothing happens."""
    symbolic_helper.unregister(symbolic_name, opset_version)


def export(model, args=(), f=None, **options):
    """Raises OnnxExporterError: Cresset writes no ONNX files."""
    raise OnnxExporterError("torch.onnx.export: Cresset writes no ONNX files. torch.export.save and torch.jit.save keep a model with its graph.")
