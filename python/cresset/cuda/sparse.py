"""The older place of types of sparse CUDA tensors, of which there are none."""

__all__ = []
