"""Random numbers of DTensors: each mesh has a stream of its own, which all of its ranks advance together.

An operator takes one number from the stream; with the place of the rank's part in the whole it is the seed of this call. So copies on several ranks are
equal, and parts differ. The stream begins with the seed of the mesh's first rank, or with `manual_seed`.
"""

import contextlib
import warnings
import weakref

import cresset
from cresset.utils._python_dispatch import _disable_current_modes

from .. import _collectives
from ..device_mesh import DeviceMesh
from ._rules import batch_word

__all__ = ["is_rng_supported_mesh", "manual_seed"]

_streams = weakref.WeakKeyDictionary()  # root mesh → {mesh: generator}
_MASK = (1 << 63) - 1


def is_random(op):
    """Does the operator draw random numbers?"""
    return batch_word(op)[0] == "random"


def is_rng_supported_mesh(device_mesh):
    """True: every kind of device has streams; a mesh that this rank is not in draws nothing."""
    return isinstance(device_mesh, DeviceMesh)


def _streams_of(mesh):
    return _streams.setdefault(mesh._get_root_mesh(), {})


def _first_seed(mesh):
    """The seed of the first rank of the mesh, which all of its ranks get."""
    with _disable_current_modes():  # it is no part of what the program communicates
        seed = cresset.tensor(cresset.initial_seed() & _MASK, dtype=cresset.int64)
        for mesh_dim in range(mesh.ndim):
            _collectives.broadcast(seed, group=mesh.get_group(mesh_dim), group_src=0)
        return int(seed.item())


def _stream(mesh):
    streams = _streams_of(mesh)
    if mesh not in streams:
        streams[mesh] = cresset.Generator().manual_seed(_first_seed(mesh))
    return streams[mesh]


def manual_seed(seed, device_mesh):
    """Begin the mesh's stream anew; all of its ranks call this with the same number."""
    if not is_rng_supported_mesh(device_mesh):
        warnings.warn("manual_seed: a DeviceMesh was required.", stacklevel=2)
        return
    if device_mesh.get_coordinate() is None:
        raise RuntimeError(
            "manual_seed requires the current rank to be a part of the device mesh otherwise DTensor RNG state on the rank will not be "
            "initialized and the behavior of DTensor random ops is undefined."
        )
    _streams_of(device_mesh)[device_mesh] = cresset.Generator().manual_seed(int(seed))


def _part(spec):
    """Which part of the whole this rank has, counted from 0."""
    number = 0
    for size, place, placement in zip(spec.mesh.shape, spec.mesh.get_coordinate(), spec.placements):
        if placement.is_shard():
            number = number * size + place
    return number


@contextlib.contextmanager
def of_part(spec):
    """A block in which the default generator draws this rank's numbers; afterwards it goes on where it was."""
    draw = int(cresset.randint(_MASK, (), generator=_stream(spec.mesh), dtype=cresset.int64).item())
    state = cresset.get_rng_state()
    cresset.manual_seed((draw + _part(spec) * 0x9E3779B97F4A7C15) & _MASK)
    try:
        yield
    finally:
        cresset.set_rng_state(state)
