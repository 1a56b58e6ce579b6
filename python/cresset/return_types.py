"""Named tuples of operators with several named results: `max` of max(dim), `max_out` where the results were given. Made when first used."""

from . import _C

_WITH_OUT = (
    "aminmax cummax cummin frexp geqrf histogram kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex linalg_ldl_factor "
    "linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet linalg_solve_ex linalg_svd "
    "lu_unpack max median min mode nanmedian qr slogdet sort svd topk triangular_solve"
).split()
__all__ = [*sorted([*_WITH_OUT, *(f"{name}_out" for name in _WITH_OUT), "histogramdd"])]


def _made(name):
    operator = name.removesuffix("_out")
    for schema in _C._jit_get_schemas_for_operator(f"aten::{operator}"):
        given = any(argument.kwarg_only and argument.is_out for argument in schema.arguments)
        if len(schema.returns) > 1 and all(result.name for result in schema.returns) and given == (name != operator):
            return _C._named_results(f"aten::{operator}", schema.overload_name, name)
    return None


def __getattr__(name):
    if name == "all_return_types":
        return [__getattr__(each) for each in __all__]
    found = _C._return_types.get(name)
    if found is None and not name.startswith("__"):
        found = _made(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__():
    return sorted({*__all__, *_C._return_types, "all_return_types"})
