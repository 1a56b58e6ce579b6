#include "backends/cpu/packed_types.h"

#include <algorithm>
#include <cmath>

#include <cresset/base/parallel.h>
#include <cresset/ops/functions_creation.h>

#include "backends/cpu/narrow_loops.h"

namespace cresset::cpu {

Format format_of(const char* op, const std::string& dtype, double scale) {
  const auto type = dtype_from_name(dtype);
  const bool known = type == kFloat || type == kBFloat16 || type == kByte || type == kChar;
  CRESSET_CHECK_VALUE(known, op, ": float32, bfloat16, uint8 or int8 was required; got '", dtype, "'.");
  const Format out{*type, static_cast<float>(scale)};
  CRESSET_CHECK_VALUE(!out.is_quantized() || (std::isfinite(out.scale) && out.scale > 0), op,
                      ": a positive scale was required for tensors of ", dtype, "; got ", scale, ".");
  return out;
}

dnnl::memory::data_type onednn_type(ScalarType dtype) {
  using type = dnnl::memory::data_type;
  switch (dtype) {
    case kBFloat16: return type::bf16;
    case kByte: return type::u8;
    case kChar: return type::s8;
    default: return type::f32;
  }
}

Tensor narrowed(const Tensor& x, const Format& format, MemoryFormat memory) {
  if (x.scalar_type() == format.dtype) return x.contiguous(memory);
  if (!format.is_quantized()) return x.contiguous(memory).to(format.dtype);
  constexpr int64_t kGrain = 1 << 14;
  const Tensor from = (x.scalar_type() == kFloat ? x : x.to(kFloat)).contiguous(memory);
  Tensor out = empty(from.sizes(), TensorOptions(format.dtype), memory);
  const NarrowLoops& loops = CRESSET_FOR_THIS_PROCESSOR(narrow_loops());
  const float* source = from.data_ptr<float>();
  void* to = out.data_ptr();
  parallel_for(0, from.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (format.dtype == kByte)
      loops.to_unsigned(source + begin, static_cast<uint8_t*>(to) + begin, end - begin, 1 / format.scale);
    else
      loops.to_signed(source + begin, static_cast<int8_t*>(to) + begin, end - begin, 1 / format.scale);
  });
  return out;
}

Tensor widened(const Tensor& x, const Format& format) {
  if (x.scalar_type() != format.dtype || format.dtype == kFloat) return x;
  const Tensor out = x.to(kFloat);
  return format.is_quantized() ? out.mul(Scalar(static_cast<double>(format.scale))) : out;
}

bool has_products_of(ScalarType dtype) {
  static const int isa = static_cast<int>(dnnl::get_effective_cpu_isa());
  const auto has = [](dnnl::cpu_isa wanted) { return (isa & static_cast<int>(wanted)) == static_cast<int>(wanted); };
  if (dtype == kBFloat16) return has(dnnl::cpu_isa::avx512_core_bf16);
  if (dtype == kChar || dtype == kByte) return has(dnnl::cpu_isa::avx512_core_vnni);
  return dtype == kFloat;
}

QuantizedWeight quantized_by_output(const Tensor& weight) {
  constexpr float kMost = 127;
  const Tensor from = weight.contiguous();
  QuantizedWeight out{empty(from.sizes(), TensorOptions(kChar)), {}};
  const int64_t outputs = from.size(0), each = outputs ? from.numel() / outputs : 0;
  const float* w = from.data_ptr<float>();
  auto* to = static_cast<int8_t*>(out.stored.data_ptr());
  for (int64_t o = 0; o < outputs; ++o, w += each, to += each) {
    float largest = 0;
    for (int64_t i = 0; i < each; ++i) largest = std::max(largest, std::fabs(w[i]));
    const float scale = largest > 0 && std::isfinite(largest) ? largest / kMost : 1;
    out.scales.push_back(scale);
    for (int64_t i = 0; i < each; ++i) to[i] = static_cast<int8_t>(std::clamp(std::nearbyint(w[i] / scale), -kMost, kMost));
  }
  return out;
}

}  // namespace cresset::cpu
