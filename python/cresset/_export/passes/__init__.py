"""Passes over exported programs."""
