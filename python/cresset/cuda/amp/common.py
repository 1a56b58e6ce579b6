"""Whether half precision is worth a GradScaler, where PyTorch has the question."""

import cresset

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available():
    """Is there no device for which a GradScaler does anything?"""
    return not cresset.cuda.is_available()
