"""Names that programs around export reach in PyTorch's `torch.export._trace`."""

from ._export import export

__all__ = ["_export"]


def _export(
    mod, args, kwargs=None, dynamic_shapes=None, *, strict=False, preserve_module_call_signature=(), pre_dispatch=False, allow_complex_guards_as_runtime_asserts=False,
    prefer_deferred_runtime_asserts_over_guards=False, _is_torch_jit_trace=False, _to_aten_func=None,
):  # fmt: skip
    """The program that `torch.export.export` gives; without pre_dispatch its operators write nothing, and composite ones come apart."""
    del allow_complex_guards_as_runtime_asserts, prefer_deferred_runtime_asserts_over_guards, _is_torch_jit_trace, _to_aten_func
    program = export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict, preserve_module_call_signature=preserve_module_call_signature)
    return program if pre_dispatch else program.run_decompositions({})
