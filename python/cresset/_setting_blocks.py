"""`patch` of modules whose names are settings."""

import contextlib


def patch_of(settings, name):
    """patch(): other settings within a block. settings: the module's names; name: what errors call it."""

    @contextlib.contextmanager
    def patch(arg=None, value=None, **changes):
        """Other settings within a block: `patch(name=value)`, `patch("name", value)` or `patch({"name": value})`. AttributeError for unknown ones."""
        changes = {**({arg: value} if isinstance(arg, str) else arg or {}), **changes}
        unknown = [key for key in changes if key not in settings]
        if unknown:
            raise AttributeError(f"{name} has no setting {unknown[0]!r}")
        before = {key: settings[key] for key in changes}
        settings.update(changes)
        try:
            yield
        finally:
            settings.update(before)

    return patch
