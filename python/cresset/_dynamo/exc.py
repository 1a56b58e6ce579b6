"""The errors of PyTorch's compiler of Python code, for programs that catch them; `compile` raises BackendCompilerFailed, InvalidBackend and Unsupported."""

from cresset._capture.dynamo_errors import (  # noqa: F401
    BackendCompilerFailed, CondOpArgsMismatchError, InternalTorchDynamoError, InvalidBackend, RecompileError, ResetRequired, ShortenTraceback, TorchDynamoException,
    TorchRuntimeError, UncapturedHigherOrderOpError, Unsupported, UserError, UserErrorType,
)  # fmt: skip
