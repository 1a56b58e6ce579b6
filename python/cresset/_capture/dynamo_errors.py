"""The errors of PyTorch's compiler of Python code (`_dynamo.exc`)."""


class TorchDynamoException(RuntimeError):
    """Base of all."""


class ShortenTraceback(TorchDynamoException):
    """An error that is shown without the compiler's own frames."""


class BackendCompilerFailed(ShortenTraceback):
    """The compiler of graphs raised."""


class InternalTorchDynamoError(TorchDynamoException):
    """A mistake of the compiler's own."""


class InvalidBackend(TorchDynamoException):
    """No compiler of graphs has the name."""


class RecompileError(TorchDynamoException):
    """Code would have to be compiled again where that was refused."""


class ResetRequired(TorchDynamoException):
    """The compiler must forget what it compiled first."""


class TorchRuntimeError(TorchDynamoException):
    """An operator refused the arguments that it would get."""


class Unsupported(TorchDynamoException):
    """Python code that cannot be compiled."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """The function of a higher-order operator cannot be compiled as a whole."""


class CondOpArgsMismatchError(TorchDynamoException):
    """The branches of a cond give results of different kinds."""


class UserError(TorchDynamoException):
    """A program asks for what cannot be compiled."""
