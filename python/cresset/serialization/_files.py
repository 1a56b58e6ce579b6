"""Files by path or as objects, and replacing a file by a whole new one."""

import os

from cresset import _C

__all__ = ["check_readable", "check_writable", "is_path", "path_of", "replaced_file"]


def is_path(f):
    return isinstance(f, (str, os.PathLike))


def path_of(f):
    """The path that `f` is, or None for a file object."""
    return os.fsdecode(f) if is_path(f) else None


class replaced_file:
    """A file beside `path`, which takes its place in close(commit=True): others see the old file or the whole new one, which is on the disk."""

    def __init__(self, path):
        self._replaced = _C._replaced_file("save", path)
        self.file = open(_C._replaced_file_temporary(self._replaced), "wb")  # noqa: SIM115
        self.write = self.file.write

    def close(self, commit):
        self.file.close()
        if commit:
            _C._replaced_file_commit(self._replaced)
        self._replaced = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        self.close(commit=kind is None)


def check_writable(f):
    """AttributeError for what is neither a path nor a file to write to."""
    if not is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")


def check_readable(f):
    """AttributeError for a file object that cannot seek."""
    for name in ("seek", "tell", "read"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {name!r}. You can only torch.load from a file that is seekable. "
                "Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )


class _open_file_like:
    """`with _open_file_like(path or file, mode) as f:`"""

    def __init__(self, f, mode):
        if not is_path(f):
            (check_writable if "w" in mode else check_readable)(f)
        self._f, self._opened, self._writes = f, None, "w" in mode
        if is_path(f):
            self._f = self._opened = open(f, mode)  # noqa: SIM115

    def __enter__(self):
        return self._f

    def __exit__(self, *error):
        if self._opened is not None:
            self._opened.close()
        elif self._writes and hasattr(self._f, "flush"):
            self._f.flush()


def bytes_left(f):
    """Bytes behind the position of a file that can seek, else None."""
    try:
        here = f.tell()
        end = f.seek(0, os.SEEK_END)
        end = f.tell() if end is None else end
        f.seek(here)
    except (AttributeError, OSError, ValueError):
        return None
    return end - here
