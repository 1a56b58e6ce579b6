"""PyTorch's names of parts of the rules, which programs and tests look up. The rules themselves are in `_rules`."""
