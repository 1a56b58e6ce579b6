"""Custom operators: schemas from signatures, kernels, gradients, checks. The public names are in `cresset.library`."""
