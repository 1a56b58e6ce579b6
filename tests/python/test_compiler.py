"""Decorators for a compiler of Python code that is not there."""

import cresset as torch


def test_functions_stay_as_they_are():
    def f(x):
        return x + 1

    compiler = torch.compiler
    assert compiler.disable(f) is f and compiler.disable(recursive=False)(f) is f
    assert compiler.allow_in_graph(f) is f and compiler.assume_constant_result(f) is f
    assert not compiler.is_compiling() and not compiler.is_dynamo_compiling() and not compiler.is_exporting()
    assert compiler.list_backends() == [] and compiler.reset() is None
