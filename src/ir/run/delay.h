// Functions of prim::awaitable.
#pragma once

#include <cresset/ir/script_effects.h>

namespace cresset::jit {

/// A function that runs when somebody waits for its value first, on that thread; never when nobody does.
intrusive_ptr<ivalue::Future> delay(std::function<IValue()> function, TypePtr element = nullptr);

}  // namespace cresset::jit
