"""Functions of the library whose Python form is no single operator, in scripts: expected values by hand, by NumPy, or by the Python form's contract."""

import functools
import os
import tempfile
from pathlib import Path

import cresset as torch
import numpy as np
import pytest


FOLDER = tempfile.TemporaryDirectory()


def scripted(body, **names):
    """torch.jit.script of a function of x with this body; scripts are read from files."""
    path = Path(FOLDER.name) / f"text{len(os.listdir(FOLDER.name))}.py"
    path.write_text(f"def text(x):\n    {body}\n")
    space = {"torch": torch, **names}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return torch.jit.script(space["text"])


X = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
NORMS = {
    "torch.norm(x, dim=-1)": [5.0, 10.0],
    "torch.norm(x, dim=1, keepdim=True)": [[5.0], [10.0]],
    "torch.norm(x, dim=[0, 1])": 125.0**0.5,
    "torch.norm(x, p='fro')": 125.0**0.5,
    "torch.norm(x, p='fro', dim=(0, 1))": 125.0**0.5,
    "torch.norm(x, p='nuc')": 125.0**0.5,  # of rank 1
    "torch.norm(x, 'nuc', [0, 1])": 125.0**0.5,
    "torch.norm(x, p=None, dim=0)": [45.0**0.5, 80.0**0.5],
    "torch.norm(x, p=1, dim=0, dtype=torch.float64)": [9.0, 12.0],
    "torch.norm(x, p=float('inf'), dim=1, dtype=torch.float64)": [4.0, 8.0],
    "torch.norm(x, 1, -1)": [7.0, 14.0],
    "torch.norm(x)": 125.0**0.5,
}


@pytest.mark.parametrize("call", NORMS)
def test_norm(call):
    found = scripted(f"return {call}")(X)
    dtype = torch.float64 if "float64" in call else torch.float32
    torch.testing.assert_close(found, torch.tensor(NORMS[call], dtype=dtype))


def test_norm_of_what_the_operator_takes_stays_the_operator():
    assert "aten::norm" in str(scripted("return torch.norm(x, 2, [1])").graph)


def test_short_time_transforms_are_centred():
    signal = np.random.default_rng(0).standard_normal(24)
    padded = np.pad(signal, 4, mode="reflect")
    frames = np.stack([np.fft.rfft(padded[i : i + 8]) for i in range(0, 25, 2)], 1)
    x = torch.tensor(signal)
    found = scripted("return torch.stft(x, 8, window=torch.ones(8, dtype=torch.float64), return_complex=True)")(x)
    torch.testing.assert_close(found, torch.tensor(frames))
    back = scripted("y = torch.stft(x, n_fft=8, window=torch.ones(8, dtype=torch.float64), return_complex=True)\n    return torch.istft(y, 8, window=torch.ones(8, dtype=torch.float64))")
    torch.testing.assert_close(back(x), x)
    apart = scripted("return torch.stft(x, 8, window=torch.ones(8, dtype=torch.float64), center=False, return_complex=True)")(x)
    torch.testing.assert_close(apart, torch.tensor(np.stack([np.fft.rfft(signal[i : i + 8]) for i in range(0, 17, 2)], 1)))


U = [2, 2, 1, 2]
UNIQUE = {
    "torch.unique(x)": [1, 2],
    "torch.unique(x, return_inverse=True)": ([1, 2], [1, 1, 0, 1]),
    "torch.unique(x, return_counts=True)": ([1, 2], [1, 3]),
    "torch.unique(x, True, True, True)": ([1, 2], [1, 1, 0, 1], [1, 3]),
    "torch.unique(x, dim=0, return_counts=True)": ([1, 2], [1, 3]),
    "torch.unique_consecutive(x)": [2, 1, 2],
    "torch.unique_consecutive(x, return_inverse=True)": ([2, 1, 2], [0, 0, 1, 2]),
    "torch.unique_consecutive(x, return_counts=True)": ([2, 1, 2], [2, 1, 1]),
    "torch.unique_consecutive(x, True, True)": ([2, 1, 2], [0, 0, 1, 2], [2, 1, 1]),
    "torch.unique_consecutive(x, dim=0)": [2, 1, 2],
}


@pytest.mark.parametrize("call", UNIQUE)
def test_unique_gives_what_its_flags_ask_for(call):
    found = scripted(f"return {call}")(torch.tensor(U))
    assert (tuple(t.tolist() for t in found) if isinstance(found, tuple) else found.tolist()) == UNIQUE[call]


def test_flags_that_decide_the_type_are_known_while_compiling():
    with pytest.raises(RuntimeError, match="'return_counts' decides the type of the result: it must be known while the script is compiled"):
        scripted("return torch.unique_consecutive(x, return_counts=bool(x.sum() > 0))")


def test_lu():
    a = torch.tensor([[1.0, 2.0], [4.0, 4.0]])
    factors, pivots = scripted("return torch.lu(x)")(a)
    assert factors.tolist() == [[4.0, 4.0], [0.25, 1.0]] and pivots.tolist() == [2, 2]
    assert [t.tolist() for t in scripted("return torch.lu(x, get_infos=True)")(a)][2] == 0


def test_partial_objects_of_operators_are_called_in_python():
    f = functools.partial(torch.clamp, min=4.0)
    assert scripted("return f(x)", f=f)(X).tolist() == [[4.0, 4.0], [6.0, 8.0]]
    assert scripted("return f(x)", f=functools.partial(torch.log))(torch.ones(2)).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="functools.partial objects of Python functions are not supported in scripts"):
        scripted("return f(x)", f=functools.partial(lambda a, b: a, 1))


def test_annotations_name_typing_as_the_program_does():
    import typing as tp

    text = "sizes: tp.List[int] = []\n    found: tp.Dict[str, tp.Optional[int]] = {}\n    sizes.append(x.size(0))\n    return sizes"
    assert scripted(text, tp=tp)(X) == [2]
