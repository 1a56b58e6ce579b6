"""Placeholders for names that do not exist, so that a test file loads without them: using one in a test raises AbsentName."""

import ast
import builtins
import functools
import importlib
import re
import sys

loading = False
found: set[str] = set()  # the names that placeholders were made for


class AbsentName(Exception):
    """A test used a name that does not exist. (No subclass of what a test may expect.)"""


def _refuse(self, *args, **kwargs):
    raise AbsentName(self._path)


class Absent:
    __all__ = ()

    def __init__(self, path):
        self.__dict__.update(_path=path, __name__=path.rpartition(".")[2])

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._path}.{name}")

    def __call__(self, *args, **kwargs):
        if not loading:
            raise AbsentName(self._path)
        # While a file loads this is most often a decorator: what it decorates must not vanish from the file.
        if len(args) == 1 and not kwargs and isinstance(args[0], type):
            return args[0]
        if len(args) == 1 and not kwargs and callable(args[0]) and hasattr(args[0], "__name__") and not issubclass(type(args[0]), Absent):
            refuse = functools.partial(_refuse, self)
            return functools.wraps(args[0])(lambda *a, **k: refuse())
        return Absent(f"{self._path}()")

    def __mro_entries__(self, bases):
        return (AbsentBase,) if AbsentBase not in bases else ()

    def __iter__(self):
        return iter(()) if loading else _refuse(self)

    def __getitem__(self, key):
        return self if loading else _refuse(self)

    def __bool__(self):
        return False if loading else _refuse(self)

    def __or__(self, other):
        return self if loading else _refuse(self)

    def __contains__(self, item):
        return False if loading else _refuse(self)

    __ror__ = __or__
    __enter__ = __len__ = __setattr__ = _refuse

    def __instancecheck__(self, instance):
        return False

    def __subclasscheck__(self, cls):
        return False

    def __repr__(self):
        return f"<absent {self._path}>"


class AbsentBase(Absent):
    """Base of classes that are derived from a placeholder."""

    def __init__(self, *args, **kwargs):
        super().__init__(f"{type(self).__module__}.{type(self).__name__}()")
        if not loading:
            raise AbsentName(f"{type(self).__name__} derives from an absent class")


class AbsentDtype(Absent):
    """Passes for a dtype where tests are multiplied by dtypes, so that those of others remain."""

    is_complex = is_signed = False

    @property
    def __class__(self):
        return sys.modules["torch"].dtype

    @property
    def is_floating_point(self):
        return "float" in self._path

    def __bool__(self):
        return True

    def __repr__(self):
        return f"torch.{self._path.rpartition('.')[2]}"


def placeholder(path):
    found.add(path)
    return (AbsentDtype if re.search(r"\.(float8|float4|quint|qint|uint|int|bits)[\w]*$", path) else Absent)(path)


def import_name(module, name, package):
    """`from module import name`, or a placeholder."""
    try:
        loaded = importlib.import_module(module, package)
    except Exception as error:
        if not _may_be_absent(error, module):
            raise
        return placeholder(f"{module}.{name}")
    if hasattr(loaded, name):
        return getattr(loaded, name)
    try:
        return importlib.import_module(f"{loaded.__name__}.{name}")
    except ImportError as error:
        if not _may_be_absent(error, module):
            raise
        return placeholder(f"{module}.{name}")


def import_module(module):
    """`import a.b.c` for its root `a`; what is missing below it becomes a placeholder there."""
    names = module.split(".")
    parent = importlib.import_module(names[0])
    root = parent
    for end in range(2, len(names) + 1):
        path = ".".join(names[:end])
        try:
            child = importlib.import_module(path)
        except ImportError as error:
            if not _may_be_absent(error, path):
                raise
            if not hasattr(parent, names[end - 1]):
                setattr(parent, names[end - 1], placeholder(path))
            break
        parent = child
    return root


def module_object(module):
    """`import a.b.c as x`: what is at `a.b.c`."""
    found_object = import_module(module)
    for name in module.split(".")[1:]:
        found_object = getattr(found_object, name)
    return found_object


def is_operator(owner):
    """Is it `torch.ops.namespace.name`, whose attributes are overloads?"""
    return type(owner).__name__ == "OpOverloadPacket"


def lookup_of(error):
    """(module, class or operator, name) when an error says that a module or class of PyTorch's lacks a name, or an operator an overload."""
    owner = getattr(error, "obj", None)
    if not isinstance(error, AttributeError) or error.name is None or not (isinstance(owner, (type, type(sys))) or is_operator(owner)):
        return None
    home = owner.__name__ if isinstance(owner, type(sys)) else owner.__module__
    return (owner, error.name) if (home or "").split(".")[0] in ROOTS else None


def _may_be_absent(error, module):
    """May a placeholder stand for what could not be imported: a module of PyTorch's, or another file of tests? Not a helper that lacks a package."""
    if module.rpartition(".")[2].startswith("test_"):
        return not lookup_of(error)  # the loader sees to those
    if not isinstance(error, ImportError):
        return False
    return (error.name or "").split(".")[0] in ROOTS or (module.split(".")[0] in ROOTS and not module.startswith("torch.testing"))


ROOTS = ("torch", "cresset", "functorch", "torchgen", "caffe2")


class _Rewrite(ast.NodeTransformer):
    """Imports of PyTorch's names at the top of a file, outside of `try` and of functions, go through this module."""

    def __init__(self, package):
        self.package = package
        if (package or "").startswith("torch.testing"):  # helpers ask inside of functions for names that most tests do not need
            self.visit_FunctionDef = self.visit_AsyncFunctionDef = self.generic_visit

    def leave(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_Try = leave

    def visit_ImportFrom(self, node):
        module = node.module or ""
        ours = node.level or module.split(".")[0] in ROOTS or module.rpartition(".")[2].startswith("test_")
        if not ours or node.names[0].name == "*":
            return node
        lines = []
        for name in node.names:
            lines.append(f"{name.asname or name.name} = __peer_tests__.import_name({'.' * node.level + module!r}, {name.name!r}, {self.package!r})")
        return self.statements(lines, node)

    def visit_Import(self, node):
        if not any(name.name.split(".")[0] in ROOTS for name in node.names):
            return node
        lines = []
        for name in node.names:
            if name.asname:
                lines.append(f"{name.asname} = __peer_tests__.module_object({name.name!r})")
            else:
                lines.append(f"{name.name.split('.')[0]} = __peer_tests__.import_module({name.name!r})")
        return self.statements(lines, node)

    def statements(self, lines, node):
        made = ast.parse("\n".join(lines)).body
        for statement in made:
            for part in ast.walk(statement):
                if hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        # Never run, and still seen by the compiler: it calls methods of names that are imported by other instructions, and torch.compile takes
        # the source of a function only where that gives the function's instructions.
        never = ast.copy_location(ast.If(ast.copy_location(ast.Constant(False), node), [node], []), node)
        return [*made, never]


def compiled(source, path, package):
    """The code of a file, with its imports of PyTorch's names rewritten."""
    builtins.__peer_tests__ = sys.modules[__name__]
    tree = _Rewrite(package).visit(ast.parse(source, path))
    return compile(tree, path, "exec", dont_inherit=True)
