// Printing of tensors to C++ streams: matrices of aligned columns, one after the other.
#include <cresset/ops/print.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>
#include <vector>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/type_properties.h>

namespace cresset {
namespace {

// How the elements of a matrix or vector are written: as integers, with four digits behind the point, or as 1.0000e+10; all in one width
// that the finite ones decide, some with a factor that stands in front.
struct Format {
  int width = 0;
  bool fixed = false, scientific = false;
  double factor = 1;
};

int digits_before_point(double v) { return v == 0 ? 1 : static_cast<int>(std::floor(std::log10(v))) + 1; }

Format format_of(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  bool integers = true;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    integers = integers && v == std::ceil(v);
    least = std::min(least, std::fabs(v));
    most = std::max(most, std::fabs(v));
  }
  constexpr int kScientificWidth = 11, kMostIntegerDigits = 9, kMostDifference = 4, kMostDigits = 5, kBehindPoint = 6;
  const int high = digits_before_point(most), low = std::isfinite(least) ? digits_before_point(least) : 1;
  const Format scientific{kScientificWidth, false, true, 1};
  if (integers) return high > kMostIntegerDigits ? scientific : Format{high + 1, false, false, 1};
  if (high - low > kMostDifference) return scientific;
  if (high > kMostDigits || high < 0) return {1 + kBehindPoint, true, false, std::pow(10.0, high - 1)};
  return {std::max(high, 1) + kBehindPoint, true, false, 1};
}

// Elements of the tensor; of complex numbers texts, which have no common form.
std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  const Tensor flat = t.detach().cpu().contiguous().reshape({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const Scalar s = flat[i].item();
    out.push_back(s.isFloatingPoint() ? s.toDouble() : static_cast<double>(s.toLong()));
  }
  return out;
}
std::vector<std::string> complex_texts(const Tensor& t) {
  std::vector<std::string> out;
  constexpr int kDigits = 5;
  const Tensor flat = t.detach().cpu().contiguous().reshape({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const auto v = flat[i].item().toComplexDouble();
    std::ostringstream text;
    text.precision(kDigits);
    text << v.real() << (v.imag() < 0 ? "-" : "+") << std::abs(v.imag()) << "j";
    out.push_back(text.str());
  }
  return out;
}

// The texts of a matrix or vector, padded to one width.
struct Texts {
  std::vector<std::string> texts;
  std::size_t width = 0;
  double factor = 1;
};

Texts texts_of(const Tensor& t) {
  Texts out;
  if (t.is_complex()) {
    out.texts = complex_texts(t);
    for (const std::string& text : out.texts) out.width = std::max(out.width, text.size() + 1);
  } else {
    constexpr int kPrecision = 4;
    const std::vector<double> values = values_of(t);
    const Format format = format_of(values);
    out.width = static_cast<std::size_t>(format.width);
    out.factor = format.factor;
    for (const double v : values) {
      std::ostringstream text;
      if (format.fixed) text << std::fixed;
      if (format.scientific) text << std::scientific;
      if (format.fixed || format.scientific) text.precision(kPrecision);
      text << v / format.factor;
      out.texts.push_back(text.str());
    }
  }
  for (std::string& text : out.texts) text.insert(0, out.width - std::min(out.width, text.size()), ' ');
  return out;
}

void print_vector(std::ostream& out, const Tensor& t) {
  const Texts texts = texts_of(t);
  if (texts.factor != 1) out << texts.factor << " *\n";
  for (const std::string& text : texts.texts) out << text << "\n";
}

// Columns that do not fit on a line go below, under a heading. Rows are indented where the matrix is a part, and those behind the first
// below a factor; the first one only behind a heading or a factor. That is uneven, and PyTorch's.
void print_matrix(std::ostream& out, const Tensor& t, int64_t line_width, bool is_part) {
  const Texts texts = texts_of(t);
  const int64_t rows = t.size(0), columns = t.size(1);
  const int64_t per_line = std::max<int64_t>(1, (line_width - is_part) / static_cast<int64_t>(texts.width + 1));
  for (int64_t first = 0; first < columns; first += per_line) {
    const int64_t last = std::min(columns, first + per_line);
    const bool headed = columns > per_line, scaled = texts.factor != 1;
    if (headed) out << (first ? "\n" : "") << "Columns " << first + 1 << " to " << last;
    if (scaled) out << texts.factor << " *\n";
    for (int64_t r = 0; r < rows; ++r) {
      out << std::string((is_part && (r || headed || scaled)) + (r && scaled), ' ');
      for (int64_t c = first; c < last; ++c) out << (c > first ? " " : "") << texts.texts[static_cast<std::size_t>(r * columns + c)];
      out << "\n";
    }
  }
}

// The fewest digits that read back as the same number.
std::string shortest(double v) {
  if (!std::isfinite(v)) return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
  constexpr double kLeastFixed = 1e-4, kMostFixed = 1e16;
  const bool fixed = v == 0 || (std::fabs(v) >= kLeastFixed && std::fabs(v) < kMostFixed);
  std::array<char, 40> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), v, fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return {text.data(), end.ptr};
}

}  // namespace

