"""See `errors`."""
