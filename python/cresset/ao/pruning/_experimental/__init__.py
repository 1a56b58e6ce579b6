"""Sparsity of activations and of data, and pruning of whole rows."""
