"""What tools/measure_build and tools/build_progress know about recorded compilations: rooms, tables, comparison.

Nothing here builds or measures. A record is a line that tools/compile_recorder wrote; a report is what
benchmarks/build/<preset>.json holds.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "benchmarks/build"
GREW = 1.2  # a unit that takes so many times as long is named,
GREW_SECONDS = 0.5  # when it is also so much more: below that the clock is too coarse
REST = "links, generators, cmake"
COLUMNS = ("front end", "templates", "optimiser")


def program(name: str) -> str:
    """`name` from PATH when it starts, otherwise Debian's own; a version manager's shim may be empty."""
    found = shutil.which(name)
    if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
        return found
    return f"/usr/bin/{name}"


def room(unit: str) -> str:
    """The layer of an object file, from the folder and the target that CMake puts in its path."""
    match = re.match(r"(?:(.*)/)?CMakeFiles/([^/]+)\.dir/", unit)
    if not match:
        return "other"
    folder, target = (match[1] or "").removeprefix("src/"), match[2].removeprefix("cresset_")
    last = folder.rpartition("/")[2]
    for prefix in (f"{last}_", "test_"):
        if folder and target.startswith(prefix):
            return f"{folder} {target.removeprefix(prefix)}"
    return folder or target


def read_records(file: Path) -> dict[str, dict]:
    """{object: record} of the compilations that succeeded; the last one counts where one was compiled again."""
    records = [json.loads(line) for line in file.read_text().splitlines()]
    return {record["object"]: record for record in records if record["status"] == 0}


def columns(record: dict) -> tuple[float, float, float] | None:
    """Seconds of GCC's parser without instantiation, of instantiation, of the optimiser; None without a time report."""
    phases = record.get("phases")
    if not phases:
        return None
    templates = phases.get("template instantiation", 0.0)
    language = sum(phases.get(f"phase {name}", 0.0) for name in ("setup", "parsing", "lang. deferred"))
    return max(language - templates, 0.0), templates, phases.get("phase opt and generate", 0.0)


def split_by_phases(seconds: float, record: dict | None) -> tuple[float, float, float] | None:
    """The seconds of a compilation, divided as those of the same one with a time report, which takes longer."""
    parts = columns(record) if record else None
    if not parts or not sum(parts):
        return None
    return tuple(seconds * part / sum(parts) for part in parts)


def rooms(records: dict[str, dict], phases: dict[str, dict], processor: float) -> dict[str, dict]:
    """{room: seconds, share of `processor`, units, and columns where there are phases}, the dearest room first."""
    table: dict[str, dict] = {}
    for unit, record in records.items():
        line = table.setdefault(room(unit), {"seconds": 0.0, "units": 0})
        line["seconds"] += record["seconds"]
        line["units"] += 1
        parts = split_by_phases(record["seconds"], phases.get(unit))
        for name, part in zip(COLUMNS, parts or ()):
            line[name] = line.get(name, 0.0) + part
    rest = processor - sum(line["seconds"] for line in table.values())
    table[REST] = {"seconds": max(rest, 0.0), "units": 0}
    for line in table.values():
        line["share"] = line["seconds"] / processor if processor else 0.0
        line |= {name: round(value, 3) for name, value in line.items() if name != "units"}
    return dict(sorted(table.items(), key=lambda item: -item[1]["seconds"]))


def unity_sources(build: Path, unit: str) -> list[str]:
    """The names of the sources that CMake merged into a unity unit; none for any other unit."""
    source = build / unit.removesuffix(".o")
    if "/Unity/" not in unit or not source.is_file():
        return []
    return [Path(name).name for name in re.findall(r'^#include "([^"]+)"', source.read_text(), re.M)]


def short_name(unit: str) -> str:
    """`backends/cpu sort.cpp`: room and file of an object."""
    inside = unit.partition(".dir/")[2] or unit
    return f"{room(unit)} {inside.removesuffix('.o').replace('Unity/', '').replace('_cxx.cxx', '')}"


