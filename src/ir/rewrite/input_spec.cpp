// Specifications of inputs: their text, their types, examples.
#include <cresset/ir/input_spec.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include <cresset/base/error.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>

namespace cresset::jit {
namespace {

// The words of command lines of this kind besides the names of dtypes.
std::optional<ScalarType> dtype_of_short_word(const std::string& word) {
  static const std::pair<const char*, ScalarType> words[] = {
      {"f16", ScalarType::Half},   {"fp16", ScalarType::Half},     {"f32", ScalarType::Float}, {"fp32", ScalarType::Float},
      {"f64", ScalarType::Double}, {"bf16", ScalarType::BFloat16}, {"u8", ScalarType::Byte},   {"i8", ScalarType::Char},
      {"char", ScalarType::Char},  {"i16", ScalarType::Short},     {"i32", ScalarType::Int},   {"int", ScalarType::Int},
      {"i64", ScalarType::Long},   {"b", ScalarType::Bool}};
  for (const auto& [name, dtype] : words)
    if (word == name) return dtype;
  return dtype_from_name(word);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  InputSpec run() {
    std::vector<std::vector<int64_t>> sizes;
    if (take('[')) {
      for (const char end : {';', ';', ']'}) {
        sizes.push_back(numbers());
        if (!take(end)) fail(std::string("'") + end + "' was expected: [(min);(opt);(max)]");
      }
    } else {
      sizes.push_back(numbers());
    }
    ScalarType dtype = ScalarType::Float;
    bool has_dtype = false, has_format = false;
    while (at_ < text_.size()) {
      if (!has_dtype && take('@')) {
        const std::string name = word();
        const auto known = dtype_of_short_word(name);
        if (!known) fail("'" + name + "' is no dtype; float32, f16, int64 and so on are");
        dtype = *known;
        has_dtype = true;
      } else if (!has_format && take('%')) {
        // Which strides a tensor has is nothing that passes rely on.
        const std::string name = word();
        static const char* formats[] = {"linear", "nchw", "chw", "contiguous", "nhwc", "hwc", "channels_last"};
        if (std::find(std::begin(formats), std::end(formats), name) == std::end(formats))
          fail("'" + name + "' is no format; contiguous and channels_last are");
        has_format = true;
      } else {
        fail("the end, @dtype or %format was expected");
      }
    }
    return sizes.size() == 1 ? InputSpec(sizes[0], dtype) : InputSpec(sizes[0], sizes[1], sizes[2], dtype);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    CRESSET_THROW(ValueError, "input specification '", std::string(text_), "': ", what, "; column ", at_ + 1,
                  ". Write (1,3,224,224)@f32 or [(min);(opt);(max)]@f32.");
  }
  void spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    spaces();
    return true;
  }
  std::string word() {
    std::string out;
    while (at_ < text_.size() && text_[at_] != '@' && text_[at_] != '%' && text_[at_] != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_++])));
    spaces();
    return out;
  }
  std::vector<int64_t> numbers() {
    if (!take('(')) fail("'(' was expected");
    std::vector<int64_t> out;
    while (!take(')')) {
      int64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc()) fail("a size was expected");
      if (n < -1) fail("sizes are not negative; -1 is any size");
      at_ = static_cast<std::size_t>(end - text_.data());
      out.push_back(n);
      if (!take(',') && (spaces(), at_ >= text_.size() || text_[at_] != ')')) fail("',' or ')' was expected");
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string out = "(";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i ? "," : "") + std::to_string(sizes[i]);
  return out + ")";
}

constexpr int64_t kUsual = 2;  // of a size that may be any

}  // namespace

InputSpec::InputSpec(std::vector<int64_t> sizes, ScalarType dtype) : dtype(dtype) {
  for (const int64_t n : sizes) {
    CRESSET_CHECK_VALUE(n >= -1, "input specification: sizes are not negative, and -1 is any size; ", n, " was given.");
    min.push_back(n < 0 ? 1 : n);
    opt.push_back(n < 0 ? kUsual : n);
    max.push_back(n < 0 ? kUnbounded : n);
  }
}

