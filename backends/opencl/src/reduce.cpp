// Sums, means, extremes, variances, norms.
#include "reduce.h"

#include <cresset/cresset.h>

#include <algorithm>
#include <cmath>

#include "backend.h"
#include "call.h"
#include "programs.h"
#include "strided.h"

namespace cresset_opencl {
namespace {

using cresset::kBool;
using cresset::kByte;
using cresset::kLong;

constexpr int64_t kChunk = 4096;        // elements that one work group takes at least
constexpr int64_t kSerial = 256;        // up to so many elements one work item does a result alone
constexpr int64_t kManyResults = 2048;  // from here on one work item a result is parallel enough

// The walks of a reduction: over results, and over the elements of each.
bool plan(const Tensor& x, const std::vector<int64_t>& dims, Walk& results, Walk& elements) {
  std::vector<int64_t> kept, kept_strides, reduced, reduced_strides;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool gone = std::find(dims.begin(), dims.end(), d) != dims.end();
    (gone ? reduced : kept).push_back(x.size(d));
    (gone ? reduced_strides : kept_strides).push_back(x.stride(d));
  }
  const auto row_major = [](const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    return strides;
  };
  return make_walk_of_strides(kept, {row_major(kept), kept_strides}, results) &&
         make_walk_of_strides(reduced, {row_major(reduced), reduced_strides}, elements);
}

// How a processor takes sixteen elements at a time: those of one result, or of neighbouring results.
enum class Vectors : uint8_t { None, Runs, Strips };
constexpr int64_t kLanes = 16;
struct VectorPlan {
  Vectors kind = Vectors::None;
  int64_t run = 0;  // of elements, or of results, that lie side by side
};
int64_t run_of(const Walk& w) {
  const auto last = static_cast<std::size_t>(std::max(w.ndim, 1) - 1);
  return w.ndim > 0 && w.strides[0][last] == 1 && w.strides[1][last] == 1 ? w.sizes[last] : 0;
}
VectorPlan vectors_for(const ClDevice& d, const Walk& results, const Walk& elements) {
  if (!d.facts().is_cpu) return {};
  if (const int64_t run = run_of(elements); run >= kLanes) return {Vectors::Runs, run};
  if (const int64_t run = run_of(results); run >= kLanes && elements.n > 1) return {Vectors::Strips, run};
  return {};
}

// sizeof(acc) of kernels/reduce.cl
std::size_t accumulator_bytes(Compute c) { return c == Compute::Float || c == Compute::Int ? 16 : 24; }

}  // namespace

