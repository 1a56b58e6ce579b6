"""Where storages of files go: tags of devices, map_location, and what register_package adds.

A tag of a file is compared with the devices that are there. It never loads a library.
"""

import cresset
from cresset import _C
from cresset._hints import with_hint

from ._options import _serialization_tls

__all__ = ["register_package", "location_tag", "default_restore_location", "validate_cuda_device", "validate_hpu_device"]

_package_registry = []  # (priority, tagger, deserializer), the lowest priority first


def register_package(priority, tagger, deserializer):
    """Add a kind of location.

    `tagger(storage)` gives the tag of a storage that is saved and `deserializer(storage, tag)` the storage where a tag says; both give
    None for what is not theirs. Those of a lower priority are asked first; Cresset's own have 0 to 25.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def _own_tag(storage):
    device = getattr(storage, "device", storage)
    if device.type in ("cpu", "meta"):
        return device.type
    return _C._device_file_tag(device) + ("" if device.index is None else f":{device.index}")


def location_tag(storage):
    """How a file names the device of a storage, or a device: "cpu", "meta", or the backend's tag and the index."""
    fake = getattr(storage.untyped() if cresset.is_storage(storage) else storage, "_fake_device", None)
    if fake is not None:
        return _own_tag(fake)
    for _, tagger, _ in _package_registry:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {_kind(storage)}")


def _kind(storage):
    return f"{type(storage).__module__}.{type(storage).__name__}"


# Kinds that only other builds of PyTorch have.
_ELSEWHERE = frozenset(["cuda", "xpu", "hpu", "mps", "xla", "ipu", "vulkan", "lazy"])


def _kinds():
    """Names of the kinds of devices that this process has."""
    return {"cpu", "meta", "cuda", "privateuseone", _C._get_privateuse1_backend_name(), *_C._registered_backends()}


def known_device(name):
    """The device that a file names, or None when this process has none of that kind. Nothing is loaded for it."""
    kind, _, index = name.partition(":")
    if kind not in _kinds() or (index and not (index.isascii() and index.isdigit())):
        return None
    return cresset.device(name)


def device_of_tag(tag):
    """The device that a location tag of a file names; RuntimeError when it is not here."""
    name, _, index = str(tag).partition(":")
    for kind in _C._registered_backends():
        if _C._device_file_tag(cresset.device(kind)) == name:
            name = kind
    if name in _ELSEWHERE and name not in _C._registered_backends():
        raise RuntimeError(
            f"Attempting to deserialize object on a {name.upper()} device but torch.{name}.is_available() is False. If you are running on a "
            "CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    device = known_device(f"{name}:{index}" if index else name)
    if device is None:
        raise with_hint(
            RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {tag})"),
            "No device of that name is registered: load with map_location='cpu', or name the device once (torch.device) so that its plug-in is loaded.",
        )
    if index and device.type not in ("cpu", "meta") and _C._device_count(device) <= int(index):
        raise RuntimeError(
            f"load: the file was saved on {tag}, which is not here: there are {_C._device_count(device)} devices of that kind. Load it with map_location='cpu'."
        )
    return device


def _own_restore(storage, location):
    if location == "cpu":
        return storage
    return storage.to(device=device_of_tag(location))


register_package(25, _own_tag, _own_restore)


def default_restore_location(storage, location):
    """The storage on the device that a location tag names: itself, or a copy. RuntimeError when no package knows the tag."""
    for _, _, deserializer in _package_registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {_kind(storage)} (tagged with {location})")


def restorer(map_location):
    """A function of a storage on the CPU and its tag that gives the storage where map_location says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, str(map_location.get(location, location)))
    if isinstance(map_location, (str, bytes, cresset.device)):
        place = map_location.decode() if isinstance(map_location, bytes) else map_location
        place = location_of(cresset.device(place))
        return lambda storage, location: default_restore_location(storage, place)

    def restore(storage, location):
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return restore


def location_of(device):
    """The tag of a device."""
    return _own_tag(device)


def mapped_device(device):
    """map_location of the load that is going on for a tensor that names its device, given as a device or its text."""
    where = _serialization_tls.map_location
    text = str(device)
    if where is None:
        return device_of_tag(text) if isinstance(device, str) else device
    if isinstance(where, dict):
        return device_of_tag(str(where.get(text, text)))
    if isinstance(where, (str, bytes, cresset.device)):
        return cresset.device(where.decode() if isinstance(where, bytes) else where)
    moved = where(cresset.UntypedStorage(0), text)
    return device_of_tag(text) if moved is None else moved.device


def validate_cuda_device(location):
    """The index of the CUDA device that a tag names. RuntimeError when there is none."""
    device = device_of_tag(location)
    return 0 if device.index is None else device.index


validate_hpu_device = validate_cuda_device
