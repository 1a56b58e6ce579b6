"""What computes masks of weights."""