def recorded(preset: str) -> dict | None:
    file = RECORDED / f"{preset}.json"
    return json.loads(file.read_text()) if file.is_file() else None


def room_lines(table: dict[str, dict], total: float) -> list[str]:
    phased = any(COLUMNS[0] in line for line in table.values())
    heading = f"{'room':26}{'processor':>10}{'share':>8}" + "".join(f"{name:>11}" for name in COLUMNS if phased)
    lines = [f"{heading}{'units':>7}"]
    whole = {key: sum(line.get(key, 0) for line in table.values()) for key in (*COLUMNS, "units")}
    for name, line in [*table.items(), ("all", whole | {"seconds": total, "share": 1.0})]:
        cells = "".join(f"{line[key]:9.1f} s" if key in line else f"{'':11}" for key in COLUMNS if phased)
        cost = f"{line['seconds']:8.1f} s{100 * line['share']:6.1f} %"
        lines.append(f"{name:26}{cost}{cells}{line['units'] or '':>7}".rstrip())
    return lines


def dearest_lines(units: dict[str, float], build: Path, count: int = 10) -> list[str]:
    lines = []
    for unit, seconds in sorted(units.items(), key=lambda item: -item[1])[:count]:
        sources = unity_sources(build, unit)
        lines.append(f"{seconds:8.1f} s  {short_name(unit)}" + (f": {' '.join(sources)}" if sources else ""))
    return lines


def same_machine(now: dict, then: dict) -> bool:
    return (now["machine"], now["cores"]) == (then["machine"], then["cores"])


def comparison(now: dict, then: dict | None, preset: str) -> list[str]:
    """Each room now / recorded, and the units that appeared or grew."""
    place = f"benchmarks/build/{preset}.json"
    if then is None:
        return [f"no recorded report to compare with: {place} does not exist (--record writes it)"]
    scale, same = 1.0, same_machine(now, then)
    lines = [f"now / {place} of {then['date']}:"]
    if not same:
        scale = now["processor"] / then["processor"]
        lines += [f"  recorded on {then['machine']}, {then['cores']} cores;",
                  f"  times of other machines compare only as shares, so they are taken {scale:.2f} times"]
    for name in ("wall", "processor"):
        if same:
            lines.append(f"  {name:26}{now[name] / then[name]:6.2f}   {then[name]:.0f} -> {now[name]:.0f} s")
    for name, line in now["rooms"].items():
        old = then["rooms"].get(name, {}).get("seconds", 0.0) * scale
        ratio = f"{line['seconds'] / old:6.2f}" if old else "   new"
        lines.append(f"  {name:26}{ratio}   {old:.1f} -> {line['seconds']:.1f} s")
    lines += [f"  {name:26}  gone" for name in then["rooms"] if name not in now["rooms"]]
    return lines + unit_lines(now["units"], {unit: seconds * scale for unit, seconds in then["units"].items()})


def unit_lines(now: dict[str, float], then: dict[str, float]) -> list[str]:
    appeared = [f"  appeared: {seconds:.1f} s  {short_name(unit)}" for unit, seconds in now.items() if unit not in then]
    grew = [f"  grew: {then[unit]:.1f} -> {seconds:.1f} s  {short_name(unit)}" for unit, seconds in now.items()
            if unit in then and seconds > GREW * then[unit] and seconds > then[unit] + GREW_SECONDS]
    return appeared + grew


def budget_line(what: str, value: float | None, budget: float, unit: str) -> str:
    """`value` is None where the thing to measure failed."""
    shown = "  failed" if value is None else f"{value:8.1f}"
    return f"{what:44}{shown} {unit:3} budget {budget:6.1f} {unit:3} {'met' if is_met(value, budget) else 'MISSED'}"


def is_met(value: float | None, budget: float) -> bool:
    return value is not None and value <= budget


def median_seconds(units: dict[str, float]) -> float:
    return statistics.median(units.values()) if units else 1.0
