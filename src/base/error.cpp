// Message assembly, warnings and number formatting for errors.
#include <cresset/base/array_ref.h>
#include <cresset/base/error.h>

#include <atomic>
#include <cstdio>

namespace cresset {
namespace detail {

Piece::Piece(int v) : text(std::to_string(v)) {}
Piece::Piece(long v) : text(std::to_string(v)) {}
Piece::Piece(long long v) : text(std::to_string(v)) {}
Piece::Piece(unsigned v) : text(std::to_string(v)) {}
Piece::Piece(unsigned long v) : text(std::to_string(v)) {}
Piece::Piece(unsigned long long v) : text(std::to_string(v)) {}
Piece::Piece(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", v);
  text = buffer;
}

std::string join_pieces(std::initializer_list<Piece> pieces) {
  std::string out;
  for (const Piece& p : pieces) out += p.text;
  return out;
}

void raise_internal(const char* file, int line, const char* condition, std::string message) {
  throw InternalError(str("internal error at ", file, ":", line, ": `", condition, "` does not hold. ", message, message.empty() ? "" : " ",
                          "Please report this with the call that led here."));
}

}  // namespace detail

namespace {
void print_warning(std::string_view category, const std::string& message) {
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(category.size()), category.data(), message.c_str());
}
std::atomic<WarningHandler> warning_handler{&print_warning};
}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) { return warning_handler.exchange(handler ? handler : &print_warning); }

void warn(const std::string& message, std::string_view category) { warning_handler.load()(category, message); }

std::string to_string(IntArrayRef values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    out += std::to_string(values[i]);
  }
  return out + "]";
}

}  // namespace cresset
