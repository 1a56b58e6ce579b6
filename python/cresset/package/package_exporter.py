"""Writing packages."""

import importlib.machinery
import io
import json
import linecache
import platform
import sys
from collections import Counter, OrderedDict
from enum import Enum
from pathlib import Path

import cresset
from cresset.serialization._checkpoint import host_copy, storage_facts
from cresset.serialization._locations import location_tag
from cresset.serialization._zip import _open_zipfile_writer
from cresset.utils.hooks import RemovableHandle

from ._digraph import DiGraph
from ._mangling import demangle, is_mangled
from ._package_pickler import PackagePickler
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup
from .importer import Importer, OrderedImporter, sys_importer

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]


class _ModuleProviderAction(Enum):
    """What becomes of a module."""

    INTERN, EXTERN, MOCK, DENY, REPACKAGED_MOCK_MODULE, SKIP = range(1, 7)


class PackagingErrorReason(Enum):
    """Why a module stops an export."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern the mocked modules if objects are supposed to be in the package."
    )

    def __repr__(self):
        return f"<{type(self).__name__}.{self.name}>"


class EmptyMatchError(Exception):
    """A pattern that was given with `allow_empty=False` matched no module."""


class PackagingError(Exception):
    """Some modules cannot be packaged; `dependency_graph` has each with its reason. With debug the text says how each came in."""

    def __init__(self, dependency_graph, debug=False):
        broken = {}
        for name, facts in dependency_graph.nodes.items():
            if facts.get("error") is not None:
                broken.setdefault(facts["error"], []).append((name, facts.get("error_context")))
        text = "\n"
        for reason, modules in broken.items():
            text += f"* {reason.value}\n"
            for name, context in modules:
                text += f"    {name}\n"
                if context is not None:
                    text += f"      Context: {context}\n"
                if debug:
                    text += f"      A path to {name}: {' -> '.join(dependency_graph.first_path(name))}\n"
        if not debug:
            text += "\nSet debug=True when invoking PackageExporter for a visualization of where broken modules are coming from!\n"
        self.dependency_graph = dependency_graph
        super().__init__(text)


class _Pattern:
    def __init__(self, action, include, exclude, allow_empty):
        self.glob, self.action, self.allow_empty = GlobGroup(include, exclude=exclude), action, allow_empty
        self.was_matched = False


_MOCKED_MODULE = "from _mock import MockedObject\ndef __getattr__(attr: str):\n    return MockedObject(__name__ + '.' + attr, _suppress_err=True)\n"
_IMPLICIT = ("torch", "cresset")


def _storages_of(script):
    """{path: memory} of the tensors in a compiled module."""
    found = {}
    for prefix, part in script._c.named_modules():
        for name, *_ in part._attributes():
            value = part.getattr(name)
            if isinstance(value, cresset.Tensor) and value.layout is cresset.strided and cresset._C._has_storage(value):
                found[f"{prefix}.{name}".lstrip(".")] = value.untyped_storage()
    return found


class PackageExporter:
    """Write a package: `with PackageExporter(path or file) as exporter:`.

    What is saved brings the modules that its sources import and its pickles name. Each must match a pattern of `intern` (its source goes in),
    `extern` (it is imported where the package is loaded), `mock` (it is replaced by something that may only be mentioned) or `deny` (an
    error), the first pattern given wins; the standard library and torch are extern without one. `importer` says where objects and
    sources come from: an Importer or a list of them. The file is whole when the block ends without an error or `close()` was called.

    Raises PackagingError for modules that nothing matches or that have no source, EmptyMatchError for a pattern with
    `allow_empty=False` that matched nothing, PicklingError for objects that are not found under their names.
    """

    def __init__(self, f, importer=sys_importer, debug=False):
        self.debug = debug
        self._writing = _open_zipfile_writer(f)
        self.zip_file = self._writing.__enter__()
        self._saved_paths = set()
        self._storages = OrderedDict()  # memory -> (key, what keeps it alive)
        self._reduced = {}  # id -> (persistent id, object)
        self._reduced_count = 0
        self.dependency_graph = DiGraph()
        self.patterns = []
        self._hooks = {action: OrderedDict() for action in (_ModuleProviderAction.EXTERN, _ModuleProviderAction.MOCK, _ModuleProviderAction.INTERN)}
        if isinstance(importer, Importer):
            self.importer = importer
        else:
            if not isinstance(importer, (list, tuple)):
                raise TypeError(f"importer arg should be an Importer or a sequence of Importers, got {type(importer)} instead.")
            self.importer = OrderedImporter(*importer)
        self._resource_packages = set()
        self._unique, self._closed, self._scripts = 0, False, []

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, exc_traceback):
        if exc_type is not None:
            self._give_up(exc_type)
        else:
            self.close()

    def _give_up(self, kind):
        """Leave no file behind where a path was given."""
        self._closed = True
        self._writing.__exit__(kind, None, None)

    # Code ---------------------------------------------------------------------------------------------------------------

    def save_source_file(self, module_name, file_or_directory, dependencies=True):
        """Save a source file, or the sources below a folder, as a module. With `dependencies` what they import comes, too."""
        path = Path(file_or_directory)
        if not path.is_dir():
            self.save_source_string(module_name, path.read_text(), path.name == "__init__.py", dependencies)
            return
        found = []
        for file in sorted(path.glob("**/*.py")):
            parts = [module_name, *file.relative_to(path).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            found.append((".".join(parts[:-1] if is_package else parts), file.read_text(), is_package))
        for name, _, _ in found:  # so that they do not have to match a pattern for each other
            self.dependency_graph.add_node(name, action=_ModuleProviderAction.INTERN, provided=True)
        for name, source, is_package in found:
            self.save_source_string(name, source, is_package, dependencies)

    def save_source_string(self, module_name, src, is_package=False, dependencies=True):
        """Save `src` as the source of a module. With `dependencies` what it imports comes, too."""
        self.dependency_graph.add_node(module_name, source=src, is_package=is_package, provided=True, action=_ModuleProviderAction.INTERN)
        if dependencies:
            for name in self._get_dependencies(src, module_name, is_package):
                self.dependency_graph.add_edge(module_name, name)
                self.add_dependency(name)

    def save_module(self, module_name, dependencies=True):
        """Save the source of a module that the importer finds. TypeError where `module_name` is not a string."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._intern_module(module_name, dependencies)

    def add_dependency(self, module_name, dependencies=True):
        """Bring a module in, by the first pattern that matches its name."""
        if module_name in self.dependency_graph and self.dependency_graph.nodes[module_name].get("provided"):
            return
        if module_name == "torch_package_importer":  # each package has its own
            self.dependency_graph.add_node(module_name, action=_ModuleProviderAction.SKIP, provided=True)
            return
        if module_name == "_mock":
            self.dependency_graph.add_node(module_name, action=_ModuleProviderAction.REPACKAGED_MOCK_MODULE, provided=True)
            return
        if self._can_implicitly_extern(module_name):
            self.dependency_graph.add_node(module_name, action=_ModuleProviderAction.EXTERN, provided=True)
            return
        for pattern in self.patterns:
            if pattern.glob.matches(module_name):
                pattern.was_matched = True
                self.dependency_graph.add_node(module_name, action=pattern.action, provided=True)
                if pattern.action is _ModuleProviderAction.DENY:
                    self.dependency_graph.add_node(module_name, error=PackagingErrorReason.DENIED)
                elif pattern.action is _ModuleProviderAction.INTERN:
                    self._intern_module(module_name, dependencies)
                return
        self.dependency_graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)

    def _intern_module(self, module_name, dependencies):
        module = self._import_module(module_name)
        module_name = demangle(module_name)
        is_package = hasattr(module, "__path__")
        self.dependency_graph.add_node(module_name, action=_ModuleProviderAction.INTERN, is_package=is_package, provided=True)
        source = self._get_source_of_module(module)
        if source is None:
            file = getattr(module, "__file__", None)
            reason, context = PackagingErrorReason.SOURCE_FILE_NOT_FOUND, None
            if file is None:
                # A folder without a source has nothing to bring; what lies in it comes by itself.
                if is_package and not isinstance(getattr(module, "__loader__", None), importlib.machinery.ExtensionFileLoader):
                    self.dependency_graph.add_node(module_name, source="")
                    return
                reason = PackagingErrorReason.IS_EXTENSION_MODULE if module_name in sys.builtin_module_names else PackagingErrorReason.NO_DUNDER_FILE
            elif file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
                reason = PackagingErrorReason.IS_EXTENSION_MODULE
            else:
                context = f"__file__: {file}"
            self.dependency_graph.add_node(module_name, error=reason, error_context=context)
            return
        self.dependency_graph.add_node(module_name, source=source)
        if dependencies:
            for name in self._get_dependencies(source, module_name, is_package):
                self.dependency_graph.add_edge(module_name, name)
                self.add_dependency(name)

    def _get_dependencies(self, src, module_name, is_package):
        package = module_name if is_package else module_name.rpartition(".")[0]
        try:
            found = find_files_source_depends_on(src, package)
        except Exception as error:
            self.dependency_graph.add_node(module_name, error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED, error_context=str(error))
            return []
        names = {}
        for module, name in found:
            is_inner = name is not None and name != "*" and self._module_exists(f"{module}.{name}")
            names[f"{module}.{name}" if is_inner else module] = True
        return list(names)

    def _import_module(self, module_name):
        try:
            return self.importer.import_module(module_name)
        except ModuleNotFoundError as error:
            if not is_mangled(module_name):
                raise
            raise ModuleNotFoundError(
                f"Module not found: '{module_name}'. Make sure the PackageImporter that created this module is present in `self.importer`"
            ) from error

    def _module_exists(self, module_name):
        try:
            self._import_module(module_name)
            return True
        except Exception:
            return False

    @staticmethod
    def _get_source_of_module(module):
        loader, spec = getattr(module, "__loader__", None), getattr(module, "__spec__", None)
        if loader is not None and hasattr(loader, "get_source"):
            try:
                return loader.get_source(spec.name if spec is not None else module.__name__)
            except ImportError:
                return None
        file = getattr(module, "__file__", None)
        return "".join(linecache.getlines(file, module.__dict__)) or None if file else None

    @staticmethod
    def _can_implicitly_extern(module_name):
        top = module_name.partition(".")[0]
        return top in _IMPLICIT or top in sys.stdlib_module_names and top not in ("_C", "_mock")

    # Data ---------------------------------------------------------------------------------------------------------------

    def save_pickle(self, package, resource, obj, dependencies=True, pickle_protocol=3):
        """Save an object in the package `package` under the name `resource`. With `dependencies` the modules of its classes come, too."""
        assert pickle_protocol in (3, 4), "torch.package only supports pickle protocols 3 and 4"
        filename = self._filename(package, resource)
        text = io.BytesIO()
        pickler = PackagePickler(self.importer, text, pickle_protocol)
        pickler.persistent_id = self._persistent_id
        pickler.dump(obj)
        name = f"<{package}.{resource}>"
        self.dependency_graph.add_node(name, action=_ModuleProviderAction.INTERN, provided=True, is_pickle=True)
        if dependencies:
            modules = {}
            for module, what in pickler.globals:
                modules.setdefault(module, []).append(what)
            for module, names in modules.items():
                self._use_in_pickle(name, module, names, package, resource)
        self._write(filename, text.getvalue())

    def _use_in_pickle(self, node, module, names, package, resource):
        self.dependency_graph.add_edge(node, module)
        self.add_dependency(module)
        if self.dependency_graph.nodes[module].get("action") is _ModuleProviderAction.MOCK:
            context = f"Object(s) '{names}' from module `{module}` was mocked out during packaging but is being used in resource - `{resource}` in package `{package}`. "
            self.dependency_graph.add_node(module, error=PackagingErrorReason.MOCKED_BUT_STILL_USED, error_context=context)

    def save_text(self, package, resource, text):
        """Save text in the package `package` under the name `resource`."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package, resource, binary):
        """Save bytes in the package `package` under the name `resource`."""
        self._write(self._filename(package, resource), binary)

    def _persistent_id(self, obj):
        if cresset.is_storage(obj):
            kind, count, _ = storage_facts(obj)
            storage = obj.untyped()
            return "storage", kind, int(self._key_of(storage)), location_tag(obj), count
        if hasattr(obj, "__reduce_package__") and not isinstance(obj, type):
            if id(obj) not in self._reduced:
                self._reduced_count += 1
                self._reduced[id(obj)] = (("reduce_package", self._reduced_count, *obj.__reduce_package__(self)), obj)
            return self._reduced[id(obj)][0]
        return None

    def _key_of(self, storage):
        """The key of the memory, which is written once."""
        if storage._cdata not in self._storages:
            self._storages[storage._cdata] = (str(len(self._storages)), storage)
            host = host_copy(storage)
            self.zip_file.write_record(f".data/{self._storages[storage._cdata][0]}.storage", host, host.nbytes())
        return self._storages[storage._cdata][0]

    def _write_shared(self):
        """Say of each compiled module which of its tensors lie in memory that tensors outside of it have too."""
        users = Counter(cdata for found in self._scripts for cdata in {storage._cdata for storage in found.values()})
        users.update(self._storages.keys())
        for number, found in enumerate(self._scripts):
            shared = {path: self._key_of(storage) for path, storage in found.items() if users[storage._cdata] > 1}
            if shared:
                self._write(f".data/ts_code/{number}/shared.json", json.dumps(shared))

    def _reduce_script(self, script):
        """Save a compiled module as an archive of its own; gives what makes it again."""
        from cresset.jit import save
        from cresset.jit._script import unpackage_script_module

        number, archive = str(len(self._scripts)), io.BytesIO()
        self._scripts.append(_storages_of(script))
        save(script, archive)
        self._write(f".data/ts_code/{number}/archive.pt", archive.getvalue())
        return unpackage_script_module, (number,)

    def get_unique_id(self):
        """A text that this exporter has not given before."""
        self._unique += 1
        return str(self._unique - 1)

    # What becomes of modules ----------------------------------------------------------------------------------------------

    def intern(self, include, *, exclude=(), allow_empty=True):
        """Modules that match go in with their source. EmptyMatchError at the end when none did and `allow_empty` is False."""
        self.patterns.append(_Pattern(_ModuleProviderAction.INTERN, include, exclude, allow_empty))

    def mock(self, include, *, exclude=(), allow_empty=True):
        """Modules that match are replaced: what is taken from them raises NotImplementedError when it is used."""
        self.patterns.append(_Pattern(_ModuleProviderAction.MOCK, include, exclude, allow_empty))

    def extern(self, include, *, exclude=(), allow_empty=True):
        """Modules that match are imported from where the package is loaded."""
        self.patterns.append(_Pattern(_ModuleProviderAction.EXTERN, include, exclude, allow_empty))

    def deny(self, include, *, exclude=()):
        """Modules that match make the export fail."""
        self.patterns.append(_Pattern(_ModuleProviderAction.DENY, include, exclude, True))

    def _register(self, action, hook):
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def register_extern_hook(self, hook):
        """Call `hook(exporter, module name)` for each module that is extern; the handle's `remove` takes it away."""
        return self._register(_ModuleProviderAction.EXTERN, hook)

    def register_mock_hook(self, hook):
        """Call `hook(exporter, module name)` for each module that is mocked; the handle's `remove` takes it away."""
        return self._register(_ModuleProviderAction.MOCK, hook)

    def register_intern_hook(self, hook):
        """Call `hook(exporter, module name)` for each module whose source goes in; the handle's `remove` takes it away."""
        return self._register(_ModuleProviderAction.INTERN, hook)

    # The end --------------------------------------------------------------------------------------------------------------

    def close(self):
        """Check the modules and write the file to its end. RuntimeError when it was closed before."""
        if self._closed:
            raise RuntimeError("close: the exporter was closed before.")
        try:
            self._execute_dependency_graph()
            self._write_shared()
            self._write(".data/python_version", platform.python_version())
            self.zip_file.write_record(".data/version", b"6\n", 2)
        except BaseException as error:
            self._give_up(type(error))
            raise
        self._closed = True
        self._writing.__exit__(None, None, None)

    def _validate_dependency_graph(self):
        for name in self._resource_packages:  # a package of resources alone can be imported
            if self.dependency_graph.nodes.get(name, {}).get("error") is PackagingErrorReason.NO_ACTION:
                del self.dependency_graph.nodes[name]["error"]
        if any(facts.get("error") is not None for facts in self.dependency_graph.nodes.values()):
            raise PackagingError(self.dependency_graph, debug=self.debug)
        for pattern in self.patterns:
            if not pattern.allow_empty and not pattern.was_matched:
                raise EmptyMatchError(f"Exporter did not match any modules to {pattern.glob}, which was marked as allow_empty=False")

    def _execute_dependency_graph(self):
        self._validate_dependency_graph()
        extern = []
        for name, facts in self.dependency_graph.nodes.items():
            action = facts.get("action")
            for hook in self._hooks.get(action, {}).values() if not facts.get("is_pickle") else ():
                hook(self, name)
            if action is _ModuleProviderAction.EXTERN:
                extern.append(name)
            elif action is _ModuleProviderAction.MOCK:
                self._write_mock_file()
                self._write_source_string(name, _MOCKED_MODULE, hasattr(self._import_module(name), "__path__") if self._module_exists(name) else False)
            elif action is _ModuleProviderAction.INTERN and "source" in facts:
                self._write_source_string(name, facts["source"], facts["is_package"])
            elif action is _ModuleProviderAction.REPACKAGED_MOCK_MODULE:
                self._write_mock_file()
        self._write(".data/extern_modules", "".join(f"{name}\n" for name in extern))

    def _write_mock_file(self):
        if "_mock.py" not in self._saved_paths:
            self._write_source_string("_mock", (Path(__file__).parent / "_mock.py").read_text(), is_package=False)

    def _write_source_string(self, module_name, src, is_package=False):
        self._write(module_name.replace(".", "/") + ("/__init__.py" if is_package else ".py"), src)

    def _write(self, filename, str_or_bytes):
        assert filename not in self._saved_paths, f"Tried to write file '{filename}', but it already exists in this archive. Please file a bug."
        self._saved_paths.add(filename)
        data = str_or_bytes.encode("utf-8") if isinstance(str_or_bytes, str) else str_or_bytes
        self.zip_file.write_record(filename, data, len(data))

    def _filename(self, package, resource):
        self._resource_packages.add(package)
        return f"{package.replace('.', '/')}/{resource}"

    # Questions ------------------------------------------------------------------------------------------------------------

    def dependency_graph_string(self):
        """The modules and what brought them in, in the language of dot."""
        return self.dependency_graph.to_dot()

    def _nodes_with_action_type(self, action):
        return [name for name, facts in self.dependency_graph.nodes.items() if facts.get("action") is action and not facts.get("is_pickle")]

    def externed_modules(self):
        """Names of the modules that are extern so far."""
        return self._nodes_with_action_type(_ModuleProviderAction.EXTERN)

    def interned_modules(self):
        """Names of the modules whose sources go in so far."""
        return self._nodes_with_action_type(_ModuleProviderAction.INTERN)

    def mocked_modules(self):
        """Names of the modules that are mocked so far."""
        return self._nodes_with_action_type(_ModuleProviderAction.MOCK)

    def denied_modules(self):
        """Names of the modules that were denied so far."""
        return self._nodes_with_action_type(_ModuleProviderAction.DENY)

    def get_rdeps(self, module_name):
        """Names of the modules that import a module. ValueError when it is not among them."""
        return list(self.dependency_graph.predecessors(module_name))

    def all_paths(self, src, dst):
        """The ways from one module to another in the language of dot."""
        return self.dependency_graph.all_paths(src, dst)

