"""Where modules came in that stopped an export."""

from ..package_exporter import PackagingError

__all__ = ["find_first_use_of_broken_modules"]


def find_first_use_of_broken_modules(exc):
    """{module: the modules that lead to it from the first that was saved} of each module that a PackagingError names."""
    assert isinstance(exc, PackagingError), "exception must be a PackagingError"
    return {name: exc.dependency_graph.first_path(name) for name, facts in exc.dependency_graph.nodes.items() if "error" in facts}
