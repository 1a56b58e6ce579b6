"""Tensors with two zeros in each four elements, which only CUDA has products for: their classes, which libraries derive from and ask for, and which
refuse every tensor here, in PyTorch's words."""

from .. import _C

__all__ = ["SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "to_sparse_semi_structured"]


class SparseSemiStructuredTensor(_C.Tensor):
    """What both packings have in common."""

    _DEFAULT_ALG_ID = 0
    _FUSE_TRANSPOSE = _FORCE_CUTLASS = False

    @classmethod
    def from_dense(cls, original_tensor):
        """Raises RuntimeError: the tensor is on no CUDA device."""
        raise RuntimeError(f"Error original_tensor.device= {original_tensor.device} is not supported! Only CUDA tensors are currently supported.")


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """Packed for cuSPARSELt."""

    BACKEND = "cusparselt"


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """Packed for CUTLASS."""

    BACKEND = "cutlass"


def to_sparse_semi_structured(original_tensor, transposed=False):
    """Raises RuntimeError: the tensor is on no CUDA device."""
    return SparseSemiStructuredTensor.from_dense(original_tensor)
