#include "cli/models.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include <cresset/core/grad_mode.h>
#include <cresset/engine/compile.h>
#include <cresset/engine/file.h>
#include <cresset/ir/archive.h>
#include <cresset/ir/export.h>

namespace cresset::cli {

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CRESSET_CHECK(in, path, ": the file cannot be read.");
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  CRESSET_CHECK(out, path, ": the file cannot be written.");
}

jit::Module read_model(const std::string& path, Device device) {
  if (path.ends_with(".pt2")) return jit::load_exported(path).module;
  char begin[16] = {};
  std::ifstream(path, std::ios::binary).read(begin, 15);
  if (engine::is_engine_file(begin)) return engine::embed_engine_in_new_module(read_bytes(path));
  return jit::load(path, device);
}

std::vector<IValue> examples_of(const jit::InputSpecs& specs) {
  std::vector<IValue> out;
  for (const auto& spec : specs) out.emplace_back(spec->example());
  return out;
}

void collect_tensors(const IValue& v, std::vector<Tensor>& out) {
  if (v.isTensor()) out.push_back(v.toTensor());
  if (v.isList() || v.isTuple())
    for (const IValue& member : v.toListRef()) collect_tensors(member, out);
  if (v.isGenericDict())
    for (const auto& [key, value] : v.toDictImpl().items) collect_tensors(value, out);
}

std::vector<double> time_method(const jit::Module& module, const std::string& method, const std::vector<IValue>& inputs, int64_t runs,
                                int64_t warm_up) {
  using Clock = std::chrono::steady_clock;
  const NoGradGuard no_grad;
  const jit::Method called = module.get_method(method);
  std::vector<double> out;
  for (int64_t i = -warm_up; i < runs; ++i) {
    const auto start = Clock::now();
    called(Stack(inputs.begin(), inputs.end()));
    if (i >= 0) out.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace cresset::cli
