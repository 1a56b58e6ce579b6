"""Schedules of the level of sparsity."""
