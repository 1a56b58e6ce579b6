"""What the older names say."""

import warnings

__all__ = ["warn_deprecated"]


def warn_deprecated(name, new):
    """A FutureWarning at the caller of `functorch.name`."""
    warnings.warn(
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated as of PyTorch 2.0 and will "
        f"be deleted in a future version of PyTorch >= 2.3. Please use `{new}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` "
        "migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
        FutureWarning,
        stacklevel=3,
    )
