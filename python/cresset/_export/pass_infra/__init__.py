"""What passes over exported programs handle: values with their nodes, and what is noted at nodes."""
