"""Frozen modules: parameters and attributes that nobody writes as constants of the graph."""

from cresset import _C

from ._recursive import ScriptModule, wrap_module

__all__ = ["freeze", "run_frozen_optimizations", "optimize_for_inference"]

# Passes that a frozen graph gets, by their names in the lowering phase.
_SIMPLIFICATIONS = ("remove_dropout", "cse", "peephole", "dce")
# These change results by roundings, until nothing is left to fold.
_FOLDINGS = ("fold_frozen_conv_bn", "fold_frozen_conv_add_or_sub", "fold_frozen_conv_mul_or_div", "fold_frozen_linear_bn")
_MOST_ROUNDS = 100


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a script module in evaluation mode with everything inlined and constant; `preserved_attrs` names what stays besides forward.

    With `optimize_numerics` batch norm, sums and products that follow a convolution, and batch norm that follows a linear layer, become part of
    its weights where that is the same up to rounding.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    frozen = wrap_module(_C._lowering_freeze(mod._c, list(preserved_attrs or ())))
    run_frozen_optimizations(frozen, optimize_numerics, [n for n in preserved_attrs or () if frozen._c._has_method(n)])
    return frozen


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Simplify the graphs of a frozen module; with `optimize_numerics` weights take in what follows their layers."""
    for name in ("forward", *(preserved_methods or ())):
        if mod._c._has_method(name):
            function = mod._c._get_method(name).function
            for _ in range(_MOST_ROUNDS if optimize_numerics else 0):
                if not any("(changed)" in r.partition("\n")[0] for r in _C._jit_run_passes(function.graph, list(_FOLDINGS))):
                    break
            _C._jit_run_passes(function.graph, list(_SIMPLIFICATIONS))
            function._invalidate()


def optimize_for_inference(mod, other_methods=None):
    """`mod` frozen, where it is not, and simplified."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace first.")
    if mod._c._is_attribute("training"):
        return freeze(mod.eval(), other_methods)
    run_frozen_optimizations(mod, True, other_methods)
    return mod
