"""Packages that PyTorch carries along and programs import from it."""
