"""Layers that are computed as one become one."""

import cresset
from cresset import nn
from cresset.fx import GraphModule
from cresset.nn import functional as F

from ..backend_config import BackendConfig, get_native_backend_config
from ..backend_config.utils import get_fuser_method_mapping, get_fusion_pattern_to_extra_inputs_getter, get_fusion_pattern_to_root_node_getter
from .custom_config import FuseCustomConfig
from .match_utils import find_matches

__all__ = ["fuse"]


def backend_of(backend_config):
    """The config that is given, as such or as a dictionary, or the usual one."""
    if backend_config is None:
        return get_native_backend_config()
    return BackendConfig.from_dict(backend_config) if isinstance(backend_config, dict) else backend_config


def set_module(model, path, module):
    """Put a module in the place of another."""
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, module)


def _modules_in(form, modules, training):
    """The form of a match with modules in the places of nodes; a ReLU, in the mode of the others, for functions that are one."""
    if isinstance(form, tuple):
        return tuple(_modules_in(part, modules, training) for part in form)
    if form.op == "call_module":
        return modules[form.target]
    if form.op == "call_function":
        return nn.ReLU().train(training) if form.target in (F.relu, cresset.relu) else form.target
    return form


def _fuse_one(model, modules, match, method, is_qat, root, extra, done):
    if root.target not in done:  # modules may be called again
        last, *before = _modules_in(match.form, modules, modules[root.target].training)
        fused = done[root.target] = method(is_qat, last, *before)
        set_module(model, root.target, fused)
        modules[root.target] = fused
    others = [node for node in match.nodes if node is not root]
    if extra:
        root.args = (*root.args, *extra)
        match.last.prepend(root)
    match.last.replace_all_uses_with(root)
    for node in others:
        model.graph.erase_node(node)
        if node.op == "call_module" and not any(n.target == node.target for n in model.graph.nodes if n.op == "call_module"):
            set_module(model, node.target, nn.Identity())


def fuse(model, is_qat, fuse_custom_config=None, backend_config=None):
    """The graph module with fused layers in the places of patterns that have a fuser."""
    if isinstance(fuse_custom_config, dict):
        fuse_custom_config = FuseCustomConfig.from_dict(fuse_custom_config)
    config = backend_of(backend_config)
    methods = get_fuser_method_mapping(config)
    roots, extras = get_fusion_pattern_to_root_node_getter(config), get_fusion_pattern_to_extra_inputs_getter(config)
    modules = dict(model.named_modules(remove_duplicate=False))
    found, done = find_matches(model.graph, modules, methods), {}
    for node in list(model.graph.nodes):
        one = found.get(node.name)
        if one is None:
            continue
        root = roots[one.pattern](one.form) if one.pattern in roots else one.root
        if root is not node:
            continue
        extra = extras[one.pattern](one.form) if one.pattern in extras else []
        _fuse_one(model, modules, one, methods[one.pattern], is_qat, root, extra, done)
    return GraphModule(model, model.graph)
