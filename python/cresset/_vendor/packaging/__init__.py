"""What programs import of `packaging` from here."""