bool reduce(const Tensor& x, std::vector<int64_t> dims, const Reduction& how, const Tensor& out, const Tensor& second) {
  if (out.numel() == 0) return true;
  if (dims.empty())
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  for (int64_t& d : dims) d = wrapped(d, x.dim());
  Walk results, elements;
  if (!plan(x, dims, results, elements)) return false;
  const bool wide = results.wide || elements.wide;
  const int64_t count = elements.n;
  const bool serial = count <= kSerial || results.n >= kManyResults;
  ClDevice& d = device_of(out);
  const VectorPlan vectors = vectors_for(d, results, elements);
  const int64_t items = vectors.kind == Vectors::Strips ? results.n / vectors.run * ((vectors.run + kLanes - 1) / kLanes) : results.n;
  const int64_t workers = vectors.kind == Vectors::None ? 256 : 4 * static_cast<int64_t>(d.facts().compute_units);
  const bool alone = serial && vectors.kind == Vectors::None;
  const int64_t chunks = alone ? 1 : std::clamp<int64_t>(count / kChunk, 1, std::max<int64_t>(1, workers / items));
  Tensor partial;
  if (chunks > 1)
    partial = cresset::empty({results.n * chunks * static_cast<int64_t>(accumulator_bytes(how.accumulator))}, out.options().dtype(kByte));

  const std::string types = std::string(" -DX=") + type_letter(x.scalar_type()) + " -DR=" + type_letter(out.scalar_type()) +
                            " -DA=" + compute_name(how.accumulator) +
                            (second.defined() ? std::string(" -DTWO=1 -DR2=") + type_letter(second.scalar_type()) : "");
  const bool long_numbers = how.accumulator == Compute::Long || how.accumulator == Compute::Double;
  const std::string vector_types = vectors.kind == Vectors::None
                                       ? ""
                                       : std::string(" -DVECTORS=1 -DRUNS=") + (vectors.kind == Vectors::Runs ? "1" : "0") +
                                             (long_numbers ? " -DWHOLE=long -DWHOLE_V=long16" : " -DWHOLE=int -DWHOLE_V=int16");
  const std::string key =
      "reduce " + how.defines + types + vector_types + " " + walk_key(results) + " " + walk_key(elements) + (wide ? " wide " : " ");
  const auto kernel = [&](const char* name) {
    return d.programs().kernel(key, name, [&] {
      const bool scalar = vectors.kind == Vectors::None;
      return ProgramText{std::string(kernel_file("types")) + (scalar ? "" : kernel_file("vectors")) + index_source(wide) +
                             walk_source(results, "k") + walk_source(elements, "r") + kernel_file("reduce") +
                             (scalar ? "" : kernel_file("reduce_vectors")),
                         how.defines + types + vector_types};
    });
  };
  const auto arguments = [&](Launch& launch) {
    launch.tensor(x).tensor(out).tensor(second).tensor(partial);
    add_walk(launch, results, wide);
    add_walk(launch, elements, wide);
    launch.value(static_cast<cl_ulong>(chunks)).number(how.accumulator, how.parameter);
  };
  if (vectors.kind != Vectors::None) {
    Launch launch(d, queue_for(out), kernel(vectors.kind == Vectors::Runs ? "reduce_runs" : "reduce_strips"));
    arguments(launch);
    launch.value(static_cast<cl_ulong>(vectors.run)).run_apart(static_cast<std::size_t>(items * chunks));
  } else if (serial) {
    Launch launch(d, queue_for(out), kernel("reduce_items"));
    arguments(launch);
    launch.run(static_cast<std::size_t>(results.n));
  } else {
    const std::size_t group = group_size(d, 64);
    Launch launch(d, queue_for(out), kernel("reduce_groups"));
    arguments(launch);
    launch.local(group * accumulator_bytes(how.accumulator));
    launch.run_groups({static_cast<std::size_t>(results.n * chunks), 1, 1}, {group, 1, 1});
  }
  if (chunks > 1) {
    Launch launch(d, queue_for(out), kernel("reduce_partials"));
    arguments(launch);
    launch.run(static_cast<std::size_t>(results.n));
  }
  return true;
}

