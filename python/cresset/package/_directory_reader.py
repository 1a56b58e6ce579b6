"""An archive that was unpacked into a folder, read as if it were one file."""

import os

__all__ = ["DirectoryReader"]


class DirectoryReader:
    """The records below a folder."""

    def __init__(self, directory):
        self.directory = os.fspath(directory)

    def _path(self, name):
        return os.path.join(self.directory, *name.split("/"))

    def has_record(self, name):
        return os.path.isfile(self._path(name))

    def get_record(self, name):
        """The bytes of a record; FileNotFoundError without it."""
        with open(self._path(name), "rb") as f:
            return f.read()

    def get_all_records(self):
        """Names of the records."""
        found = []
        for folder, _, files in os.walk(self.directory):
            inner = os.path.relpath(folder, self.directory).replace(os.sep, "/")
            found += [f if inner == "." else f"{inner}/{f}" for f in files]
        return sorted(found)
