"""Passes for graphs of operators."""
