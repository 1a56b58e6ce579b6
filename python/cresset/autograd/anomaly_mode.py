"""Anomaly mode: where did the operation run whose backward failed?"""

from cresset import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def _check_flags(mode, check_nan):
    for position, (name, value) in enumerate((("enabled", mode), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not {type(value).__name__}")


class set_detect_anomaly:
    """Turns anomaly mode on or off, at once; as a context manager for its extent."""

    def __init__(self, mode, check_nan=True):
        _check_flags(mode, check_nan)
        self._before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        _C.set_anomaly_enabled(*self._before)


class detect_anomaly:
    """Anomaly mode for a block: a failing backward shows where its forward operation ran, NaN gradients raise."""

    def __init__(self, check_nan=True):
        import warnings

        _check_flags(True, check_nan)
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2
        )

    def __enter__(self):
        self._before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C.set_anomaly_enabled(True, self._check_nan)

    def __exit__(self, *exc_info):
        _C.set_anomaly_enabled(*self._before)
