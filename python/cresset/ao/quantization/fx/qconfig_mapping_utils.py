"""Which QConfig a node of a graph has."""

import re
from collections import defaultdict

from cresset import nn
from cresset.ao.nn.intrinsic import _FusedModule

from ..backend_config.utils import get_module_to_qat_module
from ..qconfig import _add_module_to_qconfig_obs_ctr, _assert_valid_qconfig, qconfig_equals
from ..qconfig_mapping import _OBJECT_TYPE_DICT_KEY, QConfigMapping  # noqa: F401

__all__ = []


def mapping_of(qconfig_mapping, what="qconfig_mapping"):
    """A QConfigMapping, of itself or of a dictionary."""
    if qconfig_mapping is None or isinstance(qconfig_mapping, dict):
        return QConfigMapping.from_dict(qconfig_mapping or {})
    if not isinstance(qconfig_mapping, QConfigMapping):
        raise ValueError(f"{what}: a QConfigMapping or a dictionary was required; got {type(qconfig_mapping)}.")
    return qconfig_mapping


def _get_object_type_qconfig(qconfig_mapping, object_type, fallback_qconfig):
    return qconfig_mapping.object_type_qconfigs.get(object_type, fallback_qconfig)


def _get_module_name_regex_qconfig(qconfig_mapping, module_name, fallback_qconfig):
    for pattern, qconfig in qconfig_mapping.module_name_regex_qconfigs.items():
        if re.match(pattern, module_name):
            return qconfig
    return fallback_qconfig


def _get_module_name_qconfig(qconfig_mapping, module_name, fallback_qconfig):
    names = qconfig_mapping.module_name_qconfigs
    if module_name == "":
        return fallback_qconfig
    return names[module_name] if module_name in names else _get_module_name_qconfig(qconfig_mapping, module_name.rpartition(".")[0], fallback_qconfig)


def _maybe_adjust_qconfig_for_module_type_or_name(qconfig_mapping, module_type, module_name, global_qconfig):
    found = _get_object_type_qconfig(qconfig_mapping, module_type, global_qconfig)
    found = _get_module_name_regex_qconfig(qconfig_mapping, module_name, found)
    return _get_module_name_qconfig(qconfig_mapping, module_name, found)


def _maybe_adjust_qconfig_for_module_name_object_type_order(qconfig_mapping, cur_module_path, cur_object_type, cur_object_type_idx, fallback_qconfig):
    for (path, kind, index), qconfig in qconfig_mapping.module_name_object_type_order_qconfigs.items():
        if (path, kind, index) == (cur_module_path, cur_object_type, cur_object_type_idx):
            return qconfig
    return fallback_qconfig


def _update_qconfig_for_fusion(model, qconfig_mapping):
    """What is said of the first of the fused classes holds for their fusion; LookupError where the others have other qconfigs."""
    kinds = qconfig_mapping.object_type_qconfigs
    if not kinds:
        return
    modules = dict(model.named_modules())
    for node in model.graph.nodes:
        if node.op != "call_module" or node.target not in modules or not isinstance(modules[node.target], _FusedModule):
            continue
        fused = modules[node.target]
        first, *rest = fused._modules.values()
        qconfig = kinds.get(type(first))
        for layer in rest:
            if not qconfig_equals(kinds.get(type(layer)), qconfig):
                raise LookupError(
                    f"During fusion, we need to specify the same qconfigs for all module types in {type(fused)} offending type: {type(layer)}"
                )
        if qconfig is not None:
            kinds[type(fused)] = qconfig


def _update_qconfig_for_qat(qconfig_mapping, backend_config):
    """What is said of a float class holds for its form in training."""
    trained = get_module_to_qat_module(backend_config)
    for kind, qconfig in list(qconfig_mapping.object_type_qconfigs.items()):
        if kind in trained:
            qconfig_mapping.object_type_qconfigs[trained[kind]] = qconfig


def _generate_node_name_to_qconfig(root, modules, input_graph, qconfig_mapping, node_name_to_scope):
    """{name of a node: QConfig or None}; modules get theirs as `qconfig`."""
    made, counts = {}, defaultdict(lambda: defaultdict(int))
    usual = qconfig_mapping.global_qconfig

    def nth(path, kind):
        counts[path][kind] += 1
        return counts[path][kind] - 1

    for node in input_graph.nodes:
        qconfig = None
        path, kind = node_name_to_scope.get(node.name, ("", nn.Module))
        if node.op == "get_attr":
            qconfig = _maybe_adjust_qconfig_for_module_type_or_name(qconfig_mapping, kind, path, usual)
        elif node.op in ("call_function", "call_method"):
            target = node.target
            found = _get_object_type_qconfig(qconfig_mapping, target, usual)
            found = _maybe_adjust_qconfig_for_module_type_or_name(qconfig_mapping, kind, path, found)
            qconfig = _maybe_adjust_qconfig_for_module_name_object_type_order(qconfig_mapping, path, target, nth(path, target), found)
        elif node.op == "call_module" and node.target in modules and not _is_observer(modules[node.target]):
            module = modules[node.target]
            found = _maybe_adjust_qconfig_for_module_type_or_name(qconfig_mapping, type(module), node.target, usual)
            parent = node.target.rpartition(".")[0]
            qconfig = _maybe_adjust_qconfig_for_module_name_object_type_order(qconfig_mapping, parent, type(module), nth(parent, type(module)), found)
            _assert_valid_qconfig(qconfig, module)
            qconfig = _add_module_to_qconfig_obs_ctr(qconfig, module)
            module.qconfig = qconfig
        made[node.name] = qconfig
    return made


def _is_observer(module):
    from ..observer import _is_activation_post_process

    return _is_activation_post_process(module)
