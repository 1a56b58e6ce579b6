"""Archives of code and data: `PackageExporter` writes Python sources, pickles and resources with what they need into one file, and
`PackageImporter` imports from it as if each file were a Python of its own. PyTorch reads and writes the same files, except for compiled scripts
inside of one."""

from . import analyze
from .file_structure_representation import Directory
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup
from .importer import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer
from .is_from_package import is_from_package
from .package_exporter import EmptyMatchError, PackageExporter, PackagingError
from .package_importer import PackageImporter

__all__ = [
    "Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "PackageExporter", "PackageImporter",
    "PackagingError", "analyze", "find_files_source_depends_on", "is_from_package", "sys_importer",
]  # fmt: skip
