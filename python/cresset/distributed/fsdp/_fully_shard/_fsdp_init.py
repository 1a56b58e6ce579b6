"""Which parameters a call of fully_shard takes."""

from ._fsdp_param import ParamModuleInfo
from ._fsdp_state import state_of

__all__ = ["_get_managed_modules", "_get_managed_states", "_get_param_module_infos"]


def _get_managed_modules(root_modules, ignored_params=None):
    """The modules below these that no other call has taken, each once."""
    found, seen = [], set()

    def visit(module):
        if id(module) in seen or (module not in root_modules and state_of(module) is not None):
            return
        seen.add(id(module))
        for child in module.children():
            visit(child)
        found.append(module)

    for root in root_modules:
        visit(root)
    return found


def _get_managed_states(modules, ignored_params=None):
    """(parameters, buffers) of the modules themselves, each once."""
    ignored, params, buffers = {id(p) for p in ignored_params or ()}, {}, {}
    for module in modules:
        for param in module._parameters.values():
            if param is not None and id(param) not in ignored:
                params.setdefault(id(param), param)
        for buffer in module._buffers.values():
            if buffer is not None:
                buffers.setdefault(id(buffer), buffer)
    return list(params.values()), list(buffers.values())


def _get_param_module_infos(params, modules):
    """For each parameter the module that has it, and further ones that share it."""
    infos, wanted = {}, {id(p) for p in params}
    for root in modules:
        for module in root.modules():
            for name, param in module._parameters.items():
                if param is None or id(param) not in wanted:
                    continue
                known = infos.get(id(param))
                if known is None:
                    infos[id(param)] = ParamModuleInfo(module, name)
                elif (module, name) != (known.module, known.param_name) and not any(
                    m is module and n == name for m, n in zip(known.shared_modules, known.shared_param_names)
                ):
                    known.shared_modules.append(module)
                    known.shared_param_names.append(name)
    return [infos[id(p)] for p in params]
