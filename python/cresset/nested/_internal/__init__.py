"""The type of nested tensors and its operators."""
