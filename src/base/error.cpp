// Message assembly, warnings and number formatting for errors.
#include <cresset/base/array_ref.h>
#include <cresset/base/error.h>
#include <cresset/base/warn_always.h>

#include <atomic>
#include <cstdio>

#include "base/hint.h"

namespace cresset {
namespace detail {

Hint::~Hint() = default;

void Piece::append_text(const Piece& p, std::string& out) { out.append(p.value_.text, p.size_); }
void Piece::append_char(const Piece& p, std::string& out) { out += static_cast<char>(p.value_.i); }
void Piece::append_signed(const Piece& p, std::string& out) { out += std::to_string(p.value_.i); }
void Piece::append_unsigned(const Piece& p, std::string& out) { out += std::to_string(static_cast<uint64_t>(p.value_.i)); }
void Piece::append_double(const Piece& p, std::string& out) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", p.value_.d);
  out += buffer;
}

std::string join_pieces(std::initializer_list<Piece> pieces) {
  std::string out;
  for (const Piece& p : pieces) p.append_to(out);
  return out;
}

void raise_internal(const char* file, int line, const char* condition, std::string message) {
  throw InternalError(str("internal error at ", file, ":", line, ": `", condition, "` does not hold. ", message, message.empty() ? "" : " ",
                          "Please report this with the call that led here."));
}

template void raise<Error>(std::initializer_list<Piece>);
template void raise<ValueError>(std::initializer_list<Piece>);
template void raise<TypeError>(std::initializer_list<Piece>);
template void raise<IndexError>(std::initializer_list<Piece>);
template void raise<NotImplementedError>(std::initializer_list<Piece>);

}  // namespace detail

Error::~Error() = default;
ValueError::~ValueError() = default;
TypeError::~TypeError() = default;
IndexError::~IndexError() = default;
KeyError::~KeyError() = default;
AttributeError::~AttributeError() = default;
NotImplementedError::~NotImplementedError() = default;
ZeroDivisionError::~ZeroDivisionError() = default;
BufferError::~BufferError() = default;
OutOfMemoryError::~OutOfMemoryError() = default;
LinAlgError::~LinAlgError() = default;
InternalError::~InternalError() = default;
DeviceError::~DeviceError() = default;
void Error::add_context(std::string_view line) { message_ = std::make_shared<std::string>(*message_ + "\n" + std::string(line)); }

namespace {
void print_warning(std::string_view category, const std::string& message) {
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(category.size()), category.data(), message.c_str());
}
std::atomic<WarningHandler> warning_handler{&print_warning};
}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) { return warning_handler.exchange(handler ? handler : &print_warning); }

namespace {
std::atomic<bool> warns_always{false};
}  // namespace
bool warn_always() noexcept { return warns_always.load(std::memory_order_relaxed); }
void set_warn_always(bool always) noexcept { warns_always.store(always, std::memory_order_relaxed); }

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
