"""Inputs of a graph that are like given examples: from there `_C._jit_pass_propagate_dtype` and its kin go on."""

import cresset

__all__ = ["apply_input_props_using_example"]


def apply_input_props_using_example(graph, example_input):
    """State the dtypes, sizes and devices of `example_input`, a list with a value for each input (`self` left out), in the graph's inputs.

    RuntimeError when the numbers differ, or a tensor stands for an input that is none.
    """
    inputs = list(graph.inputs())
    if inputs and inputs[0].type().kind() == "ClassType":
        del inputs[0]
    if len(inputs) != len(example_input):
        raise RuntimeError(f"Number of inputs in graph ({len(inputs)}) does not match number of inputs in example ({len(example_input)})")
    for i, (value, example) in enumerate(zip(inputs, example_input)):
        if example is not None and (value.type().kind() == "TensorType") != isinstance(example, cresset.Tensor):
            raise RuntimeError(f"Input {i} of the graph has the type {value.type()}; a {type(example).__name__} was given")
        if isinstance(example, cresset.Tensor):
            value.inferTypeFrom(example)
