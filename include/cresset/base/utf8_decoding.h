// What Python makes of bytes in an operator's text that are no UTF-8.
#pragma once

#include <cresset/base/macros.h>

namespace cresset {

/// Are such bytes left out in this process (else Python raises UnicodeDecodeError)? False at the start.
CRESSET_API bool utf8_decoding_ignore() noexcept;
CRESSET_API void set_utf8_decoding_ignore(bool ignore) noexcept;

}  // namespace cresset
