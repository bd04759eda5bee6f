"""The classes of tensors."""

from ingot.compat.quadrants._tensor import MatrixTensor, Tensor, VectorTensor, wrap

__all__ = ["MatrixTensor", "Tensor", "VectorTensor", "wrap"]
