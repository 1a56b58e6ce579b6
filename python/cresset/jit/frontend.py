"""What the compiler of scripts raises for Python that scripts do not have, and the classes of what fails when they run."""

__all__ = ["FrontendError", "NotSupportedError", "UnsupportedNodeError"]


class FrontendError(RuntimeError):
    """A function cannot be a script as it is written; the message shows the place."""


class NotSupportedError(FrontendError):
    """Scripts have no such part of a statement or expression, such as `else` of a loop, `**kwargs`, or formats in f-strings."""

    def __init__(self, message=""):
        super().__init__(message.removeprefix("\n"))  # what is refused before it is compiled has no line before its words


class UnsupportedNodeError(NotSupportedError):
    """Scripts have no statements or expressions of this kind, such as `lambda`, `try`, `yield`, or a function in a function."""


# What fails while a script runs is a RuntimeError and keeps its kind: {kind: class}.
_failures = {
    kind: type(kind.__name__, (RuntimeError, kind), {"__str__": BaseException.__str__, "__module__": __name__, "__doc__": f"{kind.__name__} of a script."})
    for kind in (ValueError, TypeError, IndexError, KeyError, AttributeError, ZeroDivisionError)
}
