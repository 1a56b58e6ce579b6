"""Data loading and hooks."""
