"""Mistakes in rows: each names file and line and gives a hint."""

import re

import pytest

ROW = '[[op]]\nschema = "f(Tensor self, int dim) -> Tensor"\n'


@pytest.mark.parametrize("text, line, words", [
    (ROW + 'composit = "x"\n', 3, "unknown key 'composit'. Did you mean 'composite'?"),
    ('[[op]]\ncomposite = "x"\n', 1, "needs the key 'schema'"),
    (ROW, 2, "exactly one of pointwise"),
    (ROW + 'shape = "f_shape"\n', 2, "missing: kernel"),
    (ROW + 'composite = "f"\nexplicit = "f"\n', 2, "given: composite, explicit"),
    (ROW + 'cpu = "f"\ndtype = "float"\n', 4, "'dtype' belongs to a row with 'pointwise'"),
    (ROW + 'pointwise = "self"\ndtype = "flaot"\n', 4, "unknown dtype rule 'flaot'. Did you mean 'float'?"),
    (ROW + 'pointwise = "sefl + 1"\n', 3, "names 'sefl', which is no argument. Did you mean 'self'?"),
    (ROW + 'pointwise = "self"\ntypes = "fx"\n', 4, "letters b, i, f, c"),
    (ROW + 'pointwise = "self"\npromotes = ["dim"]\n', 4, "'promotes' names 'dim', which is no Scalar argument"),
    (ROW + 'pointwise = "self"\nrefuses = { f = "no" }\n', 4, "'refuses' has words for classes of types that 'types' has not, or 'any b'"),
    (ROW + 'cpu = "f"\nshown = "g"\n', 4, "'shown' belongs to a row with 'pointwise'"),
    ('[[op]]\nschema = "f(Tensor self, *, str how) -> Tensor"\npointwise = "self"\n', 2, "'choices' lists what the argument 'how' of type str may be"),
    (ROW + 'pointwise = "self"\nquick = { when = "self > 0" }\n', 4, "'quick' has two expressions: { when = ..., is = ... }."),
    (ROW + 'cpu = "f"\npython = "methd"\n', 4, "unknown python place 'methd'. Did you mean 'method'?"),
    (ROW + 'cpu = "f"\ntags = ["cor"]\n', 4, "unknown tag 'cor'. Did you mean 'core'?"),
    (ROW + 'cpu = "f"\nautocast = "fp23"\n', 4, "unknown autocast policy 'fp23'. Did you mean 'fp32'?"),
    (ROW + 'cpu = "f"\nout = "out"\nout_dtype = "exct"\n', 5, "unknown rule 'exct'. Did you mean 'exact'?"),
    (ROW + 'cpu = "f"\nout_memory = "apart"\n', 4, "'out_memory' belongs to a row with 'out'"),
    (ROW + 'cpu = "f"\nout = "out"\nout_strides = "contiguous"\n', 5, "belongs to a row with 'pointwise' or 'shape': out tensors of others are contiguous"),
    (ROW + 'pointwise = "self"\nout = "out"\nout_strides = "result"\n', 5, "belongs to a row with 'explicit' or 'composite': the shape rule of others says the strides"),
    (ROW + 'cpu = "f"\nout_shape = "any"\n', 4, "'out_shape' belongs to a row with 'out'"),
    (ROW + 'cpu = "f"\nlegacy = ["self, nothing"]\n', 4, "'legacy' names the argument 'nothing', which the schema has not."),
    (ROW + 'cpu = "f"\nout = "out"\nout_dtype = "argument"\n', 5, "'argument' needs an argument 'dtype'"),
    ('[[op]]\nschema = "f_(Tensor(a!) self) -> Tensor(a!)"\ncpu = "f"\nautocast = "fp32"\n', 4, "'autocast' belongs to a functional operator"),
    (ROW + 'cpu = "f"\ngrad = { slf = "grad" }\n', 4, "names 'slf', which is no tensor argument. Did you mean 'self'?"),
    (ROW + 'cpu = "f"\ngrad = { dim = "grad" }\n', 4, "names 'dim', which is no tensor argument"),
    (ROW + 'cpu = "f"\ngrad = { self = "grad * alfa" }\n', 4, "names 'alfa', which is no argument, output or function"),
    (ROW + 'cpu = "f"\ngrad = { self = "grads[1]" }\n', 4, "grads[1]: there are 1 outputs"),
    (ROW + 'cpu = "f"\ngrad = { self = "grad" }\nnondiff = true\n', 5, "not both"),
    (ROW + 'cpu = "f"\njvp = "auto_linear"\n', 4, "jvp needs grad too"),
    (ROW + 'cpu = "f"\ngrad = { self = "grad" }\njvp = { "result, reslt" = "self_t" }\n', 5, "jvp names 'reslt', which is no output. Did you mean 'result'?"),
    (ROW + 'cpu = "f"\ngrad = { self = "grad" }\njvp = { result = "self_t", "result " = "self_t" }\n', 5, "two jvp formulas for 'result'"),
    (ROW + 'cpu = "f"\nnondiff = ["values"]\n', 4, "names 'values', which is no output"),
    (ROW + 'composite = "f"\ngrad = { self = "grad" }\n', 2, "differentiable through its parts"),
    (ROW + 'cpu = "f"\nout = "out(a, b)"\n', 4, "names 2 arguments for 1 results"),
    ('[[op]]\nschema = "f(Tensor x) -> Tensor"\ncpu = "f"\ninplace = true\n', 4, "needs a first argument 'Tensor self'"),
    (ROW + 'cpu = "f"\n' + ROW + 'cpu = "f"\n', 5, "aten::f is already given at"),
    (ROW + 'foreach = "f"\n', 3, "has a list of tensors as argument"),
    ('[[op]]\nschema = "f(Tensor[] self) -> Tensor"\nforeach = "f"\n', 3, "returns a list of tensors"),
    ('[[op]]\nschema = "f(Scalar s, Tensor[] x) -> Tensor[]"\nforeach = "f"\ninplace = true\n', 4, "needs a first argument 'Tensor[] self'"),
    ('[[op]]\nschema = "f(Tensor[] self) -> Tensor[]"\nforeach = "f"\ngrad = { self = "grad" }\n', 2, "differentiable through its elements"),
    ('[family]\ndoc = "x"\nname = "y"\n' + ROW + 'cpu = "f"\n', 1, "unknown key 'name' in [family]"),
    ('[[op]]\nschema = "f(Tensr self) -> Tensor"\ncpu = "f"\n', 2, "unknown type specifier"),
    ('[[op]]\nschema = f\n', 2, "Invalid value"),
])
def test_each_mistake_names_its_line(family, text, line, words):
    result, out = family(text)
    assert result.code == 1
    assert words in result.err
    assert re.search(rf"sample\.toml:{line}: ", result.err), result.err
    assert not out.exists()


def test_all_mistakes_are_reported_at_once(family):
    result, _ = family(ROW + ROW.replace("f(", "g(") + 'cpu = "g"\ntags = "x"\n')
    assert len(re.findall(r"sample\.toml:\d+: ", result.err)) == 2


def test_two_overloads_with_one_cpp_signature(family):
    result, _ = family('[[op]]\nschema = "f.a(Tensor self) -> Tensor"\ncpu = "a"\n[[op]]\nschema = "f.b(Tensor self) -> Tensor"\ncpu = "b"\n')
    assert "sample.toml:5: f.b: its C++ function f has the same parameters" in result.err
