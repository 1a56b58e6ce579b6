// Reading example inputs.
#include "cli/lower_input.h"

#include <charconv>

#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/tensor_literal.h>

#include "base/parse_number.h"

namespace cresset::cli {
namespace {

ScalarType known_dtype(const std::string& name) {
  if (const auto type = dtype_from_name(name)) return *type;
  CRESSET_THROW(ValueError, "lower: a dtype such as float32 was required; '", name, "' was given.");
}

DimVector sizes_from(const std::string& text, std::size_t open) {
  const std::size_t close = text.find(']', open);
  CRESSET_CHECK_VALUE(close == text.size() - 1, "lower: a tensor is written float32[2,3]; '", text, "' was given.");
  DimVector sizes;
  for (std::size_t i = open + 1; i < close;) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + close, n);
    CRESSET_CHECK_VALUE(error == std::errc() && n >= 0 && (*end == ',' || *end == ']'),
                        "lower: sizes are numbers with commas between them; '", text, "' was given.");
    sizes.push_back(n);
    i = static_cast<std::size_t>(end - text.data()) + 1;
  }
  return sizes;
}

template <class T>
std::optional<T> number(const std::string& text) {
  T v{};
  const auto [end, error] = parse_number(text.data(), text.data() + text.size(), v);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(v) : std::nullopt;
}

bool is_spec(const std::string& text) { return text.starts_with('(') || text.starts_with("[("); }

IValue input(const std::string& text) {
  if (text == "None") return {};
  if (is_spec(text)) return jit::parse_input_spec(text).example();
  if (text == "true" || text == "false") return IValue(text == "true");
  if (const std::size_t open = text.find('['); open != std::string::npos && open > 0) {
    const ScalarType dtype = known_dtype(text.substr(0, open));
    const DimVector sizes = sizes_from(text, open);
    if (isFloatingType(dtype)) return cresset::randn(sizes, TensorOptions(dtype));
    return cresset::randint(dtype == ScalarType::Bool ? 2 : 10, sizes, TensorOptions(dtype));
  }
  if (const auto i = number<int64_t>(text)) return *i;
  if (const auto d = number<double>(text)) return *d;
  return text;
}

}  // namespace

std::vector<IValue> example_inputs(const std::vector<std::string>& texts) {
  manual_seed(0);
  std::vector<IValue> out;
  for (const std::string& text : texts) out.push_back(input(text));
  return out;
}

jit::InputSpecs input_specs(const std::vector<std::string>& texts) {
  jit::InputSpecs out;
  bool any = false;
  for (const std::string& text : texts) {
    out.push_back(is_spec(text) ? std::optional(jit::parse_input_spec(text)) : std::nullopt);
    any = any || out.back();
  }
  return any ? out : jit::InputSpecs();
}

}  // namespace cresset::cli
