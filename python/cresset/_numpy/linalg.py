"""NumPy's linear algebra."""

import numpy

from ._ndarray import delegate

__all__ = """LinAlgError cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank multi_dot norm pinv qr slogdet solve svd tensorinv
tensorsolve""".split()

LinAlgError = numpy.linalg.LinAlgError
for _name in __all__[1:]:
    globals()[_name] = delegate(getattr(numpy.linalg, _name), _name)
