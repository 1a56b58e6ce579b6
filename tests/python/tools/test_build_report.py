"""tools/compile_recorder and tools/build_report: what a compilation cost, by room, beside the recorded report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
RECORDER = TOOLS / "compile_recorder"
WARNING = "a.cpp:4:24: warning: unused variable ‘q’ [-Wunused-variable]\n    4 | int q;\n      |     ^\n"
# From GCC 12, shortened.
REPORT = """
Time variable                                   usr           sys          wall           GGC
 phase setup                        :   0.00 (  0%)   0.00 (  0%)   0.01 (  1%)  1448k (  2%)
 phase parsing                      :   0.29 ( 62%)   0.47 ( 80%)   0.76 ( 72%)    46M ( 73%)
 phase lang. deferred               :   0.06 ( 13%)   0.06 ( 10%)   0.12 ( 11%)  9711k ( 15%)
 phase opt and generate             :   0.12 ( 26%)   0.06 ( 10%)   0.17 ( 16%)  6202k ( 10%)
 |name lookup                       :   0.08 ( 17%)   0.10 ( 17%)   0.21 ( 20%)  2731k (  4%)
 df use-def / def-use chains        :   0.01 (  2%)   0.00 (  0%)   0.00 (  0%)     0  (  0%)
 parser inl. func. body             :   0.04 (  9%)   0.03 (  5%)   0.07 (  7%)  1966k (  3%)
 template instantiation             :   0.15 ( 32%)   0.12 ( 20%)   0.30 ( 28%)    21M ( 34%)
 constraint satisfaction            :   0.00 (  0%)   0.01 (  2%)   0.01 (  1%)   339k (  1%)
 TOTAL                              :   0.47          0.59          1.06           63M
