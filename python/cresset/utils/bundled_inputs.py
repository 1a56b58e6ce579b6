"""Sample inputs that travel with a script module: programs that measure or cover models call any model without knowing what it takes."""

import re
import textwrap
from typing import NamedTuple

import cresset
from cresset import _C
from cresset.jit._recursive import ScriptModule, wrap_module

__all__ = [
    "MAX_RAW_TENSOR_SIZE", "InflatableArg", "augment_many_model_functions_with_bundled_inputs", "augment_model_with_bundled_inputs",
    "bundle_inputs", "bundle_large_tensor", "bundle_randn",
]  # fmt: skip

MAX_RAW_TENSOR_SIZE = 16


class InflatableArg(NamedTuple):
    """An argument that is kept small: `value` lies in the module, and an expression of it gives the argument, of the same type.

    `fmt` is that expression, with {} where the value stands. `fmt_fn` is the text of a method instead, with {} for its name, that takes the value.
    """

    value: object
    fmt: str = "{}"
    fmt_fn: str = ""


def bundle_inputs(model, inputs, info=None, *, _receive_inflate_expr=None):
    """A copy of a script module with inputs: a list of tuples of arguments for forward, or a dictionary from methods to such lists, or to None where the
    module itself defines `_generate_bundled_inputs_for_NAME`.

    The copy has get_all_bundled_inputs_for_NAME() for each method, get_bundled_inputs_functions_and_info(), and for forward
    get_all_bundled_inputs() and get_num_bundled_inputs(). `info` is a list of texts, or a dictionary from methods to lists. Tensors that are
    not small are stored once for their value when they are constant and as the elements they share when they are expanded; others need
    bundle_large_tensor. Exception for a model that is no script module, or whose inputs are too large.
    """
    _check_model(model)
    methods, attributes = _get_bundled_inputs_attributes_and_methods(model)
    made = model._c.clone()
    for name in methods:  # what it has already gives way
        made._remove_method(name)
    for name in attributes:
        made.setattr(name, [])
    copy = wrap_module(made, None)
    if isinstance(inputs, dict):
        of = {getattr(copy, f.__name__): value for f, value in inputs.items()}
        notes = None if info is None else {getattr(copy, f.__name__): value for f, value in info.items()}
    else:
        of, notes = {copy.forward: inputs}, None if info is None else {copy.forward: info}
    augment_many_model_functions_with_bundled_inputs(copy, of, _receive_inflate_expr, notes)
    return copy


def augment_model_with_bundled_inputs(model, inputs=None, _receive_inflate_expr=None, info=None, skip_size_check=False):
    """bundle_inputs for forward, in place."""
    _check_model(model)
    notes = None if info is None else {model.forward: info}
    augment_many_model_functions_with_bundled_inputs(model, {model.forward: inputs}, _receive_inflate_expr, notes, skip_size_check)


def augment_many_model_functions_with_bundled_inputs(model, inputs, _receive_inflate_expr=None, info=None, skip_size_check=False):
    """bundle_inputs for a dictionary from methods to inputs, in place; `skip_size_check` takes tensors of any size."""
    _check_model(model)
    if not inputs:
        raise Exception("Please provide inputs for at least 1 function")
    if hasattr(model, "get_all_bundled_inputs") or hasattr(model, "get_bundled_inputs_functions_and_info"):
        raise Exception(
            "Models can only be augmented with bundled inputs once. This Model seems to have already been augmented with bundled inputs. Please "
            "start afresh with one that doesn't have bundled inputs."
        )
    lines = ["def get_bundled_inputs_functions_and_info(self):", "    all_inputs: Dict[str, Dict[str, List[str]]] = {}"]
    texts = []
    for function, samples in inputs.items():
        name = _name_of(function)
        if samples is not None and not isinstance(samples, (list, tuple)):
            raise TypeError(f"Error inputs for function {name} is not a Sequence")
        generator = f"_generate_bundled_inputs_for_{name}"
        defined = model._c._has_method(generator)
        if samples is not None:
            if defined:
                raise Exception(
                    f"inputs[{name}] is not None, but {generator} is already defined"
                )
            texts += _stored(model, function, name, samples, _receive_inflate_expr, skip_size_check)
        elif not defined:
            raise Exception(
                f"inputs[{name}] is None, but {generator} is not defined"
            )
        texts.append(_METHODS.format(name=name))
        given = [str(line) for line in (info or {}).get(function, ())]
        lines.append(f"    all_inputs[{name!r}] = {{'get_inputs_function_name': ['get_all_bundled_inputs_for_{name}'], 'info': {_texts(given)}}}")
        if name == "forward":
            texts.append(_OF_FORWARD)
    for text in (*texts, "\n".join([*lines, "    return all_inputs\n"])):
        model._c._define(text)
    model._take_methods()


_METHODS = """
def get_all_bundled_inputs_for_{name}(self):
    all_inputs = self._generate_bundled_inputs_for_{name}()
    assert all_inputs is not None
    return all_inputs
"""
_OF_FORWARD = """
def get_all_bundled_inputs(self):
    return self.get_all_bundled_inputs_for_forward()
def get_num_bundled_inputs(self):
    return len(self.get_all_bundled_inputs_for_forward())
"""


