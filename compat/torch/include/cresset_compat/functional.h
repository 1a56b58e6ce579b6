// fmap and filter.
#pragma once

#include <cresset_compat/c10.h>

#include <cresset/base/functional.h>

namespace c10 {
using cresset::filter;
using cresset::fmap;
}  // namespace c10
