"""Averages of models over ranks, now and then."""
