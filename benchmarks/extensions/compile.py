"""Processor seconds that load() takes to build an extension of one file, beside a module that includes pybind11 alone.

    python benchmarks/extensions/compile.py [--rounds N] [--headers FOLDER]

Every round builds each source once, so that other load on the machine falls on all; a figure is the median over the rounds, and
includes ninja and the linker. `--headers` is a folder of other headers that are found first, for a comparison in the same run.
"""

import argparse
import resource
import statistics
import tempfile

from cresset.utils import cpp_extension

OPERATOR = """
#include <cresset/extension.h>
using cresset::Tensor;
static Tensor scaled(const Tensor& a, const Tensor& b, double by) { return a + b * by; }
CRESSET_LIBRARY(NAMESPACE, m) { m.def("scaled(Tensor a, Tensor b, float by) -> Tensor"); }
CRESSET_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("scaled", &scaled); }
"""
MODULE = """
#include <torch/extension.h>
static torch::Tensor scaled(const torch::Tensor& a, const torch::Tensor& b, double by) { return a + b * by; }
static torch::Tensor positive(const torch::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "positive: a contiguous tensor was required.");
  torch::Tensor out = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "positive", [&] {
    const auto* p = x.data_ptr<scalar_t>();
    auto* q = out.data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) q[i] = p[i] > 0 ? p[i] : scalar_t(0);
  });
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled).def("positive", &positive); }
"""
PYBIND11 = """
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
static double scaled(double a, double b, double by) { return a + b * by; }
static double positive(double x) { return x > 0 ? x : 0; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled).def("positive", &positive); }
"""
# name -> source, budget in seconds
CASES = {"cresset/extension.h": (OPERATOR, 3), "torch/extension.h": (MODULE, 6), "pybind11 alone": (PYBIND11, None)}


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def build(source, name, folders):
    with tempfile.TemporaryDirectory() as folder:
        start = processor_time()
        cpp_extension.load_inline(
            name, source.replace("NAMESPACE", name), extra_include_paths=folders, build_directory=folder,
            is_python_module="PYBIND11_MODULE" in source, no_implicit_headers=True,
        )  # fmt: skip
        return processor_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--headers")
    args = parser.parse_args()
    variants = {"": []} | ({f", {args.headers}": [args.headers]} if args.headers else {})
    seconds = {}
    for turn in range(args.rounds):
        for i, (name, (source, budget)) in enumerate(CASES.items()):
            for j, (variant, folders) in enumerate(variants.items()):
                seconds.setdefault((name + variant, budget), []).append(build(source, f"timed_{turn}_{i}_{j}", folders))
    for (name, budget), values in seconds.items():
        median = statistics.median(values)
        verdict = f"  budget {budget} s  {'met' if median <= budget else 'MISSED'}" if budget else ""
        print(f"{name:40s} {median:6.2f} s{verdict}")


if __name__ == "__main__":
    main()
