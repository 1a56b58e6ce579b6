// The class of `with autocast(...)` in scripts.
#pragma once

#include <cresset/dispatch/type.h>

namespace cresset::jit {

/// PyTorch's class: in its files the methods do nothing, and who runs such a block has to switch autocast.
inline bool is_autocast_class(const Type& type) { return type.name == "__torch__.torch.amp.autocast_mode.autocast"; }

}  // namespace cresset::jit
