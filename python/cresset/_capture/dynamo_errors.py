"""The errors of PyTorch's compiler of Python code (`_dynamo.exc`)."""

import enum


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


class UserErrorType(enum.Enum):
    """What is wrong about a program or a call."""

    DYNAMIC_CONTROL_FLOW = enum.auto()
    ANTI_PATTERN = enum.auto()
    STANDARD_LIBRARY = enum.auto()
    CONSTRAINT_VIOLATION = enum.auto()
    DYNAMIC_DIM = enum.auto()
    INVALID_INPUT = enum.auto()
    INVALID_OUTPUT = enum.auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = enum.auto()


class UserError(Unsupported):
    """A program asks for what cannot be compiled or exported. case_name: the page of PyTorch's export database that the text points to."""

    def __init__(self, error_type, msg=None, case_name=None):
        if msg is None:
            error_type, msg = None, error_type
        if case_name is not None:
            page = f"https://pytorch.org/docs/main/generated/exportdb/index.html#{case_name.replace('_', '-')}"
            msg += f"{'' if msg.endswith(('.', chr(10))) else chr(10)}For more information about this error, see: {page}"
        super().__init__(msg)
        self.error_type, self.msg, self.message = error_type, msg, msg
