"""NumPy's assertions, for arrays over tensors."""

import numpy.testing as _testing

from .._ndarray import asarray as _asarray
from .._ndarray import plain as _plain
from .utils import HAS_REFCOUNT, IS_WASM, _gen_alignment_data, suppress_warnings  # noqa: F401

__all__ = """assert_ assert_allclose assert_almost_equal assert_array_almost_equal assert_array_equal assert_array_less assert_equal assert_raises_regex
assert_warns suppress_warnings""".split()


def _assertion(name):
    function = getattr(_testing, name)

    def check(*args, check_dtype=False, **kwargs):
        if check_dtype:
            actual, desired = (_asarray(a) for a in args[:2])
            assert actual.dtype == desired.dtype, f"dtypes differ: {actual.dtype} and {desired.dtype}"
        return function(*map(_plain, args), **{key: _plain(v) for key, v in kwargs.items()})

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"NumPy's {name}; with check_dtype=True the dtypes have to be the same, too."
    return check


for _name in __all__[:-3]:
    globals()[_name] = _assertion(_name)
assert_raises_regex = _testing.assert_raises_regex