namespace {

// The accumulator for sums into a type: whole numbers are summed in 64 bits.
Compute sum_type(ScalarType t) {
  const Compute c = compute_of(t);
  return c == Compute::Int ? Compute::Long : c;
}
bool is_floating(ScalarType t) { return compute_of(t) == Compute::Float || compute_of(t) == Compute::Double; }
// A sum of x into out's type without rounding x on the way.
bool sums_directly(const Call& c) { return is_floating(c.result().scalar_type()) || !is_floating(c.tensor(0).scalar_type()); }

std::vector<int64_t> one(const Call& c, int i) { return c.none(i) ? std::vector<int64_t>() : std::vector<int64_t>{c.integer(i)}; }

bool sum(Call& c) {
  return sums_directly(c) && reduce(c.tensor(0), c.ints(1), {"-DOP_SUM=1", sum_type(c.result().scalar_type())}, c.result());
}
bool mean(Call& c) {
  return sums_directly(c) && reduce(c.tensor(0), c.ints(1), {"-DOP_MEAN=1", sum_type(c.result().scalar_type())}, c.result());
}
bool prod_dim(Call& c) {
  return sums_directly(c) && reduce(c.tensor(0), one(c, 1), {"-DOP_PROD=1", sum_type(c.result().scalar_type())}, c.result());
}
bool prod_all(Call& c) {
  return sums_directly(c) && reduce(c.tensor(0), {}, {"-DOP_PROD=1", sum_type(c.result().scalar_type())}, c.result());
}

template <bool Max>
Reduction extreme(const Tensor& x, const char* more = "") {
  return {std::string(Max ? "-DOP_MAX=1" : "-DOP_MIN=1") + more, compute_of(x.scalar_type())};
}
template <bool Max>
bool extreme_dims(Call& c) {
  return c.tensor(0).numel() > 0 && reduce(c.tensor(0), c.ints(1), extreme<Max>(c.tensor(0)), c.result());
}
template <bool Max>
bool extreme_all(Call& c) {
  return c.tensor(0).numel() > 0 && reduce(c.tensor(0), {}, extreme<Max>(c.tensor(0)), c.result());
}
template <bool Max>
bool extreme_with_index(Call& c) {
  return c.tensor(0).numel() > 0 && reduce(c.tensor(0), one(c, 1), extreme<Max>(c.tensor(0)), c.result(0), c.result(1));
}
template <bool Max>
bool extreme_index(Call& c) {
  return c.tensor(0).numel() > 0 && reduce(c.tensor(0), one(c, 1), extreme<Max>(c.tensor(0), " -DARG=1"), c.result());
}

template <bool Any>
Reduction logical() {
  return {Any ? "-DOP_ANY=1" : "-DOP_ALL=1", Compute::Int};
}
template <bool Any>
bool logical_all(Call& c) {
  return reduce(c.tensor(0), {}, logical<Any>(), c.result());
}
template <bool Any>
bool logical_dim(Call& c) {
  return reduce(c.tensor(0), one(c, 1), logical<Any>(), c.result());
}
template <bool Any>
bool logical_dims(Call& c) {
  if (!c.none(1) && c.ints(1).empty()) return false;  // no dimension at all: elements keep their places
  return reduce(c.tensor(0), c.ints(1), logical<Any>(), c.result());
}

template <bool Root>
bool variance(Call& c) {
  const Tensor& x = c.tensor(0);
  const double correction = c.none(2) ? 1 : c.scalar(2).toDouble();
  // The mean beside it is a sum of its own: that of the update is NaN for infinities, and 0 for nothing.
  return reduce(x, c.ints(1), {std::string("-DOP_VAR=1") + (Root ? " -DROOT=1" : ""), compute_of(x.scalar_type()), correction},
                c.result(0)) &&
         (c.count() < 2 || reduce(x, c.ints(1), {"-DOP_MEAN=1", compute_of(x.scalar_type())}, c.result(1)));
}

bool logsumexp(Call& c) {
  return is_floating(c.tensor(0).scalar_type()) &&
         reduce(c.tensor(0), c.ints(1), {"-DOP_LOGSUMEXP=1", compute_of(c.result().scalar_type())}, c.result());
}

bool vector_norm(Call& c) {
  const double p = c.scalar(1).toDouble();
  const char* kind = p == 0          ? "NORM_0"
                     : p == 1        ? "NORM_1"
                     : p == 2        ? "NORM_2"
                     : std::isinf(p) ? (p > 0 ? "NORM_MAX" : "NORM_MIN")
                                     : "NORM_P";
  if (!is_floating(c.tensor(0).scalar_type()) || c.tensor(0).numel() == 0) return false;
  return reduce(c.tensor(0), c.ints(2), {std::string("-DOP_NORM=1 -D") + kind + "=1", compute_of(c.result().scalar_type()), p}, c.result());
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "sum.dim_IntList", "sum.IntList_out", &sum);
  give(m, "mean.dim", "mean.out", &mean);
  give(m, "prod", "prod.out", &prod_all);
  give(m, "prod.dim_int", "prod.int_out", &prod_dim);
  give(m, "amax", "amax.out", &extreme_dims<true>);
  give(m, "amin", "amin.out", &extreme_dims<false>);
  give(m, "max", "max.unary_out", &extreme_all<true>);
  give(m, "min", "min.unary_out", &extreme_all<false>);
  give(m, "max.dim", "max.dim_max", &extreme_with_index<true>);
  give(m, "min.dim", "min.dim_min", &extreme_with_index<false>);
  give(m, "argmax", "argmax.out", &extreme_index<true>);
  give(m, "argmin", "argmin.out", &extreme_index<false>);
  give(m, "any", "any.all_out", &logical_all<true>);
  give(m, "all", "all.all_out", &logical_all<false>);
  give(m, "any.dim", "any.out", &logical_dim<true>);
  give(m, "all.dim", "all.out", &logical_dim<false>);
  give(m, "any.dims", "any.dims_out", &logical_dims<true>);
  give(m, "all.dims", "all.dims_out", &logical_dims<false>);
  give(m, "var.correction", "var.correction_out", &variance<false>);
  give(m, "std.correction", "std.correction_out", &variance<true>);
  give(m, "var_mean.correction", nullptr, &variance<false>);
  give(m, "std_mean.correction", nullptr, &variance<true>);
  give(m, "logsumexp", "logsumexp.out", &logsumexp);
  give(m, "linalg_vector_norm", "linalg_vector_norm.out", &vector_norm);
}
