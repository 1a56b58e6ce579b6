// torch::jit::setUTF8DecodingIgnore.
#pragma once

#include <cresset_compat/namespaces.h>

#include <cresset/base/utf8_decoding.h>

namespace torch::jit {
inline void setUTF8DecodingIgnore(bool ignore) { cresset::set_utf8_decoding_ignore(ignore); }
inline bool getUTF8DecodingIgnore() { return cresset::utf8_decoding_ignore(); }
}  // namespace torch::jit
