"""Functions that are written in Python ask their arguments as operators do."""

import pytest

import cresset as torch


class Duck:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function


@pytest.mark.parametrize("name", ["tensordot", "svd_lowrank", "pca_lowrank", "lu", "unravel_index", "einsum", "cdist", "stft", "norm", "chain_matmul", "is_conj"])
def test_a_duck_type_is_asked_by(name):
    function = getattr(torch, name)
    arguments = {"tensordot": (Duck(), Duck()), "cdist": (Duck(), Duck()), "unravel_index": (Duck(), (2, 2)), "stft": (Duck(), 4),
                 "einsum": ("i->", Duck())}  # fmt: skip
    assert function(*arguments.get(name, (Duck(),))) is function
