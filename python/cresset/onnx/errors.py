"""What goes wrong on the way to ONNX."""

__all__ = ["OnnxExporterError", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """A translation cannot be declared, or a model cannot be exported."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator that has no translation in a version of the operator set."""

    def __init__(self, name, version, supported_version=None):
        since = f" Support for this operator was added in version {supported_version}, try exporting with this version" if supported_version else ""
        super().__init__(f"Exporting the operator '{name}' to ONNX opset version {version} is not supported.{since}")


class SymbolicValueError(OnnxExporterError):
    """A value of the graph that a translation cannot use."""

    def __init__(self, msg, value):
        super().__init__(f"{msg}  [Caused by the value '{value}']")
