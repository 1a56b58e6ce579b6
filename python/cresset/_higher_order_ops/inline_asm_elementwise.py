"""Instructions of a CUDA processor for each element. There is none here."""

__all__ = ["inline_asm_elementwise"]


def inline_asm_elementwise(*inputs, asm_str, constraints, dtype, is_pure=True, pack=1):
    """Raises RuntimeError: no tensor here is on a CUDA device."""
    raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")
