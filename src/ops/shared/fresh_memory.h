// Marks for memory that nobody has written yet, which programs ask for to see what they read too early: NaN, the largest integer, true.
#pragma once

#include <atomic>

#include <cresset/core/tensor.h>

namespace cresset::ops {

/// Whether `empty` and its like fill what they make.
CRESSET_API extern std::atomic<bool> fresh_memory_is_marked;

/// Fills a tensor that nobody has seen yet, when marks are asked for. Its version stays.
CRESSET_API void mark_fresh_memory(const Tensor& t);

}  // namespace cresset::ops
