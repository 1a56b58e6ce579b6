"""Sparsity of activations (`activation_sparsifier.ActivationSparsifier`)."""
