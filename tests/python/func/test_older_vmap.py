"""torch._vmap_internals: the vmap whose functions give a tensor or a tuple of them. Words are PyTorch 2.13's."""

import pytest

import cresset
from cresset._vmap_internals import _vmap, vmap

X = cresset.arange(6.0).view(2, 3)


def test_places_of_results():
    assert cresset.equal(vmap(lambda x: x * 2)(X), X * 2)
    a, b = vmap(lambda x, y: (x + y, x), in_dims=(0, None), out_dims=(0, 1))(X, X[0])
    assert cresset.equal(a, X + X[0]) and cresset.equal(b, X.t())
    one, nothing = _vmap(lambda x: (x, None), allow_none_pass_through=True)(X)
    assert cresset.equal(one, X) and nothing is None
    assert cresset.equal(vmap(vmap(lambda x: x.sin()))(X), X.sin())


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (lambda x: x, {"out_dims": (0, 0)}, r"`out_dims` must have one dim per output \(got 1 outputs\) of <lambda>\."),
        (lambda x: (x, x), {"out_dims": (0,)}, r"`out_dims` must have one dim per output \(got 2 outputs\)"),
        (lambda x: x, {"out_dims": "a"}, "`out_dims` must be an int or a tuple of int representing where"),
        (lambda x: (x, x), {"out_dims": (None, 0)}, "`out_dims` must be an int or a tuple of int representing where"),
        (lambda x: [x, x], {}, "`<lambda>` must only return Tensors, got type <class 'list'> as the return."),
        (lambda x: (x, (x, x)), {}, "`<lambda>` must only return Tensors, got type <class 'tuple'> for return 1."),
        (lambda x: (x, None), {}, "`<lambda>` must only return Tensors, got type <class 'NoneType'> for return 1."),
        (lambda x: x, {"in_dims": -1}, "Got in_dim=-1 for some input, .* so expected in_dim to satisfy 0 <= in_dim < 2."),
        (lambda x: x, {"in_dims": (0, 0)}, "in_dims is not compatible with the structure of `inputs`"),
    ],
)
def test_refused(function, options, words):
    with pytest.raises(ValueError, match=words):
        vmap(function, **options)(X)
