"""The version, and what the build lacks."""

from ._build_info import version as __version__

debug = False
cuda = hip = xpu = None
git_version = ""

__all__ = ["__version__", "debug", "cuda", "hip", "git_version", "xpu"]
rocm = None
