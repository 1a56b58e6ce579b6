// Whether warnings that come once in the life of a process come each time.
#pragma once

#include <atomic>

#include <cresset/base/error.h>

namespace cresset {

CRESSET_API bool warn_always() noexcept;
CRESSET_API void set_warn_always(bool always) noexcept;

}  // namespace cresset

/// Warns the first time that a place is reached, and each time where set_warn_always() asks for that.
#define CRESSET_WARN_FIRST(...)                                                         \
  do {                                                                                  \
    static std::atomic<bool> warned_{false};                                            \
    if (!warned_.exchange(true, std::memory_order_relaxed) || ::cresset::warn_always()) \
      ::cresset::warn(::cresset::detail::join_pieces({__VA_ARGS__}));                   \
  } while (false)
