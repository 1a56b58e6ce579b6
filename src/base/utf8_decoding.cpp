#include <cresset/base/utf8_decoding.h>

namespace cresset {
namespace {
thread_local bool undecodable_ignored = false;
}

bool utf8_decoding_ignore() noexcept { return undecodable_ignored; }
void set_utf8_decoding_ignore(bool ignore) noexcept { undecodable_ignored = ignore; }

}  // namespace cresset
