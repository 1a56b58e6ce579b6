// The types that packed operators compute in and exchange: float32, bfloat16, and whole numbers of 8 bits with a scale.
//
// A tensor of 8 bits stands for stored * scale, without an offset: uint8 for what is never negative, int8 for the rest. Scales are facts
// of the graph that calibration found, so they are in the packed operators and not in the tensors.
#pragma once

#include <dnnl.hpp>

#include <string>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::cpu {

struct Format {
  ScalarType dtype = kFloat;
  float scale = 1;  // of 8 bits
  bool is_quantized() const { return dtype == kByte || dtype == kChar; }
};

/// Raises ValueError for names of other types than float32, bfloat16, uint8, int8, and for scales that are not finite and positive.
Format format_of(const char* op, const std::string& dtype, double scale);

dnnl::memory::data_type onednn_type(ScalarType dtype);

/// A float32 or bfloat16 tensor in the format, or a tensor that already is; of the memory format given.
Tensor narrowed(const Tensor& x, const Format& format, MemoryFormat memory);
/// The float32 tensor that a tensor of the format stands for; others stay.
Tensor widened(const Tensor& x, const Format& format);

/// Has this processor instructions for products of bfloat16 or of 8 bits, and does oneDNN use them?
bool has_products_of(ScalarType dtype);

/// The weight with whole numbers of 8 bits, (outputs, ...), with a scale for each output: weight = stored * scale.
struct QuantizedWeight {
  Tensor stored;
  std::vector<float> scales;
};
QuantizedWeight quantized_by_output(const Tensor& weight);

}  // namespace cresset::cpu
