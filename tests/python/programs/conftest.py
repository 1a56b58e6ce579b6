"""Idioms of programs that were written for PyTorch, in small copies of our own; tools/run_programs runs the programs themselves."""
