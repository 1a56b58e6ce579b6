// Two ways to a product: CLBlast, and our kernels, which take all types. For products that are worth it, the first one of a device and type
// is computed both ways, and the quicker way is kept.
#include "gemm.h"

#include <cresset/cresset.h>

#include <chrono>
#include <map>
#include <mutex>

#include "call.h"
#include "memory.h"

#ifdef CRESSET_OPENCL_CLBLAST
#include <clblast_c.h>
#endif

namespace cresset_opencl {
namespace {

// What a kernel computes: elements of each work item, and work items in each direction of a group.
struct Blocks {
  const char* file;
  int64_t rows, columns;
  std::size_t items;
};

// Graphics processors share what they read of big enough blocks.
Blocks blocks_of(const ClDevice& d, const Gemm& g) {
  constexpr int64_t kSmall = 16;
  if (d.facts().is_cpu) return {"gemm", 8, 16, 1};
  if (g.m < kSmall || g.n < kSmall || group_size(d, 256) < 256) return {"gemm", 4, 16, group_size(d, 8)};
  return {"gemm_tiles", 4, 4, 16};
}

void run_kernel(const Gemm& g) {
  const Tensor& on = g.out.tensor;
  const Compute c = compute_of(on.scalar_type());
  const char* type = type_letter(on.scalar_type());
  const char* c0_type = g.c0.tensor.defined() ? type_letter(g.c0.tensor.scalar_type()) : type;
  const Blocks blocks = blocks_of(device_of(on), g);
  Launch launch(on, blocks.file, "gemm",
                std::string("-DT=") + type + " -DC0T=" + c0_type + " -DA=" + compute_name(c) + " -DROWS=" + std::to_string(blocks.rows));
  launch.tensor(g.a.tensor, g.a.offset).tensor(g.b.tensor, g.b.offset).tensor(g.c0.tensor, g.c0.offset).tensor(on, g.out.offset);
  for (int64_t v :
       {g.m, g.n, g.k, g.a.batch, g.a.row, g.a.column, g.b.batch, g.b.row, g.c0.batch, g.c0.row, g.c0.column, g.out.batch, g.out.row})
    launch.value<cl_ulong>(static_cast<cl_ulong>(v));
  launch.number(c, g.alpha).number(c, g.beta);
  const auto groups = [&](int64_t n, int64_t block) {
    const auto per_group = static_cast<int64_t>(blocks.items) * block;
    return static_cast<std::size_t>((n + per_group - 1) / per_group);
  };
  launch.run_groups({groups(g.n, blocks.columns), groups(g.m, blocks.rows), static_cast<std::size_t>(g.batch)},
                    {blocks.items, blocks.items, 1});
}

#ifdef CRESSET_OPENCL_CLBLAST

// A row-major matrix as BLAS takes it: as it is, or transposed.
struct Operand {
  bool ok = false;
  CLBlastTranspose transpose = CLBlastTransposeNo;
  std::size_t leading = 1;
};
Operand operand_of(const Matrix& m, int64_t rows, int64_t columns) {
  if (m.column == 1 && m.row >= std::max<int64_t>(columns, 1)) return {true, CLBlastTransposeNo, static_cast<std::size_t>(m.row)};
  if (m.row == 1 && m.column >= std::max<int64_t>(rows, 1)) return {true, CLBlastTransposeYes, static_cast<std::size_t>(m.column)};
  return {};
}

// False when CLBlast does not take this product.
bool run_clblast(const Gemm& g) {
  const ScalarType type = g.out.tensor.scalar_type();
  const bool single = type == cresset::kFloat;
  if ((!single && type != cresset::kDouble) || g.beta != 0) return false;
  const Operand a = operand_of(g.a, g.m, g.k), b = operand_of(g.b, g.k, g.n);
  if (!a.ok || !b.ok) return false;
  ClDevice& d = device_of(g.out.tensor);
  const auto place = [&](const Matrix& m) {
    Place p = d.memory().find(m.tensor.data_ptr());
    p.offset = p.offset / static_cast<std::size_t>(m.tensor.element_size()) + static_cast<std::size_t>(m.offset);
    return p;
  };
  const Place pa = place(g.a), pb = place(g.b), pc = place(g.out);
  const auto u = [](int64_t v) { return static_cast<std::size_t>(v); };
  cl_command_queue queue = queue_for(g.out.tensor);
  const std::lock_guard lock(d.launch_mutex());
  const auto call = [&](auto function, auto zero) {
    using T = decltype(zero);
    return function(CLBlastLayoutRowMajor, a.transpose, b.transpose, u(g.m), u(g.n), u(g.k), static_cast<T>(g.alpha), pa.buffer, pa.offset,
                    a.leading, u(g.a.batch), pb.buffer, pb.offset, b.leading, u(g.b.batch), zero, pc.buffer, pc.offset, u(g.out.row),
                    u(g.out.batch), u(g.batch), &queue, nullptr);
  };
  const auto status = single ? call(&CLBlastSgemmStridedBatched, 0.0f) : call(&CLBlastDgemmStridedBatched, 0.0);
  return status == CLBlastSuccess;
}

constexpr double kWorthMeasuring = 1 << 21;  // multiplications

// Which way is the quicker one on a device for a type; absent until it was measured.
struct Choices {
  std::mutex mutex;
  std::map<std::pair<const ClDevice*, ScalarType>, bool> clblast;
};
Choices& choices() {
  static auto* c = new Choices;
  return *c;
}

// Seconds of a second run: the first one may compile.
template <class F>
double seconds_of(const Gemm& g, F run) {
  const cl_command_queue queue = queue_for(g.out.tensor);
  run();
  clFinish(queue);
  const auto begin = std::chrono::steady_clock::now();
  run();
  clFinish(queue);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool prefers_clblast(const Gemm& g) {
  const auto key = std::pair<const ClDevice*, ScalarType>(&device_of(g.out.tensor), g.out.tensor.scalar_type());
  std::lock_guard lock(choices().mutex);
  const auto known = choices().clblast.find(key);
  if (known != choices().clblast.end()) return known->second;
  if (static_cast<double>(g.batch) * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) < kWorthMeasuring)
    return false;
  if (g.beta != 0) return false;
  const char* wish = std::getenv("CRESSET_OPENCL_GEMM");  // "clblast" or "kernel": no measurement
  if (wish && *wish) return choices().clblast[key] = std::string_view(wish) == "clblast";
  bool taken = true;
  const double theirs = seconds_of(g, [&] { taken &= run_clblast(g); });
  return choices().clblast[key] = taken && theirs < seconds_of(g, [&] { run_kernel(g); });
}

#endif

}  // namespace

void gemm(const Gemm& g) {
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
#ifdef CRESSET_OPENCL_CLBLAST
  if (g.k > 0 && prefers_clblast(g) && run_clblast(g)) return;
#endif
  run_kernel(g);
}

Matrix matrix_of(const Tensor& t, bool any) {
  const int64_t d = t.dim();
  const Tensor m = any || t.stride(d - 1) == 1 || t.size(d - 1) == 1 ? t : dense(t);
  return {m, 0, d > 2 ? m.stride(0) : 0, m.stride(d - 2), any ? m.stride(d - 1) : 1};
}

}  // namespace cresset_opencl
