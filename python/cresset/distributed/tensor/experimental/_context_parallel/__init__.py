"""Attention over sequences that are cut among ranks. See context_parallel."""