"""
PHASES = {"phase parsing": 0.29, "phase lang. deferred": 0.06, "phase opt and generate": 0.12,
          "template instantiation": 0.15}
SORT = "src/backends/cpu/CMakeFiles/cresset_cpu_avx2.dir/sort.cpp.o"
UNITY = "src/ir/CMakeFiles/cresset_ir.dir/Unity/unity_3_cxx.cxx.o"
TEXT = "src/ir/CMakeFiles/cresset_ir.dir/text.cpp.o"


@pytest.fixture(scope="module")
def report(tool):
    return tool("build_report")


def records(**seconds):
    units = {"sort": SORT, "unity": UNITY, "text": TEXT}
    return {units[name]: {"object": units[name], "seconds": value, "status": 0} for name, value in seconds.items()}


def test_time_report_is_taken_out_of_the_messages(tool):
    messages, phases = tool("compile_recorder").split_report(WARNING + REPORT + "as: later message\n")
    assert messages == WARNING + "as: later message\n"
    others = {"|name lookup": 0.08, "df use-def / def-use chains": 0.01, "parser inl. func. body": 0.04}
    assert phases == PHASES | others


def test_messages_without_a_report_stay_as_they_are(tool):
    assert tool("compile_recorder").split_report("\n" + WARNING + "\n") == ("\n" + WARNING + "\n", {})


def launch(folder, script, *options):
    """Runs a shell script as the compiler behind the launcher; gives the ended process and the record."""
    compiler = folder / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    command = [sys.executable, "-SE", str(RECORDER), *options, str(folder / "records"), str(compiler)]
    done = subprocess.run([*command, "-x", "c++-header", "-o", "a.gch", "-c", "a.h"], capture_output=True, text=True,
                          env={**os.environ, "REPORT": REPORT, "WARNING": WARNING})
    return done, json.loads((folder / "records").read_text())


def test_launcher_records_and_passes_everything_through(tmp_path):
    busy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
    done, record = launch(tmp_path, f'echo out; printf %s "$WARNING" >&2; {busy}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", WARNING)
    assert (record["object"], record["status"], "phases" in record) == ("a.gch", 0, False)
    assert 0 < record["seconds"] < 5 and record["megabytes"] >= 1


def test_launcher_asks_for_phases(tmp_path):
    script = 'printf %s "$WARNING" >&2; [ "$7" = -ftime-report ] && printf %s "$REPORT" >&2; exit 3'
    done, record = launch(tmp_path, script, "--phases")
    assert (done.returncode, done.stderr) == (3, WARNING)
    assert record["status"] == 3 and PHASES.items() <= record["phases"].items()


def test_launcher_serves_a_compiler_without_time_reports(tmp_path):
    script = 'for a; do [ $a = -ftime-report ] && { echo "unknown option $a" >&2; exit 1; }; done; echo ok >&2'
    done, record = launch(tmp_path, script, "--phases")
    assert (done.returncode, done.stderr) == (0, "ok\n")
    assert record["status"] == 0 and "phases" not in record


def test_launcher_without_a_compiler(tmp_path):
    command = [sys.executable, "-SE", str(RECORDER), str(tmp_path / "records"), str(tmp_path / "none"), "-c", "a.cpp"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 127 and "none: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("unit", "room"),
    [
        (SORT, "backends/cpu avx2"),
        (UNITY, "ir"),
        ("src/backends/cpu/CMakeFiles/cresset_cpu.dir/sort.cpp.o", "backends/cpu"),
        ("src/ops/CMakeFiles/cresset_ops.dir/cmake_pch.hxx.gch", "ops"),
        ("src/ops/CMakeFiles/cresset_ops.dir/__/__/gen/src/ops/functions_arith.cpp.o", "ops"),
        ("src/python/CMakeFiles/_C.dir/arg_parser.cpp.o", "python"),
        ("src/cli/CMakeFiles/cresset_cli.dir/main.cpp.o", "cli"),
        ("tests/cpp/CMakeFiles/cresset_test_ir.dir/ir/pass_test.cpp.o", "tests/cpp ir"),
        ("benchmarks/CMakeFiles/dispatch_bench.dir/dispatch/dispatch_bench.cpp.o", "benchmarks"),
        ("CMakeFiles/cresset.dir/version.cpp.o", "cresset"),
        ("conftest.o", "other"),
    ],
)
def test_room(report, unit, room):
    assert report.room(unit) == room


def test_records_of_failed_compilations_do_not_count(report, tmp_path):
    lines = [{"object": "a.o", "seconds": 1, "status": 0}, {"object": "b.o", "seconds": 2, "status": 1},
             {"object": "a.o", "seconds": 3, "status": 0}]
    (tmp_path / "records").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert {unit: record["seconds"] for unit, record in report.read_records(tmp_path / "records").items()} == {"a.o": 3}


def test_rooms_sum_their_units(report):
    table = report.rooms(records(sort=3, unity=4, text=1), {}, 10)
    assert list(table) == ["ir", "backends/cpu avx2", report.REST]
    assert table["ir"] == {"seconds": 5, "units": 2, "share": 0.5}
    assert table[report.REST] == {"seconds": 2, "units": 0, "share": 0.2}


def test_phases_divide_the_seconds_of_the_build_without_reports(report):
    phases = {"phase parsing": 2.0, "phase lang. deferred": 2.0, "phase opt and generate": 4.0,
              "template instantiation": 3.0}
    table = report.rooms(records(sort=4, unity=4, text=1), {SORT: {"seconds": 9, "phases": phases}}, 10)
    line = table["backends/cpu avx2"]
    assert [line[name] for name in report.COLUMNS] == [0.5, 1.5, 2.0]
    assert "templates" not in table["ir"]
    lines = report.room_lines(table, 10)
    assert lines[0].split() == ["room", "processor", "share", "front", "end", "templates", "optimiser", "units"]
    assert lines[2].split() == "backends/cpu avx2 4.0 s 40.0 % 0.5 s 1.5 s 2.0 s 1".split()
    assert lines[-1].split() == "all 10.0 s 100.0 % 0.5 s 1.5 s 2.0 s 3".split()


def test_table_without_phases_has_no_columns_for_them(report):
    lines = report.room_lines(report.rooms(records(sort=3, unity=4, text=1), {}, 10), 10)
    assert lines[0].split() == ["room", "processor", "share", "units"]
    assert lines[1].split() == "ir 5.0 s 50.0 % 2".split()


def test_dearest_units_name_their_sources(report, tmp_path):
    file = tmp_path / UNITY.removesuffix(".o")
    file.parent.mkdir(parents=True)
    file.write_text('/* generated by CMake */\n\n#include "/x/symbol.cpp"\n\n#include "/x/tracer.cpp"\n')
    units = {SORT: 3.0, UNITY: 4.0, TEXT: 1.0}
    assert report.dearest_lines(units, tmp_path, 2) == [
        "     4.0 s  ir unity_3: symbol.cpp tracer.cpp", "     3.0 s  backends/cpu avx2 sort.cpp"]


def whole(report, cores=2, **seconds):
    found = records(**seconds)
    processor = sum(seconds.values())
    return {"machine": "M", "cores": cores, "date": "2026-01-02", "wall": processor / 2, "processor": processor,
            "rooms": report.rooms(found, {}, processor),
            "units": {unit: record["seconds"] for unit, record in found.items()}}


def test_comparison_names_rooms_and_units_that_grew(report):
    then, now = whole(report, sort=2, unity=4, text=1), whole(report, sort=4, unity=4.4, text=1.4)
    del then["units"][UNITY]
    lines = report.comparison(now, then, "release")
    assert lines[0] == "now / benchmarks/build/release.json of 2026-01-02:"
    cells = [line.split() for line in lines]
    assert "backends/cpu avx2 2.00 2.0 -> 4.0 s".split() in cells
    assert "ir 1.16 5.0 -> 5.8 s".split() in cells
    assert "processor 1.40 7 -> 10 s".split() in cells
    # text.cpp grew by 40 %, but by less than the clock tells
    assert lines[-2:] == ["  appeared: 4.4 s  ir unity_3", "  grew: 2.0 -> 4.0 s  backends/cpu avx2 sort.cpp"]


def test_comparison_with_another_machine_is_one_of_shares(report):
    then, now = whole(report, cores=8, sort=2, unity=1, text=1), whole(report, sort=4, unity=2, text=2)
    text = "\n".join(report.comparison(now, then, "dev"))
    assert "recorded on M, 8 cores;\n" in text
    assert "  times of other machines compare only as shares, so they are taken 2.00 times\n" in text
    assert "backends/cpu avx2           1.00   4.0 -> 4.0 s" in text
    assert "wall" not in text and "grew" not in text


def test_comparison_without_a_recorded_report_is_one_line(report):
    (line,) = report.comparison(whole(report, sort=1, unity=1, text=1), None, "dev")
    assert line == "no recorded report to compare with: benchmarks/build/dev.json does not exist (--record writes it)"


@pytest.mark.parametrize(("value", "verdict"), [(480.0, "met"), (480.1, "MISSED"), (None, "MISSED")])
def test_budget(report, value, verdict):
    assert report.budget_line("clean build", value, 480, "s").split()[-1] == verdict
    assert report.is_met(value, 480) == (verdict == "met")
