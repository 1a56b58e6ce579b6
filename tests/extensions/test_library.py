"""Facts about the built library that its users depend on."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/dev/lib/libcresset.so"


def read(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def test_thread_local_data_fits_the_static_block():
    # Hot thread-local state uses the initial-exec model. A library that is loaded later (by Python) must then fit into
    # what the C library keeps free: 512 bytes for everyone.
    (line,) = [row for row in read("readelf", "-lW", str(LIBRARY)).splitlines() if row.split()[:1] == ["TLS"]]
    assert int(line.split()[5], 16) <= 512


def test_library_does_not_need_python():
    needed = re.findall(r"NEEDED.*\[(.+)\]", read("readelf", "-d", str(LIBRARY)))
    assert needed
    assert [name for name in needed if "python" in name] == []


def exported(library):
    return {row.split(" ", 2)[2] for row in read("nm", "-D", "--defined-only", str(library)).splitlines()}


def test_only_own_names_and_the_standard_library_are_exported():
    # Mangled names: of this project, or of instantiations of standard templates.
    foreign = sorted(
        n for n in exported(LIBRARY) if "cresset" not in n and not re.match(r"_Z\w*(St|Sa|Ss|9__gnu_cxx)", n)
    )
    assert foreign == []


def test_extension_module_finds_all_its_symbols():
    (module,) = (ROOT / "python/cresset").glob("_C*.so")
    rows = [row.split() for row in read("nm", "-D", "--undefined-only", str(module)).splitlines()]
    needed = {name for kind, name in rows if kind == "U" and "7cresset" in name}
    assert len(needed) > 50
    assert sorted(needed - exported(LIBRARY)) == []


def test_no_path_of_the_build_machine_is_inside():
    assert str(ROOT) not in read("strings", "-a", str(LIBRARY.resolve()))