std::ostream& operator<<(std::ostream& out, Layout layout) {
  constexpr std::array kNames = {"Strided", "Sparse", "SparseCsr", "Mkldnn", "SparseCsc", "SparseBsr", "SparseBsc", "Jagged"};
  const auto i = static_cast<std::size_t>(layout);
  return out << (i < kNames.size() ? kNames[i] : "Unknown");
}

std::ostream& operator<<(std::ostream& out, MemoryFormat format) {
  constexpr std::array kNames = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return out << kNames[static_cast<std::size_t>(format)];
}

std::ostream& operator<<(std::ostream& out, const Scalar& number) {
  if (number.isBoolean()) return out << (number.toBool() ? "true" : "false");
  if (number.isComplex()) return out << '(' << number.toComplexDouble().real() << ',' << number.toComplexDouble().imag() << ')';
  return number.isFloatingPoint() ? out << number.toDouble() : out << to_string(number);
}

std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  const auto flag = [](bool v) { return v ? "true" : "false"; };
  const auto given = [](bool v) { return v ? "" : " (default)"; };
  out << "TensorOptions(dtype=" << options.dtype() << given(options.has_dtype()) << ", device=" << options.device()
      << given(options.has_device()) << ", layout=" << options.layout() << given(options.has_layout())
      << ", requires_grad=" << flag(options.requires_grad()) << given(options.has_requires_grad())
      << ", pinned_memory=" << flag(options.pinned_memory()) << given(options.has_pinned_memory()) << ", memory_format=";
  if (const auto format = options.memory_format_opt())
    out << *format;
  else
    out << "(nullopt)";
  return out << ")";
}

void print(const Tensor& t, int64_t line_width) { print(std::cout, t, line_width); }

std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_width) {
  if (!t.defined()) return out << "[ Tensor (undefined) ]";
  const int64_t dim = t.dim();
  if (t.device().type() == kMeta || !t.has_storage() || t.numel() == 0) {
  } else if (dim == 0) {
    out << (t.is_complex() ? complex_texts(t)[0] : shortest(values_of(t)[0])) << "\n";
  } else if (dim == 1) {
    print_vector(out, t);
  } else {
    const int64_t rows = t.size(-2), columns = t.size(-1);
    const Tensor parts = t.detach().reshape({-1, rows, columns});
    for (int64_t m = 0; m < parts.size(0); ++m) {
      if (dim > 2) {
        out << (m ? "\n" : "") << "(";
        int64_t below = parts.size(0), rest = m;
        for (int64_t d = 0; d < dim - 2; ++d) {
          below /= t.size(d);
          out << rest / below + 1 << ",";
          rest %= below;
        }
        out << ".,.) = \n";
      }
      print_matrix(out, parts[m], line_width, dim > 2);
    }
  }
  out << "[ " << t.toString() << "{";
  for (int64_t d = 0; d < dim; ++d) out << (d ? "," : "") << t.size(d);
  return out << "} ]";
}

}  // namespace cresset
