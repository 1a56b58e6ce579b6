"""Groups of dtypes by PyTorch's names: each function returns a tuple; `…_and` takes more dtypes."""

import cresset

_FLOATING = (cresset.float32, cresset.float64)
_COMPLEX = (cresset.complex64, cresset.complex128)
_INTEGRAL = (cresset.uint8, cresset.int8, cresset.int16, cresset.int32, cresset.int64)


def _group(name, dtypes):
    def members():
        return dtypes

    def members_and(*more):
        return dtypes + tuple(d for d in more if d not in dtypes)

    members.__name__, members_and.__name__ = name, f"{name}_and"
    members.__doc__ = f"{', '.join(str(d).rpartition('.')[2] for d in dtypes) or 'no dtypes'}."
    return members, members_and


empty_types, empty_types_and = _group("empty_types", ())
floating_types, floating_types_and = _group("floating_types", _FLOATING)
floating_types_and_half, _ = _group("floating_types_and_half", (*_FLOATING, cresset.float16))
double_types, _ = _group("double_types", (cresset.float64, cresset.complex128))
complex_types, complex_types_and = _group("complex_types", _COMPLEX)
integral_types, integral_types_and = _group("integral_types", _INTEGRAL)
floating_and_complex_types, floating_and_complex_types_and = _group("floating_and_complex_types", _FLOATING + _COMPLEX)
all_types, all_types_and = _group("all_types", _FLOATING + _INTEGRAL)
all_types_and_half, _ = _group("all_types_and_half", _FLOATING + _INTEGRAL + (cresset.float16,))
all_types_and_complex, all_types_and_complex_and = _group("all_types_and_complex", _FLOATING + _INTEGRAL + _COMPLEX)


def get_all_dtypes(
    include_half=True, include_bfloat16=True, include_bool=True, include_complex=True, include_complex32=False, include_qint=False,
):  # fmt: skip
    """Every common dtype, less what is switched off; complex32 and quantized ones when asked for."""
    chosen = _INTEGRAL + get_all_fp_dtypes(include_half, include_bfloat16)
    chosen += ((cresset.bool,) if include_bool else ()) + (_COMPLEX if include_complex else ())
    chosen += (cresset.complex32,) if include_complex32 else ()
    return chosen + ((cresset.qint8, cresset.quint8, cresset.qint32) if include_qint else ())


def get_all_int_dtypes():
    return _INTEGRAL


def get_all_fp_dtypes(include_half=True, include_bfloat16=True):
    return _FLOATING + ((cresset.float16,) if include_half else ()) + ((cresset.bfloat16,) if include_bfloat16 else ())


def get_all_complex_dtypes(include_complex32=False):
    return _COMPLEX


def get_all_math_dtypes(device):
    return get_all_int_dtypes() + get_all_fp_dtypes() + get_all_complex_dtypes()


def highest_precision_float(device):
    return cresset.float64


def highest_precision_complex(device):
    return cresset.complex128
