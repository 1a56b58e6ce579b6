"""PyTorch's names for device-generic tests. What they do is written in docs/guide/conformance.md."""
