"""Errors of export, of PyTorch's classes and with PyTorch's words where it has some."""

from cresset._capture.dynamo_errors import UserError, UserErrorType
from cresset.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

__all__ = ["UserError", "UserErrorType", "data_dependent", "invalid_input", "invalid_shapes"]


def data_dependent(problem):
    """The error for code that needs a value of a tensor, of the operator's error `problem`."""
    operator = getattr(problem, "func", None)
    shown = f" ({operator})" if operator is not None else ""
    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression: the program asks for a value of a tensor{shown}, which export does not know.\n"
        "Use torch.cond for a branch that depends on values, torch.where for a choice of elements, or pass the number as an input of the module; where the "
        "size of a result depends on values (nonzero, masks as indices), use an operator whose result has a fixed size."
    )


def invalid_input(text):
    """UserError about the arguments of export."""
    return UserError(UserErrorType.INVALID_INPUT, text)


def invalid_shapes(text):
    """UserError about dynamic_shapes."""
    return UserError(UserErrorType.INVALID_INPUT, text, case_name="dynamic_shapes_validation")