InputSpec::InputSpec(std::vector<int64_t> least, std::vector<int64_t> usual, std::vector<int64_t> most, ScalarType dtype)
    : min(std::move(least)), opt(std::move(usual)), max(std::move(most)), dtype(dtype) {
  CRESSET_CHECK_VALUE(min.size() == opt.size() && opt.size() == max.size(),
                      "input specification: min, opt and max must have as many sizes; ", sizes_text(min), ", ", sizes_text(opt), " and ",
                      sizes_text(max), " were given.");
  for (std::size_t i = 0; i < min.size(); ++i)
    CRESSET_CHECK_VALUE(0 <= min[i] && min[i] <= opt[i] && opt[i] <= max[i], "input specification: min <= opt <= max was required; ",
                        sizes_text(min), ", ", sizes_text(opt), " and ", sizes_text(max), " were given.");
}

std::shared_ptr<TensorType> InputSpec::type() const {
  TensorType::Dims sizes;
  for (std::size_t i = 0; i < min.size(); ++i) sizes.push_back(min[i] == max[i] ? std::optional(min[i]) : std::nullopt);
  return TensorType::create(dtype, std::move(sizes), {}, {}, device);
}

std::optional<std::string> InputSpec::misfit(const Tensor& t) const {
  bool fits = t.defined() && t.scalar_type() == dtype && t.sizes().size() == min.size() && (!device || t.device() == *device);
  for (std::size_t i = 0; fits && i < min.size(); ++i)
    fits = min[i] <= t.size(static_cast<int64_t>(i)) && t.size(static_cast<int64_t>(i)) <= max[i];
  if (fits) return std::nullopt;
  return str() + " was specified; " + (t.defined() ? TensorType::create(t)->str() : "an undefined tensor") + " was given";
}

Tensor InputSpec::example() const {
  const TensorOptions options = TensorOptions(dtype).device(device.value_or(Device(DeviceType::CPU)));
  if (isFloatingType(dtype)) return cresset::randn(opt, options);
  return cresset::randint(dtype == ScalarType::Bool ? 2 : 10, opt, options);
}

std::string InputSpec::str() const {
  std::string out;
  if (has_ranges() && std::all_of(min.begin(), min.end(), [&, i = std::size_t{0}](int64_t n) mutable {
        const std::size_t at = i++;
        return n == max[at] || (n == 1 && max[at] == kUnbounded);
      })) {
    std::vector<int64_t> sizes = min;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != max[i]) sizes[i] = -1;
    out = sizes_text(sizes);
  } else {
    out = has_ranges() ? "[" + sizes_text(min) + ";" + sizes_text(opt) + ";" + sizes_text(max) + "]" : sizes_text(min);
  }
  return out + "@" + dtype_name(dtype) + (device ? " on " + device->str() : "");
}

InputSpec parse_input_spec(std::string_view text) { return Reader(text).run(); }

void set_input_types(Graph& graph, const InputSpecs& specs, std::size_t first, std::size_t inputs) {
  CRESSET_CHECK_VALUE(specs.size() <= inputs, "lower: ", specs.size(), " specifications of inputs were given; the graph has ", inputs,
                      inputs == 1 ? " input." : " inputs.");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i]) continue;
    Value* input = graph.inputs().at(first + i);
    const Type& type = input->type()->kind == TypeKind::Optional ? *input->type()->element() : *input->type();
    CRESSET_CHECK_VALUE(type.kind == TypeKind::Tensor, "lower: input ", i, " ('%", input->debugName(), "') is no tensor but a ",
                        input->type()->str(), "; give None in its place.");
    input->setType(specs[i]->type());
  }
}

}  // namespace cresset::jit
