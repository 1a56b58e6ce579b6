"""A device of a rank, as text: "rank:1/cpu"."""

import cresset

__all__ = []


class _remote_device:
    """`rank:<number>/<device>`, `<worker name>/<device>`, or `rank:<number>`, which is on the CPU. ValueError for other texts."""

    def __init__(self, remote_device):
        if isinstance(remote_device, _remote_device):
            remote_device = str(remote_device)
        if isinstance(remote_device, cresset.device):
            remote_device = str(remote_device)
        parts = remote_device.split("/")
        if len(parts) > 2 or not parts[0] or (len(parts) == 2 and not parts[1]):
            raise ValueError(f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>', 'rank:<rank>/<device>' or '<device>'.")
        self._worker_name = self._rank = None
        place, device = (parts[0], parts[1]) if len(parts) == 2 else (parts[0], "cpu")
        if place.startswith("rank:"):
            if not place[5:].isdigit():
                raise ValueError(f"Could not parse remote_device: {remote_device}: the rank is no number.")
            self._rank = int(place[5:])
        elif len(parts) == 2:
            self._worker_name = place
        else:
            device = place if self._is_device(place) else "cpu"
            self._worker_name = None if self._is_device(place) else place
        self._device, self._text = cresset.device(device), remote_device

    @staticmethod
    def _is_device(text):
        try:
            cresset.device(text)
        except RuntimeError:
            return False
        return True

    def worker_name(self):
        """The worker's name, or None."""
        return self._worker_name

    def rank(self):
        """The rank in the default group, or None."""
        return self._rank

    def device(self):
        """The device there."""
        return self._device

    def _key(self):
        return (self._worker_name, self._rank, self._device)

    def __repr__(self):
        if self._rank is not None:
            return f"rank:{self._rank}/{self._device}"
        return f"{self._worker_name}/{self._device}" if self._worker_name else str(self._device)

    def __eq__(self, other):
        return isinstance(other, _remote_device) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())
