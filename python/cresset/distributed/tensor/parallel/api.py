"""Which module gets which style."""

import warnings
from fnmatch import fnmatch

from ...device_mesh import _mesh_resources
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Give a module, or its submodules, a ParallelStyle, in place; the module.

    `parallelize_plan` is one style, or {path: style}; a part of a path may be a pattern ("layers.*.w1"). The mesh has one dimension. `src_data_rank` is
    the rank whose parameters are distributed; None: each its own. A path that fits no submodule is warned of.
    """
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    if device_mesh.ndim != 1:
        raise ValueError(f"Tensor Parallel only accepts a 1D DeviceMesh, but found {device_mesh.ndim}D! Slice it: mesh[\"tp\"].")
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call will do nothing.", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!")
    for path, style in parallelize_plan.items():
        _by_path(module, path.split("."), path, device_mesh, style, src_data_rank)
    return module


def _by_path(module, parts, path, mesh, style, src_data_rank):
    if parts == [""]:
        raise ValueError("Expect module path to be non-empty, but got empty string!")
    fitting = [child for name, child in module.named_children() if fnmatch(name, parts[0])]
    if not fitting:
        warnings.warn(f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{parts[0]}' in module {module}, skipping this plan entry.", stacklevel=4)
    for child in fitting:
        if len(parts) > 1:
            _by_path(child, parts[1:], path, mesh, style, src_data_rank)
        else:
            parallelize_module(child, mesh, style, src_data_rank=src_data_rank)
