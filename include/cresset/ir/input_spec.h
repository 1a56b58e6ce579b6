// What the caller knows of the inputs of a graph before it runs.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/dispatch/tensor_type.h>
#include <cresset/ir/ir.h>

namespace cresset::jit {

/// A tensor's dtype and sizes; a size may be a range, which types show as `*` and inference follows through the graph.
struct CRESSET_API InputSpec {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  std::vector<int64_t> min, opt, max;  // equal where the size is fixed
  ScalarType dtype = ScalarType::Float;
  std::optional<Device> device = {};

  InputSpec() = default;
  /// Fixed sizes; -1 is any size.
  explicit InputSpec(std::vector<int64_t> sizes, ScalarType dtype = ScalarType::Float);
  /// Ranges. Raises ValueError unless min <= opt <= max in as many dimensions.
  InputSpec(std::vector<int64_t> min, std::vector<int64_t> opt, std::vector<int64_t> max, ScalarType dtype = ScalarType::Float);

  bool has_ranges() const { return min != max; }
  std::shared_ptr<TensorType> type() const;
  /// Why this tensor is none of these; nothing when it is one.
  std::optional<std::string> misfit(const Tensor& t) const;
  /// Random values of the sizes in `opt`: normal, or numbers below 10.
  Tensor example() const;
  /// As it is read: "(1,3,224,224)@float32", "[(1,3);(4,3);(8,3)]@int64".
  std::string str() const;
};

/// Reads "(1,3,224,224)", "(-1,3)@f16" (any size), "[(min);(opt);(max)]@i64%nchw". Dtypes: their names, and f16, f32, f64, i8, i32, i64, b
/// and so on; without one float32. Raises ValueError with what was expected and where.
CRESSET_API InputSpec parse_input_spec(std::string_view text);

/// One for each true input of a graph, in order; nothing: not known. Fewer than inputs is well.
using InputSpecs = std::vector<std::optional<InputSpec>>;
/// Gives the graph's inputs, from this one on, the types of their specifications. Raises ValueError when there are more specifications than
/// `inputs` or one is of an input that is no tensor.
CRESSET_API void set_input_types(Graph& graph, const InputSpecs& specs, std::size_t first, std::size_t inputs);

}  // namespace cresset::jit
