"""nn.functional, family by family; cresset.nn.functional puts the families together."""