def _texts(values):
    return repr(values) if values else "torch.jit.annotate(List[str], [])"


def _check_model(model):
    if not isinstance(model, ScriptModule):
        raise Exception("Only ScriptModule is supported.")


def _name_of(function):
    if hasattr(function, "__name__"):
        return function.__name__
    if hasattr(function, "name"):
        return function.name
    raise Exception('At least one of your functions has no attribute name please ensure all have one. m.foo.name = "foo"')


def _stored(model, function, name, samples, notes, any_size):
    """Keep small forms of the inputs as an attribute; the text of the methods that make the inputs of them."""
    types = [value.type() for value in list(getattr(model, name).graph.inputs())[1:]]
    kind = _C.ListType(_C.TupleType(types))
    texts, kept, rows = [], [], []
    for i, args in enumerate(samples):
        if not isinstance(args, (list, tuple)):
            raise TypeError(f"Error bundled input for function {name} idx: {i} is not a Sequence")
        values, parts = [], []
        for j, arg in enumerate(args):
            helper = _get_inflate_helper_fn_name(i, j, name)
            value, expression, definition = _inflate_expr(arg, f"deflated[{i}][{j}]", helper, any_size)
            values.append(value)
            parts.append(f"{expression},")
            if notes is not None:
                notes.append(expression)
            if definition:
                texts.append(textwrap.dedent(definition))
        kept.append(tuple(values))
        rows.append("(" + " ".join(parts) + "),")
    attribute = f"_bundled_inputs_deflated_{name}"
    if model._c.hasattr(attribute):
        model._c.setattr(attribute, kept)
    else:
        model._c._register_attribute(attribute, kind, kept)
    body = "\n        ".join(rows)
    return [*texts, f"def _generate_bundled_inputs_for_{name}(self):\n    deflated = self.{attribute}\n    return [\n        {body}\n    ]\n"]


def _inflate_expr(arg, ref, inflate_helper_fn_name, skip_size_check=False):
    """(what is kept, the expression that gives the argument of it, the text of a method that the expression calls, or None)."""
    if isinstance(arg, InflatableArg):
        if arg.fmt_fn:
            if arg.fmt not in ("{}", ""):
                raise Exception(
                    f"Bundled input argument at position '{ref}' has both arg.fmt_fn => \n{arg.fmt_fn} \n and arg.fmt  => {arg.fmt}. "
                    "Please choose `arg.fmt` if the deflater is straightforward or `arg.fmt_fn` if you need a function."
                )
            return arg.value, f"self.{inflate_helper_fn_name}({ref})", arg.fmt_fn.format(inflate_helper_fn_name)
        return arg.value, arg.fmt.format(ref), None
    if not isinstance(arg, cresset.Tensor):
        return arg, ref, None
    if skip_size_check or arg.untyped_storage().nbytes() // arg.element_size() <= MAX_RAW_TENSOR_SIZE:
        return arg, ref, None
    if arg.is_contiguous() and arg.numel() <= MAX_RAW_TENSOR_SIZE:
        return arg.clone(), ref, None
    for form in (cresset.contiguous_format, cresset.channels_last):
        if (form is cresset.contiguous_format or arg.dim() == 4) and arg.is_contiguous(memory_format=form) and bool((arg == arg.flatten()[0]).all()):
            first = arg.flatten()[:1].clone().expand(*arg.size())
            shown = str(form).rpartition(".")[2]
            return first, f"{ref}.contiguous(memory_format=torch.{shown})", None
    raise Exception(
        f"Bundled input argument at position '{ref}' is a tensor with storage size {arg.untyped_storage().nbytes() // arg.element_size()}. "
        "You probably don't want to bundle this as an input. "
    )


def _get_inflate_helper_fn_name(arg_idx, input_idx, function_name):
    return f"_inflate_helper_for_{function_name}_input_{input_idx}_arg_{arg_idx}"


def _get_bundled_inputs_attributes_and_methods(script_module):
    """(methods, attributes) that bundled inputs have put into a module."""
    names = set(script_module._c._method_names())
    if "get_bundled_inputs_functions_and_info" not in names:
        return [], []
    methods = [n for n in ("get_all_bundled_inputs", "get_num_bundled_inputs", "get_bundled_inputs_functions_and_info") if n in names]
    attributes = []
    for name in script_module.get_bundled_inputs_functions_and_info():
        pattern = re.compile(rf"(get_all_bundled_inputs_for|_generate_bundled_inputs_for)_{name}$|_inflate_helper_for_{name}_input_\d+_arg_\d+$")
        methods += sorted(n for n in names if pattern.match(n))
        attribute = f"_bundled_inputs_deflated_{name}"
        if script_module._c.hasattr(attribute):
            attributes.append(attribute)
    return methods, attributes


def bundle_randn(*size, dtype=None):
    """An argument that is drawn anew by randn of this size each time."""
    stub = cresset.zeros(1, dtype=dtype).expand(*size)
    return InflatableArg(value=stub, fmt="torch.randn_like({})")


def bundle_large_tensor(t):
    """An argument that is kept as it is, however large."""
    return InflatableArg(value=t, fmt="{}")
