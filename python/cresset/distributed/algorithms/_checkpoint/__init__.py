"""Wrappers that compute activations again in backward."""
