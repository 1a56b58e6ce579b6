"""Behaviours of autograd as small functions of the package `t`; what each gives with PyTorch is recorded in autograd.json.

The names of the modules and the numbers of the functions are those of the areas and behaviours: a3_function.n07_… is a3, behaviour 7.
"""

import importlib
import warnings

MODULES = ["a3_function", "a3_saved", "a4_hooks", "a4_engine", "a4_modes", "a5_gradcheck", "a6_forward_ad", "a6_functional", "a7_views"]


def cases():
    """The function of each case by name."""
    out = {}
    for name in MODULES:
        module = importlib.import_module(f"{__name__}.{name}")
        out.update({f"{name}.{k}": f for k, f in vars(module).items() if k[0] == "n" and k[1:3].isdigit()})
    return out


def observe(function, t):
    """What a case gives, in the form in which JSON keeps it."""
    t.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(function(t), t)


def plain(value, t):
    """Tensors as lists, tuples as lists, types as names."""
    if isinstance(value, t.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        if value.is_complex():
            value = t.view_as_real(value)
        return plain(value.tolist(), t)
    if isinstance(value, dict):
        return {str(k): plain(v, t) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v, t) for v in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") + 0.0 if value == value else "nan"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return type(value).__name__


def raised(function, fragment):
    """The exception's class and the fragment of its message; the whole message when it has no such fragment."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {fragment if fragment in str(error) else str(error)}"
    return "nothing was raised"


def warned(function, fragment):
    """The class of the warning with the fragment in its text, or what was warned instead."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    for w in caught:
        if fragment in str(w.message):
            return f"{w.category.__name__}: {fragment}"
    return [str(w.message) for w in caught]
