"""PyTorch's name of the inner part of export; here that is in export itself."""
