// Printing of tensors to C++ streams: matrices of aligned columns, one after the other.
#include <cresset/ops/print.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>
#include <cresset/ops/type_properties.h>

namespace cresset {
namespace {

// The elements as text, in row-major order.
std::vector<std::string> texts_of(const Tensor& t) {
  std::vector<std::string> out;
  const Tensor flat = t.detach().cpu().contiguous().reshape({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const Scalar s = flat[i].item();
    std::ostringstream text;
    text.precision(5);
    if (s.isComplex())
      text << s.toComplexDouble().real() << (s.toComplexDouble().imag() < 0 ? "-" : "+") << std::abs(s.toComplexDouble().imag()) << "j";
    else if (s.isFloatingPoint())
      text << s.toDouble();
    else
      text << s.toLong();
    out.push_back(text.str());
  }
  return out;
}

// Columns that do not fit on a line go below, under a heading.
void print_matrix(std::ostream& out, const std::string* texts, int64_t rows, int64_t columns, int64_t line_width) {
  std::size_t width = 0;
  for (int64_t i = 0; i < rows * columns; ++i) width = std::max(width, texts[i].size());
  const int64_t per_line = std::max<int64_t>(1, line_width / static_cast<int64_t>(width + 1));
  for (int64_t first = 0; first < columns; first += per_line) {
    const int64_t last = std::min(columns, first + per_line);
    if (columns > per_line) out << "Columns " << first + 1 << " to " << last << "\n";
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = first; c < last; ++c) {
        const std::string& text = texts[r * columns + c];
        out << std::string(width + 1 - text.size(), ' ') << text;
      }
      out << "\n";
    }
  }
}

}  // namespace

std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_width) {
  if (!t.defined()) return out << "[ Tensor (undefined) ]";
  if (t.device().type() == kMeta || !t.has_storage()) return out << "[ " << t.toString() << " ]";
  const std::vector<std::string> texts = texts_of(t);
  const int64_t dim = t.dim();
  if (dim == 0) {
    out << texts[0] << "\n";
  } else if (t.numel() != 0 && dim == 1) {
    print_matrix(out, texts.data(), t.numel(), 1, line_width);
  } else if (t.numel() != 0) {
    const int64_t rows = t.size(-2), columns = t.size(-1);
    for (int64_t m = 0; m < t.numel() / (rows * columns); ++m) {
      if (dim > 2) {
        out << (m ? "\n" : "") << "(";
        int64_t below = t.numel() / (rows * columns), rest = m;
        for (int64_t d = 0; d < dim - 2; ++d) {
          below /= t.size(d);
          out << rest / below + 1 << ",";
          rest %= below;
        }
        out << ".,.) = \n";
      }
      print_matrix(out, texts.data() + m * rows * columns, rows, columns, line_width);
    }
  }
  out << "[ " << t.type().toString() << "{";
  for (int64_t d = 0; d < dim; ++d) out << (d ? "," : "") << t.size(d);
  return out << "} ]";
}

}  // namespace cresset
