"""Element-wise functions of CUDA source text. They are made, and say when they are called that there is no device to compile them for."""

import re

__all__ = []

_TEMPLATE = re.compile(r"\s*template\s*<\s*typename\s+\w+\s*>\s*\w+\s+(?P<name>\w+)\s*\(.*\)\s*\{.*\}\s*;?\s*", re.S)


class _JittedFunction:
    def __init__(self, code_string, return_by_ref, num_outputs, **kwargs):
        found = _TEMPLATE.fullmatch(code_string)
        if found is None:
            raise Exception(f"Couldn't parse code, please check correctness:\n {code_string}")
        self.code_string, self.return_by_ref, self.num_outputs = code_string, return_by_ref, num_outputs
        self.kernel_name, self.kwargs_dict = found["name"], kwargs
        self.is_cuda_available = False

    def __call__(self, *tensors, **kwargs):
        raise AssertionError("Jiterator is only supported on CUDA and ROCm GPUs, none are available.")


def _create_jit_fn(code_string, **kwargs):
    """A function of CUDA tensors from the text of a template; kwargs are defaults of its numbers. Exception for other text."""
    return _JittedFunction(code_string, False, 1, **kwargs)


def _create_multi_output_jit_fn(code_string, num_outputs, **kwargs):
    """The same with several outputs, which the text takes by reference."""
    return _JittedFunction(code_string, True, num_outputs, **kwargs)
