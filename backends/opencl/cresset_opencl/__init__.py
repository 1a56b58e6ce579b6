"""The device `opencl` for Cresset. Installed, it is found when the name is first used; importing this module is not needed."""

from pathlib import Path

import cresset

cresset.accelerator.load_backend(Path(__file__).parent / "libcresset_opencl.so")
