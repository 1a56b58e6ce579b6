"""Whether the hooks of a scripted module fit its `forward`: what PyTorch refuses, with its words."""

from cresset import _C

from . import _definitions

__all__ = ["check"]


def check(concrete, compiled, functions):
    """`compiled`: forward, the hooks before it, those behind it; `functions`: the same hooks in Python. RuntimeError for one that does not fit."""
    forward, before, after = compiled
    if forward is None or not (before or after):
        return
    inputs, (result,) = [v.type() for v in forward.graph.inputs()][1:], [v.type() for v in forward.graph.outputs()]
    for hook, function in zip(before, functions[0]):
        _check_before(_Hook(concrete.cls.__name__, hook, function, True, inputs), inputs)
    for hook, function in zip(after, functions[1]):
        result = _check_after(_Hook(concrete.cls.__name__, hook, function, False, inputs, result), result)


class _Hook:
    def __init__(self, module, hook, function, before, inputs, result=None):
        self.name, self.function, self.inputs = hook.name, function, inputs
        self.parameters = [v.type() for v in hook.graph.inputs()]
        self.returns = next(hook.graph.outputs()).type()
        self.subject = f"{'Pre-hook' if before else 'Hook'} '{hook.name}' on module '{module}'"
        kinds = ", ".join(t.annotation_str for t in inputs)
        arguments = f"self, input: Tuple[{kinds or '()'}]"
        if before:
            nested = len(inputs) == 1 and inputs[0].kind() == "TupleType"
            results = f"'None' or 'Tuple[{kinds}]'" if nested else "'None'" + (f", '{kinds}'," if len(inputs) == 1 else "") + f" or 'Tuple[{kinds}]'"
            self.advice = (
                f"This error occurred while scripting the forward pre-hook '{hook.name}' on module '{module}'. If you did not want to script this "
                f"pre-hook remove it from the original NN module before scripting. Pre-hooks for module '{module}' are expected to have the "
                f"following signature: {hook.name}({arguments}) with a return type of either {results}."
            )
        else:
            self.advice = (
                f"This error occurred while scripting the forward hook '{hook.name}' on module {module}. If you did not want to script this hook "
                "remove it from the original NN module before scripting. This hook was expected to have the following signature: "
                f"{hook.name}({arguments}, output: {result.annotation_str}). The type of the output arg is the returned type from either the "
                "forward method or the previous hook if it exists. Note that hooks can return anything, but if the hook is on a submodule the "
                "outer module is expecting the same return type as the submodule's forward."
            )

    def refuse(self, what):
        raise RuntimeError(f"{self.subject} {what}\n{self.advice}")

    def check_inputs(self, count, inputs):
        if len(self.parameters) != count:
            self.refuse(f"was expected to only have exactly {count} inputs but it had {len(self.parameters)} inputs.")
        given = self.parameters[1]
        if given.kind() != "TupleType":
            self.refuse(f"expected the input argument to be typed as a Tuple but found type: '{given.annotation_str}' instead.")
        received = f"Received type: '{given.annotation_str}'."
        if len(given.elements()) != len(inputs):
            self.refuse(f"has the wrong number of contained types for the input argument's Tuple. {received}")
        if not _same(given.elements(), inputs):
            self.refuse(f"has the wrong inner types for the input tuple argument. {received}")


def _same(some, others):
    return len(some) == len(others) and all(a == b for a, b in zip(some, others))


def _check_before(hook, inputs):
    hook.check_inputs(2, inputs)
    annotated = "return" in _definitions.annotations_of(hook.function) or "return" in _definitions.types_in_comments(hook.function)
    if not annotated and hook.returns != _C.NoneType.get():
        hook.refuse("is missing a return annotation. Return annotations are required, please add one.")
    if hook.returns == _C.NoneType.get():
        return
    nested = len(inputs) == 1 and inputs[0].kind() == "TupleType"
    if hook.returns.kind() == "TupleType" and not (nested and _same(hook.returns.elements(), inputs)):
        if nested:
            hook.refuse(
                f"returned the wrong type of: '{hook.returns.annotation_str}'. When forward has a single tuple input argument, the return needs to be "
                "'None' or a nested tuple containing forward's input tuple argument as in: "
                f"'Tuple[{inputs[0].annotation_str}]'."
            )
        if not _same(hook.returns.elements(), inputs):
            hook.refuse(f"returned the wrong type of: '{hook.returns.annotation_str}'. The returned tuple contains the wrong inner types.")
    elif hook.returns.kind() != "TupleType" and not (len(inputs) == 1 and hook.returns == inputs[0]):
        hook.refuse(f"returned the wrong type of: '{hook.returns.annotation_str}'.")


def _check_after(hook, result):
    """The type of the result behind the hook."""
    hook.check_inputs(3, hook.inputs)
    if hook.parameters[2] != result:
        hook.refuse(
            f"has the wrong type for the output argument. Received type: '{hook.parameters[2].annotation_str}'. Expected type: "
            f"'{result.annotation_str}'."
        )
    return result if hook.returns == _C.NoneType.get() else hook.returns
