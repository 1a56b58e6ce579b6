"""Meshes of devices are not part of Cresset: their type, so that programs can ask and annotate."""

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Devices of several processes as an array. There is none: RuntimeError from the constructor."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("DeviceMesh: communication between processes is not part of Cresset.")


def init_device_mesh(device_type, mesh_shape, **kwargs):
    """RuntimeError: there are no meshes."""
    raise RuntimeError("init_device_mesh: communication between processes is not part of Cresset.")
