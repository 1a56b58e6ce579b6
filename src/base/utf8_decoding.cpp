#include <cresset/base/utf8_decoding.h>

#include <atomic>

namespace cresset {
namespace {
std::atomic<bool> undecodable_ignored{false};
}

bool utf8_decoding_ignore() noexcept { return undecodable_ignored.load(std::memory_order_relaxed); }
void set_utf8_decoding_ignore(bool ignore) noexcept { undecodable_ignored.store(ignore, std::memory_order_relaxed); }

}  // namespace cresset
