#include "cli/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <cresset/ops/functions.h>

namespace cresset::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

[[noreturn]] void bad(const std::string& path, const std::string& why) {
  CRESSET_THROW(ValueError, path, ": a .npy file was required; ", why, ".");
}

// The text behind a key of the header, which is the text of a Python dict.
std::string_view field(const std::string& path, std::string_view header, std::string_view key) {
  const std::size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) bad(path, "its header has no '" + std::string(key) + "'");
  const std::size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) bad(path, "its header is cut off");
  const std::size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

std::vector<int64_t> shape_of(const std::string& path, std::string_view text) {
  std::vector<int64_t> shape;
  const std::size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos) bad(path, "its shape is no tuple");
  for (std::size_t i = 1; i < end; ++i) {
    if (text[i] == ' ' || text[i] == ',') continue;
    int64_t size = 0;
    for (; i < end && text[i] >= '0' && text[i] <= '9'; ++i)
      if (__builtin_mul_overflow(size, int64_t{10}, &size) || __builtin_add_overflow(size, int64_t{text[i] - '0'}, &size))
        bad(path, "its shape is too large");
    if (i < end && text[i] != ',' && text[i] != ' ') bad(path, "its shape has something that is no number");
    shape.push_back(size);
  }
  return shape;
}

}  // namespace

Tensor read_npy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CRESSET_CHECK(in, path, " cannot be opened: ", std::strerror(errno), ".");
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (bytes.compare(0, kMagic.size(), kMagic) != 0 || bytes.size() < 12) bad(path, "it does not begin like one");
  const bool wide = bytes[6] >= 2;
  uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 8, wide ? 4 : 2);
  const std::size_t data_at = (wide ? 12 : 10) + std::size_t{size};
  if (data_at > bytes.size()) bad(path, "its header is cut off");
  const std::string_view header(bytes.data(), data_at);
  const std::string_view descr = field(path, header, "descr");
  // '<f4': the byte order, then the type.
  const std::size_t quote = descr.size() < 4 || descr[0] != '\'' || descr[1] == '>' ? std::string_view::npos : descr.find('\'', 1);
  const auto type = quote == std::string_view::npos ? std::nullopt : dtype_from_numpy(descr.substr(2, quote - 2));
  if (!type) bad(path, "its type " + std::string(descr.substr(0, descr.find(','))) + " is not one of little-endian numbers");
  std::vector<int64_t> shape = shape_of(path, field(path, header, "shape"));
  const bool columns_first = field(path, header, "fortran_order").starts_with("True");
  uint64_t needed = element_size(*type);
  for (int64_t s : shape)
    if (__builtin_mul_overflow(needed, static_cast<uint64_t>(s), &needed)) bad(path, "its shape is too large");
  if (needed != bytes.size() - data_at)
    bad(path, "its shape needs " + std::to_string(needed) + " bytes; it has " + std::to_string(bytes.size() - data_at));
  if (columns_first) std::reverse(shape.begin(), shape.end());
  Tensor t = cresset::empty(shape, TensorOptions(*type));
  if (needed) std::memcpy(t.mutable_data_ptr(), bytes.data() + data_at, needed);
  if (!columns_first) return t;
  std::vector<int64_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  return t.permute(order).contiguous();
}

void write_npy(const std::string& path, const Tensor& tensor) {
  Tensor t = tensor.detach().to(TensorOptions().device(kCPU));
  if (numpy_type(t.scalar_type()).empty()) t = t.to(TensorOptions().dtype(toOpMathType(t.scalar_type())));
  t = t.contiguous();
  std::string header =
      std::string("{'descr': '") + (t.itemsize() == 1 ? "|" : "<") + numpy_type(t.scalar_type()) + "', 'fortran_order': False, 'shape': (";
  for (int64_t s : t.sizes()) header += std::to_string(s) + ", ";
  header += "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');  // data at a multiple of 64
  header += '\n';
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto size = static_cast<uint16_t>(header.size());
  out.write("\x93NUMPY\x01\x00", 8);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  out.write(static_cast<const char*>(t.const_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  out.close();
  CRESSET_CHECK(out, path, " cannot be written: ", std::strerror(errno), ".");
}

}  // namespace cresset::cli
