// Scalar arithmetic that does not belong in a header, and printing.
#include <cresset/core/scalar.h>

#include <charconv>
#include <cmath>

namespace cresset {
namespace {

// The shortest text that reads back as the same double, in Python's spelling.
std::string float_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string s(buffer, end);
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

}  // namespace

Scalar Scalar::operator-() const {
  CRESSET_CHECK(!isBoolean(), "torch boolean negative, the `-` operator, is not supported.");
  switch (tag_) {
    case Tag::Unsigned:
    case Tag::Int: return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(v_.i)));
    case Tag::Complex: return Scalar(std::complex<double>(-v_.d[0], -v_.d[1]));
    default: return Scalar(-v_.d[0]);
  }
}

Scalar Scalar::conj() const { return isComplex() ? Scalar(std::complex<double>(v_.d[0], -v_.d[1])) : *this; }

std::string to_string(const Scalar& s) {
  if (s.isBoolean()) return s.toBool() ? "True" : "False";
  if (s.isUnsigned()) return std::to_string(s.toUInt64());
  if (s.isIntegral(false)) return std::to_string(s.toLong());
  if (!s.isComplex()) return float_repr(s.toDouble());
  const std::complex<double> c = s.toComplexDouble();
  std::string im = float_repr(c.imag());
  if (im[0] != '-') im = "+" + im;
  return "(" + float_repr(c.real()) + im + "j)";
}

namespace detail {
void raise_scalar_overflow(ScalarType type) {
  const char* name = type == kByte           ? "uint8_t"
                     : type == kChar         ? "int8_t"
                     : type == kShort        ? "int16_t"
                     : type == kInt          ? "int"
                     : type == kLong         ? "int64_t"
                     : type == kFloat        ? "float"
                     : type == kDouble       ? "double"
                     : type == kUInt16       ? "uint16_t"
                     : type == kUInt32       ? "uint32_t"
                     : type == kUInt64       ? "uint64_t"
                     : type == kHalf         ? "c10::Half"
                     : type == kBFloat16     ? "c10::BFloat16"
                     : type == kComplexHalf  ? "c10::complex<c10::Half>"
                     : type == kComplexFloat ? "c10::complex<float>"
                                             : toString(type);
  CRESSET_THROW(Error, "value cannot be converted to type ", isFloat8Type(type) ? "c10::" : "", name, " without overflow");
}
}  // namespace detail
}  // namespace cresset
