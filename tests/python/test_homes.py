"""Where functions and classes say that they are: pickles find them there, and PyTorch has them there too."""

import pickle
import pickletools

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F


def named(obj):
    return [arg for op, arg, _ in pickletools.genops(pickle.dumps(obj, 2)) if op.name == "GLOBAL"]


@pytest.mark.parametrize("module", [F, cresset.linalg, cresset.fft, cresset.special, cresset], ids=lambda m: m.__name__)
def test_functions_are_pickled_by_name(module):
    functions = [getattr(module, name) for name in dir(module) if not name.startswith("_")]
    for function in functions:
        if type(function) in (cresset._C.builtin_function, cresset._C.overridable):
            assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (F.gelu, "cresset._C._nn gelu"),
        (cresset.linalg.eigh, "cresset._C._linalg linalg_eigh"),
        (cresset.fft.fft, "cresset._C._fft fft_fft"),
        (cresset.special.erf, "cresset._C._special special_erf"),
        (cresset.relu, "cresset relu"),
        (cresset.einsum, "cresset einsum"),
        (cresset.atleast_1d, "cresset atleast_1d"),
        (cresset.from_numpy, "cresset from_numpy"),
        (cresset.finfo, "cresset finfo"),
        (cresset.func.grad, "cresset.func grad"),
        (cresset.optim.Muon, "cresset.optim Muon"),
        (cresset.serialization.LoadEndianness, "cresset.serialization LoadEndianness"),
        (cresset.ao.quantization.PerAxis, "cresset.ao.quantization.observer PerAxis"),
        (nn.DataParallel, "cresset.nn.parallel.data_parallel DataParallel"),
        (nn.modules.module.register_module_forward_hook, "cresset.nn.modules.module register_module_forward_hook"),
    ],
)
def test_the_names_in_pickles(function, name):
    assert named(function) == [name]


def test_a_module_that_holds_a_function_is_saved(tmp_path):
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation=F.gelu)
    cresset.save(layer, tmp_path / "layer.pt")
    assert cresset.load(tmp_path / "layer.pt", weights_only=False).activation is F.gelu


def test_results_of_several_tensors():
    result = cresset.max(cresset.tensor([[1.0, 2.0]]), 1)
    assert named(type(result)) == ["cresset.return_types max"]
    assert pickle.loads(pickle.dumps(result)).indices.tolist() == [1]
    assert repr(result).startswith("cresset.return_types.max(\nvalues=tensor([2.])")
