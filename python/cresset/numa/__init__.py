"""Processors and the memory that is near them."""
