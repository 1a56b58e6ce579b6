"""Tensors in boxes on several ranks, in the older form; DTensor is the newer one. Here for programs and files that have them."""
