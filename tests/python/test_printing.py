"""The text of tensors against recorded text, and print options."""

import json
import pathlib
import subprocess
import sys

import cresset
import pytest

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import printing_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "printing.json").read_text())
# Names of dtypes are printed with the name of the package.
PREFIX = repr(cresset.float32).rpartition("float32")[0]


@pytest.fixture(scope="module")
def texts():
    return printing_cases.texts(cresset)


def test_every_case_is_recorded(texts):
    assert list(texts) == list(RECORDED)


@pytest.mark.parametrize("expression", RECORDED)
def test_text(texts, expression):
    assert texts[expression] == RECORDED[expression].replace("torch.", PREFIX)


def test_options_are_restored():
    before = cresset._tensor_str.get_printoptions()
    with cresset._tensor_str.printoptions(precision=1, sci_mode=True):
        assert repr(cresset.tensor([1.25])) == "tensor([1.2e+00])"
    assert cresset._tensor_str.get_printoptions() == before
    assert repr(cresset.tensor([1.25])) == "tensor([1.2500])"
    with pytest.raises(ValueError, match="profile must be one of"):
        cresset.set_printoptions(profile="x")


def test_default_dtype_decides_the_suffix():
    cresset.set_default_dtype(cresset.float64)
    try:
        assert repr(cresset.ones(1)) == "tensor([1.])"
        assert "dtype=" in repr(cresset.ones(1, dtype=cresset.float32))
        assert repr(cresset.ones(1, dtype=cresset.complex128)) == "tensor([1.+0.j])"
    finally:
        cresset.set_default_dtype(cresset.float32)


def test_str_and_format():
    t = cresset.tensor(1.23456)
    assert str(t) == repr(t) and f"{t:.2f}" == "1.23" and f"{t}" == str(t.item())
    assert f"{cresset.tensor([1.0])}" == "tensor([1.])" and f"{cresset.tensor(7):03d}" == "007"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{cresset.tensor([1.0]):.2f}"


def test_subclass_name():
    class Kind(cresset.Tensor):
        pass

    assert repr(cresset.ones(2).as_subclass(Kind)) == "Kind([1., 1.])"


def test_parameters_that_keep_their_type():
    class Sub(cresset.Tensor):
        pass

    class Own(cresset.Tensor):
        def __repr__(self, *, tensor_contents=None):
            return "own"

    x = cresset.ones(2)
    assert repr(cresset.nn.Parameter(x)) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert repr(cresset.nn.Parameter(x.as_subclass(Sub))) == "Parameter(Sub([1., 1.], requires_grad=True))"
    assert repr(cresset.nn.Parameter(x.as_subclass(Own))) == "own"
    with cresset._subclasses.fake_tensor.FakeTensorMode() as mode:
        fake = cresset.nn.Parameter(mode.from_tensor(x))
        assert repr(fake) == "Parameter(FakeTensor(..., size=(2,), requires_grad=True))", repr(fake)


def test_parameters_of_a_class_of_their_own():
    class Mine(cresset.nn.Parameter):
        pass

    assert repr(Mine(cresset.ones(1))) == "Parameter containing:\nParameter(Mine([1.], requires_grad=True))"
    assert repr(cresset.nn.Parameter(cresset.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_the_first_text_loads_little():
    program = (
        "import sys, cresset; before = set(sys.modules); repr(cresset.ones(2)); "
        "new = set(sys.modules) - before; assert new == {'cresset._tensor_str'}, new"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
