"""Compiled modules made ready to run only: frozen, without what training needs."""

import enum

import cresset

__all__ = ["LintCode", "MobileOptimizerType", "generate_mobile_module_lints", "optimize_for_mobile"]


class MobileOptimizerType(enum.Enum):
    """Steps that `optimization_blocklist` leaves out."""

    CONV_BN_FUSION, INSERT_FOLD_PREPACK_OPS, REMOVE_DROPOUT, FUSE_ADD_RELU, HOIST_CONV_PACKED_PARAMS, CONV_1D_TO_2D, VULKAN_AUTOMATIC_GPU_TRANSFER = range(1, 8)


class LintCode(enum.Enum):
    """What generate_mobile_module_lints finds."""

    BUNDLED_INPUT, REQUIRES_GRAD, DROPOUT, BATCHNORM = range(1, 5)


def optimize_for_mobile(script_module, optimization_blocklist=None, preserved_methods=None, backend="CPU"):
    """A frozen copy of a compiled module: parameters are constants, dropout is gone, normalisation is folded into convolutions where freezing does it.

    `preserved_methods` stay beside forward (AttributeError for one that is not there). A module in training is put to evaluation. Both
    steps belong together here: RuntimeError for a blocklist that has one of them only. TypeError for a module that is not compiled,
    ValueError for a backend other than the CPU.
    """
    if not isinstance(script_module, cresset.jit.ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    if backend.lower() != "cpu":
        raise ValueError(f"optimize_for_mobile: the backend must be 'CPU', got {backend!r}.")
    blocked = set(optimization_blocklist or ())
    whole = {MobileOptimizerType.CONV_BN_FUSION, MobileOptimizerType.REMOVE_DROPOUT}
    preserved = [str(m) for m in preserved_methods or ()]
    bundled = [m for m in ("get_all_bundled_inputs", "get_num_bundled_inputs") if hasattr(script_module, m)]
    for name in preserved:
        if not hasattr(script_module, name):
            raise AttributeError(f"The following methods to preserve do not exist in script_module: {name}")
    copied = script_module.__deepcopy__({}).eval()
    if whole <= blocked:
        return copied
    if whole & blocked:
        raise RuntimeError("optimize_for_mobile: CONV_BN_FUSION and REMOVE_DROPOUT are one step here; block both or none.")
    return cresset.jit.freeze(copied, preserved_attrs=list(dict.fromkeys(preserved + bundled)))


def generate_mobile_module_lints(script_module):
    """[{"name": a LintCode's, "message": …}] of what makes a compiled module slow or large where it only runs. TypeError for one that is not compiled."""
    if not isinstance(script_module, cresset.jit.ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    found = []

    def add(code, message):
        found.append({"name": code.name, "message": message})

    if not hasattr(script_module, "_generate_bundled_inputs_for_forward"):
        add(LintCode.BUNDLED_INPUT, "No bundled input for forward, please add bundled inputs before saving the module using torch.utils.bundled_inputs.augment_model_with_bundled_inputs.")
    for name, parameter in script_module.named_parameters():
        if parameter.requires_grad:
            add(LintCode.REQUIRES_GRAD, f"Param {name} requires grad, please set torch.no_grad() to reduce memory usage and improve computation speed during inference phase.")
    for code, word, advice in (
        (LintCode.DROPOUT, "aten::dropout", "please call eval() before saving the module."),
        (LintCode.BATCHNORM, "aten::batch_norm", "please call eval() before saving the module, which lets it be folded into convolutions."),
    ):
        if script_module.training and word in str(script_module.inlined_graph):
            add(code, f"Operator {word.rpartition('::')[2]} exists, {advice}")
    return found
