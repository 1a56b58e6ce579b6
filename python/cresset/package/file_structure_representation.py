"""The files of a package as a tree that prints."""

from .glob_group import GlobGroup

__all__ = ["Directory"]


class Directory:
    """A file or folder of a package. `name`: the last part of its path; `children`: name -> Directory."""

    def __init__(self, name, is_dir):
        self.name, self.is_dir, self.children = name, is_dir, {}

    def _get_dir(self, dirs):
        here = self
        for name in dirs:
            here = here.children.setdefault(name, Directory(name, True))
        return here

    def _add_file(self, file_path):
        *folders, name = file_path.split("/")
        self._get_dir(folders).children[name] = Directory(name, False)

    def has_file(self, filename):
        """Is there a file or folder with this path?"""
        here = self
        for name in filename.split("/"):
            here = here.children.get(name)
            if here is None:
                return False
        return True

    def __str__(self):
        lines = [f"─── {self.name}"]
        self._lines(lines, "    ")
        return "\n".join(lines) + "\n"

    def _lines(self, lines, indent):
        ordered = sorted(self.children.values(), key=lambda c: (not c.is_dir, c.name))
        for i, child in enumerate(ordered):
            last = i == len(ordered) - 1
            lines.append(f"{indent}{'└' if last else '├'}── {child.name}")
            child._lines(lines, indent + ("    " if last else "│   "))


def _create_directory_from_file_list(filename, file_list, include="**", exclude=()):
    """The Directory of the paths that match `include` and not `exclude`."""
    patterns = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(filename, True)
    for path in file_list:
        if patterns.matches(path):
            top._add_file(path)
    return top
