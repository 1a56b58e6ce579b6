"""Parts of programs as plain values, to be written."""
