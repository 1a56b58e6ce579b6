"""What the processor can do, as the kernel tells it (/proc/cpuinfo, /sys/devices/system/cpu)."""

import functools
import os
import platform
import re
import types
from pathlib import Path

__all__ = ["get_capabilities"]

# Name in get_capabilities() -> flag in /proc/cpuinfo.
_X86 = {
    name: name for name in (
        "avx avx2 avx10_1 avx10_2 avx_vnni avx512_vbmi2 bmi2 clflush avx512_bf16 avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx512_bitalg avx512_vpopcntdq avx512_vnni amx_bf16 "
        "amx_tile amx_int8 amx_fp16 fma4 f16c popcnt aes clflushopt clwb sse sse2 ssse3 sse4_1 sse4_2 sse4a avx_vnni_int8 avx_vnni_int16 avx_ne_convert"
    ).split()
} | {
    "sse3": "pni", "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq", "avx512_bw": "avx512bw", "avx512_vl": "avx512vl",
    "avx512_ifma": "avx512ifma", "avx512_vbmi": "avx512vbmi", "fma3": "fma",
    "bmi": "bmi1", "lzcnt": "abm", "sha": "sha_ni",
}  # fmt: skip
_ARM64 = {
    "neon": "asimd", "fp16_arith": "asimdhp", "bf16": "bf16", "i8mm": "i8mm", "dot": "asimddp", "sve": "sve", "sve2": "sve2", "sve_bf16": "svebf16",
    "sme": "sme", "sme2": "sme2", "atomics": "atomics", "fhm": "asimdfhm", "rdm": "asimdrdm", "crc32": "crc32", "aes": "aes", "sha1": "sha1",
    "sha2": "sha2", "pmull": "pmull",
}  # fmt: skip
_FLAGS = {"x86_64": _X86, "aarch64": _ARM64}
_SIZES = {"K": 1 << 10, "M": 1 << 20}


def _lines(text, key):
    return [line.partition(":")[2].strip() for line in text.splitlines() if line.partition(":")[0].strip() == key]


def _cache(level, kind):
    """Bytes of a cache of the first processor; 0 where the kernel does not tell."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (folder / "level").read_text().strip() == str(level) and (folder / "type").read_text().strip() in (kind, "Unified"):
            number, unit = re.fullmatch(r"(\d+)([KM]?)", (folder / "size").read_text().strip()).groups()
            return int(number) * _SIZES.get(unit, 1)
    return 0


@functools.cache
def get_capabilities():
    """What the processor can do: a mapping that cannot be changed, of names as "avx2", "avx512_bf16", "sve" to bool; "architecture" ("x86_64",
    "aarch64"), "cpu_name", "num_sockets", "num_physical_cores", "num_logical_cores", and "l1d_cache_size", "l2_cache_size" in bytes.

    It tells of the processor, not of what Cresset uses of it: `CRESSET_ISA` may lower that.
    """
    architecture = platform.machine()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    flags = set((_lines(text, "flags") or _lines(text, "Features") or [""])[0].split())
    found = {name: flag in flags for name, flag in _FLAGS.get(architecture, {}).items()}
    logical = os.cpu_count() or 1
    cores = set(zip(_lines(text, "physical id"), _lines(text, "core id")))
    found |= {
        "architecture": architecture, "cpu_name": (_lines(text, "model name") or [""])[0], "num_sockets": len(set(_lines(text, "physical id"))) or 1,
        "num_physical_cores": len(cores) or logical, "num_logical_cores": logical, "l1d_cache_size": _cache(1, "Data"), "l2_cache_size": _cache(2, "Data"),
    }  # fmt: skip
    return types.MappingProxyType(found)
