// Numbers, strings and tensors as text.
#include "ir/text/text.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/parse_number.h"

namespace cresset::jit {

std::string float_text(double v) {
  constexpr uint64_t kPlainNan = 0x7ff8000000000000ull;
  if (std::isnan(v)) {
    const auto bits = std::bit_cast<uint64_t>(v);
    if (bits == kPlainNan) return "nan";
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "nan(0x%016llx)", static_cast<unsigned long long>(bits));
    return buffer;
  }
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[64];
  if (std::fabs(v) < 1e10 && v == std::floor(v)) {
    std::snprintf(buffer, sizeof buffer, "%.0f.", v);
    return buffer;
  }
  std::string s(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::general, 17).ptr);
  if (s.find_first_of(".e") == std::string::npos) s += ".";
  return s;
}

std::string complex_text(std::complex<double> v) {
  const std::string imaginary = float_text(v.imag());
  return float_text(v.real()) + (imaginary[0] == '-' ? "" : "+") + imaginary + "j";
}

std::string in_quotes(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      case '\a': out += "\\a"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\v': out += "\\v"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          char buffer[8];
          std::snprintf(buffer, sizeof buffer, "\\%03o", static_cast<unsigned char>(c));
          out += buffer;
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

namespace {
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string base64(const void* data, std::size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::string out;
  out.reserve((size + 2) / 3 * 4);
  for (std::size_t i = 0; i < size; i += 3) {
    const uint32_t triple = static_cast<uint32_t>(p[i]) << 16 | (i + 1 < size ? static_cast<uint32_t>(p[i + 1]) << 8 : 0) |
                            (i + 2 < size ? static_cast<uint32_t>(p[i + 2]) : 0);
    out += kDigits[triple >> 18];
    out += kDigits[triple >> 12 & 63];
    out += i + 1 < size ? kDigits[triple >> 6 & 63] : '=';
    out += i + 2 < size ? kDigits[triple & 63] : '=';
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  static const auto* values = [] {
    auto* v = new std::array<int8_t, 256>;
    v->fill(-1);
    for (int i = 0; i < 64; ++i) (*v)[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
    return v;
  }();
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const int padding = last ? (text[i + 3] == '=') + (text[i + 2] == '=') : 0;
    uint32_t triple = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const int v = static_cast<int>(k) >= 4 - padding ? 0 : (*values)[static_cast<unsigned char>(text[i + k])];
      if (v < 0) return std::nullopt;
      triple = triple << 6 | static_cast<uint32_t>(v);
    }
    out += static_cast<char>(triple >> 16);
    if (padding < 2) out += static_cast<char>(triple >> 8 & 255);
    if (padding < 1) out += static_cast<char>(triple & 255);
  }
  return out;
}

namespace {

// Calls f(byte offset) for each element in row-major order.
template <class F>
void for_each_element(IntArrayRef sizes, IntArrayRef strides, std::size_t item, F&& f) {
  int64_t count = 1;
  for (int64_t s : sizes) count *= s;
  std::vector<int64_t> index(sizes.size());
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    f(static_cast<std::size_t>(offset) * item);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::string tensor_bytes(const Tensor& given) {
  const Tensor t = given.is_cpu() ? given : given.to(Device("cpu"));
  std::string out;
  const std::size_t item = t.itemsize();
  out.reserve(static_cast<std::size_t>(t.numel()) * item);
  if (t.numel() == 0) return out;
  const char* base = static_cast<const char*>(t.data_ptr());
  for_each_element(t.sizes(), t.strides(), item, [&](std::size_t at) { out.append(base + at, item); });
  return out;
}

std::optional<Tensor> tensor_from_bytes(const TensorType& type, std::string_view bytes) {
  const auto sizes = type.concrete_sizes(), strides = type.concrete_strides();
  if (!sizes || !strides || !type.dtype || sizes->size() != strides->size()) return std::nullopt;
  // Element count and extent, with care for texts that lie.
  uint64_t count = 1, extent = 1;
  constexpr uint64_t kLimit = uint64_t{1} << 40;
  const std::size_t item = elementSize(*type.dtype);
  for (std::size_t d = 0; d < sizes->size(); ++d) {
    if ((*sizes)[d] < 0 || (*strides)[d] < 0) return std::nullopt;
    const auto size = static_cast<uint64_t>((*sizes)[d]), stride = static_cast<uint64_t>((*strides)[d]);
    if (size >= kLimit || stride >= kLimit || (size && count > kLimit / size)) return std::nullopt;
    count *= size;
    if (size > 1 && stride > 0) {
      if (size - 1 > kLimit / stride) return std::nullopt;
      extent += (size - 1) * stride;
    }
    if (extent > kLimit) return std::nullopt;
  }
  if (count * item != bytes.size()) return std::nullopt;
  if (count == 0) extent = 0;
  // Gaps between elements are bounded by what a real tensor of this size plausibly has.
  if (extent > count * 4096 + 4096) return std::nullopt;
  Tensor flat = cresset::detail::empty_cpu({static_cast<int64_t>(extent)}, *type.dtype);
  if (extent) std::memset(flat.data_ptr(), 0, extent * item);
  if (count) {
    char* base = static_cast<char*>(flat.data_ptr());
    std::size_t read = 0;
    for_each_element(*sizes, *strides, item, [&](std::size_t at) {
      std::memcpy(base + at, bytes.data() + read, item);
      read += item;
    });
  }
  Tensor t = flat.as_strided(*sizes, *strides);
  if (type.device && !type.device->is_cpu()) t = t.to(*type.device);
  if (type.requires_grad.value_or(false)) t.set_requires_grad(true);
  return t;
}

std::optional<Tensor> tensor_from_display(std::string_view text, const Type& given) {
  const auto* type = dynamic_cast<const TensorType*>(&given);
  if (!type || text.empty()) return std::nullopt;
  if (type->device && !type->device->is_cpu()) return std::nullopt;
  const bool floating = text.find_first_of(".enf") != std::string_view::npos;
  const ScalarType dtype = type->dtype.value_or(floating ? ScalarType::Float : ScalarType::Long);
  std::vector<int64_t> sizes = type->concrete_sizes().value_or(std::vector<int64_t>(type->sizes ? type->sizes->size() : 0, 1));
  for (int64_t s : sizes)
    if (s != 1) return std::nullopt;
  Tensor t = cresset::detail::empty_cpu(sizes, dtype);
  const char *first = text.data(), *end = text.data() + text.size();
  if (isFloatingType(dtype)) {
    double v = 0;
    const auto [at, error] = parse_double(first, end, v);
    if (error != std::errc() || at != end) return std::nullopt;
    switch (dtype) {
      case ScalarType::Double: *static_cast<double*>(t.data_ptr()) = v; break;
      case ScalarType::Float: *static_cast<float*>(t.data_ptr()) = static_cast<float>(v); break;
      case ScalarType::Half: *static_cast<Half*>(t.data_ptr()) = static_cast<Half>(static_cast<float>(v)); break;
      case ScalarType::BFloat16: *static_cast<BFloat16*>(t.data_ptr()) = static_cast<BFloat16>(static_cast<float>(v)); break;
      default: return std::nullopt;
    }
  } else {
    int64_t v = 0;
    const auto [at, error] = std::from_chars(first, end, v);
    if (error != std::errc() || at != end) return std::nullopt;
    switch (dtype) {
      case ScalarType::Long: *static_cast<int64_t*>(t.data_ptr()) = v; break;
      case ScalarType::Int:
        if (v != static_cast<int32_t>(v)) return std::nullopt;
        *static_cast<int32_t*>(t.data_ptr()) = static_cast<int32_t>(v);
        break;
      case ScalarType::Short:
        if (v != static_cast<int16_t>(v)) return std::nullopt;
        *static_cast<int16_t*>(t.data_ptr()) = static_cast<int16_t>(v);
        break;
      case ScalarType::Bool:
        if (v != 0 && v != 1) return std::nullopt;
        *static_cast<bool*>(t.data_ptr()) = v != 0;
        break;
      default: return std::nullopt;
    }
  }
  if (type->requires_grad.value_or(false)) t.set_requires_grad(true);
  return t;
}

bool is_plain_name(std::string_view name) {
  if (name.empty()) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  return true;
}

std::optional<AttributeKind> list_kind_of_word(std::string_view word) {
  for (AttributeKind k :
       {AttributeKind::fs, AttributeKind::cs, AttributeKind::ss, AttributeKind::ts, AttributeKind::gs, AttributeKind::tys})
    if (word == toString(k)) return k;
  return std::nullopt;
}

}  // namespace cresset::jit
