"""Which modules a source mentions."""

import ast

__all__ = ["find_files_source_depends_on"]


class _Finder(ast.NodeVisitor):
    def __init__(self, package):
        self._package = package
        self.found = {}  # (module, name or None), in order

    def _absolute(self, module, level):
        if not level:
            return module
        parts = self._package.split(".") if self._package else []
        if level > len(parts):
            raise ImportError("attempted relative import beyond top-level package")
        base = ".".join(parts[: len(parts) - level + 1])
        return f"{base}.{module}" if module else base

    def visit_Import(self, node):
        for alias in node.names:
            self.found[alias.name, None] = True

    def visit_ImportFrom(self, node):
        module = self._absolute(node.module, node.level)
        for alias in node.names:
            self.found[module, alias.name] = True

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "__import__":
            try:
                self._visit_import_call(node)
            except (ValueError, TypeError, IndexError, ImportError):  # only what is written out can be followed
                pass
        self.generic_visit(node)

    def _visit_import_call(self, node):
        given = dict(zip(["name", "globals", "locals", "fromlist", "level"], node.args, strict=False))
        given.update((k.arg, k.value) for k in node.keywords if k.arg)
        name = ast.literal_eval(given["name"]) if "name" in given else None
        if not isinstance(name, str):
            return
        fromlist = ast.literal_eval(given["fromlist"]) if "fromlist" in given else ()
        module = self._absolute(name, ast.literal_eval(given["level"]) if "level" in given else 0)
        for item in fromlist or [None]:
            self.found[module, item or None] = True


def find_files_source_depends_on(src, package):
    """[(module, name or None)] of the imports in a source whose relative imports are seen from `package`. ImportError for one that leads
    beyond the top, SyntaxError for what is no Python."""
    finder = _Finder(package)
    finder.visit(ast.parse(src))
    return list(finder.found)
